"""Decide which directories may become projects.

- `is_too_wide`: a user names the directory. Only `/` and home directories are refused, and `--any-
  root` allows even these.
- `refuse_as_project`: a hook or an imported log names the directory. System directories,
  directories shared by all users, and directories of keys are refused too.

A user can still make any directory a project with `mulligan -C DIR checkpoint`; hooks then find a
known project.
"""

# Annotations are not postponed here, as in `home`: hooks import this module at every start.

import os

from mulligan.workspace.project.home import home_directory

HOME_PARENTS = (b"/home", b"/Users", b"/var/home")
HOMES = (b"/root", b"/var/root", b"/var/roothome", b"/private/var/root")

SYSTEM_TREES = (
    *(b"/bin", b"/sbin", b"/lib", b"/lib32", b"/lib64", b"/libx32", b"/boot", b"/dev", b"/efi"),
    *(b"/etc", b"/gnu", b"/lost+found", b"/nix", b"/proc", b"/run", b"/snap", b"/sys", b"/usr"),
    *(b"/var/backups", b"/var/cache", b"/var/crash", b"/var/db", b"/var/lib", b"/var/lock"),
    *(b"/var/log", b"/var/mail", b"/var/run", b"/var/spool"),
    # macOS
    *(b"/Applications", b"/Library", b"/System", b"/cores", b"/private/etc"),
    *(b"/private/var/db", b"/private/var/log", b"/private/var/run"),
)
"""Refused with everything below, except for `WORK_DEPTHS`."""

WORK_DEPTHS = {
    b"/dev/shm": 1,
    b"/run/media": 3,
    b"/run/user": 2,
    b"/usr/local/src": 1,
    b"/usr/src": 1,
    b"/var/lib": 2,
}
"""Directories within system trees that hold users' work, and the depth at which it begins."""

SHARED = (
    *(b"/media", b"/mnt", b"/opt", b"/private", b"/srv", b"/tmp", b"/var", b"/var/folders"),
    *(b"/var/opt", b"/var/tmp", b"/var/www", b"/Volumes"),
    *(b"/private/tmp", b"/private/var", b"/private/var/folders", b"/private/var/tmp"),
)
"""Refused themselves; directories below are allowed."""

KEY_FOLDERS = (b".ssh", b".gnupg", b".aws", b".kube")
"""Directories of a home that hold keys: refused with everything below."""


def refuse_as_project(path: str | bytes) -> str | None:
    """Return why a hook or import must not make a directory a project; None if it may.

    The path is absolute. It need not exist, and its links are followed.
    """
    try:
        given = os.fsencode(path)
        root = os.path.realpath(given)
    except ValueError:
        return "its path holds a NUL, or characters that no path can hold"
    if not os.path.isabs(given):
        return "its path is not absolute"
    if is_too_wide(root) or _is_in(_home(), root):
        return "it is a home directory, or holds one"
    if root in SHARED:
        return "it is a folder that the whole system shares"
    if any(_is_in(root, tree) for tree in SYSTEM_TREES) and not _is_work_directory(root):
        return "it is a system folder"
    if any(_is_in(root, os.path.join(_home(), name)) for name in KEY_FOLDERS):
        return "it is a folder of keys"
    if _is_in(root, os.path.realpath(os.fsencode(home_directory()))):
        return "Mulligan keeps its own data there"
    return None


def is_too_wide(root: bytes) -> bool:
    """True for `/`, home directories, and the usual parents of home directories.

    The path is absolute and has no links.
    """
    above = os.path.dirname(root)
    if root == above or root == _home() or root in HOMES or root in HOME_PARENTS:
        return True
    return above in HOME_PARENTS


def _is_work_directory(root: bytes) -> bool:
    """True for directories of users' work, and below the user's own temporary directory."""
    depths = dict(WORK_DEPTHS)
    temporary = os.path.realpath(os.environb.get(b"TMPDIR") or b"/")
    if not is_too_wide(temporary):
        depths[temporary] = 1
    return any(
        _is_in(root, place) and root.count(b"/", len(place)) >= depth
        for place, depth in depths.items()
    )


def _home() -> bytes:
    return os.path.realpath(os.path.expanduser(b"~"))


def _is_in(path: bytes, tree: bytes) -> bool:
    return path == tree or path.startswith(tree.rstrip(b"/") + b"/")
