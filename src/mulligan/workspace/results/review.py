"""What the verbs of review answer with. Plain frozen values, as in `results`."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from collections.abc import Iterable
from typing import Any, NamedTuple

from mulligan.core.coverage import decode_lossy, encode_path
from mulligan.workspace.results.files import FileChange, RestoreResult, plain


class PendingHunk(NamedTuple):
    """One contiguous difference that waits for a decision. Lines count from 1.

    `id` stays the same while the hunk's own lines do, whatever happens around it. `kind` is
    `lines`, or `whole` for what cannot be parted: a binary, large or linked file, a folder, a
    mode. `mixed` says that somebody else has changed lines within it since, and `changed_by` who:
    the ids of sessions whose work that is and waits too, else `user`.
    """

    id: str
    session: str
    path: str
    kind: str
    old_start: int
    new_start: int
    old_lines: tuple[str, ...]
    new_lines: tuple[str, ...]
    mixed: bool
    turns: tuple[int, ...] = ()
    changed_by: tuple[str, ...] = ()

    @property
    def additions(self) -> int:
        return len(self.new_lines)

    @property
    def deletions(self) -> int:
        return len(self.old_lines)

    def as_json(self) -> dict[str, Any]:
        found = plain(self)
        found["hunk"] = found.pop("id")
        for name in ("old_lines", "new_lines"):
            found[name] = [decode_lossy(encode_path(line)) for line in getattr(self, name)]
        return found | {"additions": self.additions, "deletions": self.deletions}


class PendingFile(NamedTuple):
    """A file with pending work of a session; `status` is added, modified or deleted."""

    session: str
    path: str
    status: str
    is_binary: bool
    is_too_large: bool
    old_mode: str | None
    new_mode: str | None
    hunks: tuple[PendingHunk, ...]

    @property
    def additions(self) -> int:
        return sum(hunk.additions for hunk in self.hunks)

    @property
    def deletions(self) -> int:
        return sum(hunk.deletions for hunk in self.hunks)

    def as_json(self) -> dict[str, Any]:
        return plain(self) | {
            "additions": self.additions,
            "deletions": self.deletions,
            "hunks": [hunk.as_json() for hunk in self.hunks],
        }


class Review(NamedTuple):
    """Everything that waits for a decision, by file and session, in a steady order."""

    files: tuple[PendingFile, ...]

    @property
    def hunks(self) -> tuple[PendingHunk, ...]:
        return tuple(hunk for file in self.files for hunk in file.hunks)

    def as_json(self) -> dict[str, Any]:
        return {
            "files": [file.as_json() for file in self.files],
            "total": sum(len(file.hunks) for file in self.files),
            "additions": sum(file.additions for file in self.files),
            "deletions": sum(file.deletions for file in self.files),
        }


class PendingStats(NamedTuple):
    """How much of a session waits for a decision."""

    additions: int
    deletions: int
    files: int

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class Position(NamedTuple):
    """Where a reader is: change `current` of `total`, both 0 when there is none."""

    current: int
    total: int
    hunk: str | None = None
    path: str | None = None
    session: str | None = None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class Kept(NamedTuple):
    """What was kept: hunks, and the files that have nothing pending any more."""

    operations: tuple[int, ...]
    hunks: tuple[str, ...]
    files: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class Discarded(NamedTuple):
    """What was undone on the disk, and what was left because somebody has changed it since.

    `results` are the operations, one for each session whose work was undone.
    """

    hunks: tuple[str, ...]
    conflicts: tuple[str, ...]
    results: tuple[RestoreResult, ...]

    @property
    def refused(self) -> bool:
        return all_left_alone(self.results)

    def as_json(self) -> dict[str, Any]:
        return plain(self) | {"results": [each.as_json() for each in self.results]}


class Approved(NamedTuple):
    """The baseline is now what the disk holds."""

    session: str
    approved_checkpoint: str
    new_round: str
    checkpoints: int
    operation: int

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class Reset(NamedTuple):
    """The disk is back at the baseline, but for what others have changed since.

    Where that is all there is, it was refused: nothing was done, and the round goes on.
    """

    session: str
    reset_to: str | None
    new_round: str
    safety_checkpoint: str | None
    files: RestoreResult

    @property
    def refused(self) -> bool:
        return all_left_alone([self.files])

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class RoundStatus(NamedTuple):
    """What a session has pending, with every change, by whatever it was made."""

    session: str
    round: str
    has_unapproved: bool
    last_approved_at: str | None
    changed_files: tuple[FileChange, ...]

    def as_json(self) -> dict[str, Any]:
        return plain(self) | {"changed_files": [each.as_json() for each in self.changed_files]}


class Round(NamedTuple):
    """A stretch of a session's work: active, merged by an approval, or abandoned by a reset."""

    name: str
    status: str
    created_at: str
    closed_at: str | None
    approved_checkpoint: str | None
    checkpoints: int

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class TurnFile(NamedTuple):
    """What became of a turn's work on a file: pending, kept, undone or partial."""

    path: str
    action: str
    status: str
    additions: int
    deletions: int

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class TurnStatus(NamedTuple):
    """What became of a turn's work, over all its files."""

    session: str
    turn: int
    operation: int
    checkpoint: str | None
    status: str
    files: tuple[TurnFile, ...]

    def as_json(self) -> dict[str, Any]:
        return plain(self) | {"files": [file.as_json() for file in self.files]}


def all_left_alone(results: Iterable[RestoreResult]) -> bool:
    """Whether nothing was undone, because somebody has changed all of it since."""
    results = tuple(results)
    done = any(each.restored or each.deleted for each in results)
    return not done and any(each.skipped for each in results)
