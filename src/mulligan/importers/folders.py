"""List folders in which agents keep their logs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping


def files_below(folder: str, suffix: str) -> Iterator[str]:
    """Yield the regular files with `suffix` in a folder tree, in no order.

    `folder` itself may be a symlink, since users move their homes; symlinks below it are not
    followed. Folders that cannot be listed are skipped.
    """
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.name.endswith(suffix) and entry.is_file(follow_symlinks=False):
                        yield entry.path
        except OSError:
            continue


def files_in(folder: str, suffix: str) -> list[str]:
    """List the regular files with `suffix` in one folder, by name."""
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.path
                for entry in entries
                if entry.name.endswith(suffix) and entry.is_file(follow_symlinks=False)
            )
    except OSError:
        return []


def folders_in(folder: str) -> list[str]:
    """List the subfolders by name, without symlinks; empty if the folder is unreadable."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def path_from_env(environment: Mapping[str, str], name: str, home: str) -> str | None:
    """Return the absolute path in a variable; a leading `~` stands for `home`."""
    value = environment.get(name, "").strip()
    if value == "~" or value.startswith("~/"):
        value = home + value[1:]
    return os.path.normpath(value) if os.path.isabs(value) else None


def project_folders(environment: Mapping[str, str], home: str) -> Iterator[str]:
    """Yield PWD and the folders above it, up to one that holds a `.git`."""
    folder = path_from_env(environment, "PWD", home)
    while folder:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder or os.path.exists(os.path.join(folder, ".git")):
            return
        folder = parent


def is_plain_file(path: str) -> bool:
    """Return True for a regular file that is not a symlink."""
    return os.path.isfile(path) and not os.path.islink(path)
