"""Mulligan: durable sessions for any coding agent, and an undo that cannot lose a byte.

    import mulligan

    with mulligan.open("path/to/project") as workspace:
        before = workspace.checkpoint("before the agent")
        ...
        for change in workspace.status().changed_files:
            print(change.status, change.path)
        workspace.restore(before.id)
        workspace.undo()

`help(mulligan.open)` says how to open a project, `help(mulligan.Workspace)` lists the verbs, and
each has its own words: `help(mulligan.Workspace.restore)`. Everything here is imported when it is
first used: a hook that runs at every tool call pays only for what it needs.
"""

from __future__ import annotations

from mulligan.version import __version__

# Type checkers know this name; to import it would cost a hook a third of its start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from mulligan.core.coverage import Coverage
    from mulligan.core.entries import NewEntry
    from mulligan.errors import (
        Ambiguous,
        Busy,
        Corrupt,
        MissingObject,
        MulliganError,
        NewerFormat,
        NotFound,
        NothingToUndo,
        NotWritable,
        OutOfSpace,
        RefusedRoot,
        Unsupported,
        UsageError,
        WouldLoseWork,
    )
    from mulligan.workspace.results.files import (
        Changes,
        Checkpoint,
        Collected,
        FileChange,
        Finding,
        Forgotten,
        Operation,
        RestoreResult,
        Skip,
        Status,
        TreeEntry,
        Verified,
    )
    from mulligan.workspace.results.review import (
        Approved,
        Discarded,
        Kept,
        PendingFile,
        PendingHunk,
        PendingStats,
        Position,
        Reset,
        Review,
        Round,
        RoundStatus,
        TurnFile,
        TurnStatus,
    )
    from mulligan.workspace.results.sessions import (
        Branch,
        Edit,
        Entry,
        EntryPage,
        FileDifference,
        ModifiedFile,
        Navigation,
        Session,
        SessionPage,
    )
    from mulligan.workspace.results.turns import Step, Turn
    from mulligan.workspace.snapshot.named_files import GivenFile
    from mulligan.workspace.workspace import Workspace
    from mulligan.workspace.workspace import open_workspace as open

_HOMES = {
    "mulligan.errors": (
        "Ambiguous", "Busy", "Corrupt", "MissingObject", "MulliganError", "NewerFormat", "NotFound",
        "NotWritable", "NothingToUndo", "OutOfSpace", "RefusedRoot", "Unsupported", "UsageError",
        "WouldLoseWork",
    ),
    "mulligan.core.coverage": ("Coverage",),
    "mulligan.core.entries": ("NewEntry",),
    "mulligan.workspace.results.files": (
        "Changes", "Checkpoint", "Collected", "FileChange", "Finding", "Forgotten", "Operation",
        "RestoreResult", "Skip", "Status", "TreeEntry", "Verified",
    ),
    "mulligan.workspace.results.review": (
        "Approved", "Discarded", "Kept", "PendingFile", "PendingHunk", "PendingStats",
        "Position", "Reset", "Review", "Round", "RoundStatus", "TurnFile", "TurnStatus",
    ),
    "mulligan.workspace.results.sessions": (
        "Branch", "Edit", "Entry", "EntryPage", "FileDifference", "ModifiedFile", "Navigation",
        "Session", "SessionPage",
    ),
    "mulligan.workspace.results.turns": ("Step", "Turn"),
    "mulligan.workspace.snapshot.named_files": ("GivenFile",),
    "mulligan.workspace.workspace": ("Workspace",),
}  # fmt: skip

__all__ = [
    "Ambiguous", "Approved", "Branch", "Busy", "Changes", "Checkpoint", "Collected", "Corrupt",
    "Coverage", "Discarded", "Edit", "Entry", "EntryPage", "FileChange", "FileDifference",
    "Finding", "Forgotten", "GivenFile", "Kept", "MissingObject", "ModifiedFile", "MulliganError",
    "Navigation", "NewEntry", "NewerFormat", "NotFound", "NotWritable", "NothingToUndo",
    "Operation", "OutOfSpace", "PendingFile", "PendingHunk", "PendingStats", "Position",
    "RefusedRoot", "Reset", "RestoreResult", "Review", "Round", "RoundStatus", "Session",
    "SessionPage", "Skip", "Status", "Step", "TreeEntry", "Turn", "TurnFile", "TurnStatus",
    "Unsupported", "UsageError", "Verified", "Workspace", "WouldLoseWork", "__version__", "open",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "open":
        return import_module("mulligan.workspace.workspace").open_workspace
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'mulligan' has no attribute {name!r}")
