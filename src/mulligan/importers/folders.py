"""Folders: the files of a folder that may be logs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping


def files_below(folder: str, suffix: str) -> Iterator[str]:
    """Regular files of that suffix in the folder and below, in no order.

    The folder itself may be a link, for people move their homes about; below it no link is
    followed, so nothing outside of it is found. What cannot be listed is left out.
    """
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as found:
                for entry in found:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.name.endswith(suffix) and entry.is_file(follow_symlinks=False):
                        yield entry.path
        except OSError:
            continue


def files_in(folder: str, suffix: str) -> list[str]:
    """The same of the folder alone, by name."""
    try:
        with os.scandir(folder) as found:
            return sorted(
                entry.path
                for entry in found
                if entry.name.endswith(suffix) and entry.is_file(follow_symlinks=False)
            )
    except OSError:
        return []


def folders_in(folder: str) -> list[str]:
    """The folders in a folder by name, links left out; none if it cannot be listed."""
    try:
        with os.scandir(folder) as found:
            return sorted(entry.path for entry in found if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def given(environment: Mapping[str, str], name: str, home: str) -> str | None:
    """The folder that a variable names, with a leading `~` as the home; None if it names none."""
    value = environment.get(name, "").strip()
    if value == "~" or value.startswith("~/"):
        value = home + value[1:]
    return os.path.normpath(value) if os.path.isabs(value) else None
