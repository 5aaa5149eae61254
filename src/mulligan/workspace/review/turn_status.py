"""What became of each turn's work: an answer to a question, not a flag that could go stale.

A change that a turn made is kept if the baseline has it, pending if only the disk has it, and
undone if neither has.
"""

from __future__ import annotations

from mulligan.core.coverage import decode_path
from mulligan.core.hunks import Hunk, hunks
from mulligan.core.tree import Change, Entry
from mulligan.journal import checkpoints, operations, sessions
from mulligan.journal.views import View
from mulligan.workspace.attribution.carrying import as_lines, same
from mulligan.workspace.attribution.observation import observing
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.review import TurnFile, TurnStatus
from mulligan.workspace.review.pending import names_now
from mulligan.workspace.snapshot.trees import Trees

PENDING, KEPT, UNDONE, PARTIAL = "pending", "kept", "undone", "partial"
Id = bytes


def turn_statuses(project: OpenProject, name: str) -> list[TurnStatus]:
    found = []
    with project.locked():
        session = sessions.resolve(project.journal, name)
        with observing(project) as now:
            now.commit()
            view = now.view(session.number)
            for operation in operations.of_session(project.journal, session.id, ("turn",)):
                before, after = (
                    checkpoints.by_id(project.journal, each) if each else None
                    for each in (operation.before, operation.after)
                )
                if before is None or after is None:
                    continue
                made = now.trees.differences(before.tree, after.tree)
                names = names_now(now, after.tree, made)
                rows = tuple(
                    _file(
                        now.trees, view, change, now.seen.tree, names.get(change.path, change.path)
                    )
                    for change in made
                    if not _is_folder(change)
                )
                if rows:
                    found.append(
                        TurnStatus(
                            session.id,
                            operation.summary.get("turn", 0),
                            operation.number,
                            before.id,
                            _together([row.status for row in rows]),
                            rows,
                        )
                    )
    return found


def _file(trees: Trees, view: View, change: Change, present: Id, name: bytes) -> TurnFile:
    """What became of a change of a file, which has this name now."""
    path, was, became = change
    approved = trees.find(view.approved or present, name)
    held = trees.find(present, name)
    old, new = (as_lines(each, trees) for each in (was, became))
    additions = deletions = 0
    made: list[Hunk] = []
    if (was is None or old is not None) and (became is None or new is not None):
        made = hunks(old or b"", new or b"")
        additions = sum(each.additions for each in made)
        deletions = sum(each.deletions for each in made)
    if was is None or became is None or not made:
        status = _whole(became, was, approved, held)
    else:
        status = _together(_by_hunk(trees, made, new or b"", approved, held))
    action = "created" if was is None else "deleted" if became is None else "modified"
    return TurnFile(decode_path(path), action, status, additions, deletions)


def _whole(
    became: Entry | None, was: Entry | None, approved: Entry | None, held: Entry | None
) -> str:
    """Of a file that came, went or cannot be parted: by whether it is there, or what it is."""
    if became is None or was is None:
        there = became is not None
        if (approved is not None) == there:
            return KEPT
        return PENDING if (held is not None) == there else UNDONE
    if same(approved, became):
        return KEPT
    if same(held, became):
        return PENDING
    return UNDONE if same(held, was) or not same(approved, held) else KEPT


def _by_hunk(
    trees: Trees, made: list[Hunk], new: bytes, approved: Entry | None, held: Entry | None
) -> list[str]:
    in_approved = _present(made, new, as_lines(approved, trees))
    in_disk = _present(made, new, as_lines(held, trees))
    return [
        KEPT if kept else PENDING if there else UNDONE
        for kept, there in zip(in_approved, in_disk, strict=True)
    ]


def _present(made: list[Hunk], new: bytes, content: bytes | None) -> list[bool]:
    """Which changes a content has: those whose lines nothing has touched since."""
    if content is None:
        return [False] * len(made)
    since = [(each.old_start, each.old_start + len(each.old_lines)) for each in hunks(new, content)]
    found = []
    for hunk in made:
        start, end = hunk.new_start, hunk.new_start + len(hunk.new_lines)
        found.append(
            not any(
                max(start, first) < min(end, last) or (start == end and first <= start <= last)
                for first, last in since
            )
        )
    return found


def _together(states: list[str]) -> str:
    """One word for several: pending while any is, else the one that all share, else partial."""
    if PENDING in states:
        return PENDING
    return states[0] if len(set(states)) == 1 else PARTIAL


def _is_folder(change: Change) -> bool:
    return any(each is not None and each.is_directory for each in (change.before, change.after))
