"""What the verbs answer with. Plain frozen values; `as_json` gives each as it goes over a wire."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from collections.abc import Callable
from typing import Any, NamedTuple

from mulligan.core.coverage import Coverage

Progress = Callable[[str, int, int | None], None]
"""Told of the stage, how much is done, and of how much, where that is known."""


class Changes(NamedTuple):
    """How many files differ from the checkpoint before."""

    added: int = 0
    modified: int = 0
    deleted: int = 0


class Checkpoint(NamedTuple):
    """A tree with a name, a kind and a time. Ids of trees are SHA-256 in hex."""

    id: str
    tree: str
    kind: str
    message: str
    created_at: str
    files: int
    bytes: int
    coverage: Coverage
    changes: Changes | None = None
    session: str | None = None
    entry: str | None = None

    def as_json(self) -> dict[str, Any]:
        found = {
            "checkpoint": self.id,
            "tree": self.tree,
            "kind": self.kind,
            "message": self.message,
            "created_at": self.created_at,
            "files": self.files,
            "bytes": self.bytes,
            "session": self.session,
            "entry": self.entry,
            "coverage": self.coverage.as_json(),
        }
        if self.changes is not None:
            found["changes"] = plain(self.changes)
        return found


class TreeEntry(NamedTuple):
    """One path of a checkpoint; `kind` is file, link or directory, `mode` octal text."""

    path: str
    kind: str
    mode: str
    size: int
    id: str
    guarded: bool

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class FileChange(NamedTuple):
    """One file that differs. Modes are octal text; `old_path` is set for a rename."""

    path: str
    status: str
    additions: int
    deletions: int
    diff: str | None
    base_content: str | None
    is_binary: bool
    is_too_large: bool
    old_path: str | None = None
    old_mode: str | None = None
    new_mode: str | None = None
    patch: bytes = b""

    def as_json(self) -> dict[str, Any]:
        found = plain(self)
        del found["patch"]
        return found


class FolderChange(NamedTuple):
    """A folder that came or went empty, or whose mode differs; modes are octal text."""

    path: str
    status: str
    old_mode: str | None = None
    new_mode: str | None = None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class Status(NamedTuple):
    """What changed since a checkpoint. `guarded` are ignored files of which it has copies."""

    checkpoint: str
    changed_files: tuple[FileChange, ...]
    coverage: Coverage
    guarded: tuple[str, ...] = ()
    changed_folders: tuple[FolderChange, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint,
            "changed_files": [each.as_json() for each in self.changed_files],
            "coverage": self.coverage.as_json(),
            "guarded": list(self.guarded),
            "changed_folders": [each.as_json() for each in self.changed_folders],
        }


class Differences(NamedTuple):
    """What differs between two checkpoints, or one and the disk, where `after` is `None`."""

    before: str
    after: str | None
    files: tuple[FileChange, ...]
    folders: tuple[FolderChange, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "from": self.before,
            "to": self.after,
            "files": [each.as_json() for each in self.files],
            "folders": [each.as_json() for each in self.folders],
        }


class Skip(NamedTuple):
    """A path that was, or would be, left alone, and why."""

    path: str
    reason: str


class RestoreResult(NamedTuple):
    """What a restore, an undo or a redo did. Without an operation it had nothing to do.

    `rescued` are new files with what somebody saved at the very moment, and whose name was taken.
    `verified`: all that it set out to change, and did not leave alone for somebody's sake, was read
    back and is as it should be.
    """

    kind: str
    operation: int | None
    safety_checkpoint: str | None
    new_checkpoint: str | None
    target: str | None = None
    undoes: int | None = None
    restored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    skipped: tuple[Skip, ...] = ()
    dirty: tuple[str, ...] = ()
    rescued: tuple[str, ...] = ()
    verified: bool = True
    preview: bool = False
    undoes_kind: str | None = None
    undoes_at: str | None = None
    """Of what was taken back in the end, or done again: neither an undo nor a redo."""
    root: str | None = None
    """The folder that a preview would write to."""

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class Operation(NamedTuple):
    """One appended change; `before` and `after` are checkpoints."""

    number: int
    kind: str
    state: str
    changed: bool
    created_at: str
    session: str | None
    undoes: int | None
    target: str | None
    before: str | None
    after: str | None
    summary: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        found = plain(self)
        found["operation"] = found.pop("number")
        return found


class Verified(NamedTuple):
    """What `verify` looked at. `problems` is empty if all is well."""

    objects: int
    bytes: int
    checkpoints: int
    problems: tuple[str, ...]
    repaired: int = 0

    @property
    def clean(self) -> bool:
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        return plain(self) | {"clean": self.clean}


class Collected(NamedTuple):
    """What `gc` freed, or would free."""

    removed: int
    freed_bytes: int
    kept: int
    dry_run: bool = False

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class Forgotten(NamedTuple):
    """Which checkpoints were dropped, or would be."""

    forgotten: tuple[str, ...]
    kept: int
    dry_run: bool = False

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class Finding(NamedTuple):
    """Something that `doctor` noticed: `ok`, `note`, or `problem` with a way to mend it."""

    level: str
    subject: str
    message: str
    fix: str | None = None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def plain(value: Any) -> dict[str, Any]:
    """A value's fields, down to what JSON knows."""
    return {name: _simple(each) for name, each in zip(value._fields, value, strict=True)}


def _simple(value: Any) -> Any:
    if hasattr(value, "_fields"):
        return plain(value)
    if isinstance(value, tuple):
        return [_simple(each) for each in value]
    return value
