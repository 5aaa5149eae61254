"""Arrange a session's checkpoints as git branches: `main` and one branch a round.

1. `main` begins with the checkpoint that the session began with, and all imported ones.
2. Each round, `session_1`, `session_2` and so on, begins where `main` stands at that moment.
3. An approval is a merge commit on `main`: its parents are `main` and the round's last commit.
4. A reset leaves `main` where it is; the round's branch keeps the discarded work.
"""

from __future__ import annotations

from typing import NamedTuple

from mulligan.exporters.git import Commit
from mulligan.journal import checkpoints, operations
from mulligan.journal.checkpoints import IMPORTED, CheckpointRow
from mulligan.journal.operations import OperationRow
from mulligan.journal.sessions import SessionRow
from mulligan.journal.views import View, of_session
from mulligan.workspace.attribution.turns import round_name
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.review.rounds import endings

MAIN = "main"


class GitHistory(NamedTuple):
    """`heads` has the position of each branch's last commit; the last one is the active round's."""

    commits: list[Commit]
    heads: dict[str, int]

    @property
    def active(self) -> str:
        return list(self.heads)[-1]


def git_history(project: OpenProject, session: SessionRow) -> GitHistory:
    """Arrange all checkpoints of a session; nothing at all if it has none."""
    rows = checkpoints.with_shared(project.journal, session.id, session.number)
    history = GitHistory([], {})
    if not rows:
        return history
    start = _leading(rows)
    for _seq, row in rows[:start]:
        _commit(history, MAIN, row)
    rest = rows[start:]
    ended = endings(project, session)
    view = of_session(project.journal, session.number) or View()
    for number in range(1, view.round + 1):
        end = ended.get(number) if number < view.round else None
        count = len(rest) if end is None else _in_round(project, rest, end)
        branch = round_name(View(number))
        history.heads[branch] = history.heads[MAIN]
        for _seq, row in rest[:count]:
            _commit(history, branch, row)
        rest = rest[count:]
        if end is not None and end.kind == "approve":
            _merge(history, branch, end)
        elif end is not None:
            rest = _without_reset(history, rest, end)
    return history


def _leading(rows: list[tuple[int, CheckpointRow]]) -> int:
    """Count the checkpoints at the beginning that `main` begins with; at least one."""
    count = 0
    while count < len(rows) and rows[count][1].kind in ("initial", IMPORTED):
        count += 1
    return max(count, 1)


def _in_round(
    project: OpenProject, rows: list[tuple[int, CheckpointRow]], end: OperationRow
) -> int:
    """Count the checkpoints up to a round's end. What a reset arrived at is not among them."""
    last = operations.last_checkpoint(project.journal, end.number)
    return sum(seq <= last and not _is_reset(row, end) for seq, row in rows)


def _is_reset(row: CheckpointRow, end: OperationRow) -> bool:
    return end.kind == "reset" and row.id == end.after and row.kind == "restored"


def _without_reset(
    history: GitHistory, rows: list[tuple[int, CheckpointRow]], end: OperationRow
) -> list[tuple[int, CheckpointRow]]:
    """Drop the checkpoint that a reset arrived at if it holds what `main` holds."""
    approved = history.commits[history.heads[MAIN]].tree
    if rows and _is_reset(rows[0][1], end) and rows[0][1].tree == approved:
        return rows[1:]
    return rows


def _commit(history: GitHistory, branch: str, row: CheckpointRow) -> None:
    before = history.heads.get(branch)
    parents = () if before is None else (before,)
    history.heads[branch] = len(history.commits)
    history.commits.append(
        Commit(row.id, row.tree, row.message or row.kind, row.created_at, branch, parents)
    )


def _merge(history: GitHistory, branch: str, end: OperationRow) -> None:
    """Merge an approved round into `main`, unless it has no commits of its own."""
    main, last = history.heads[MAIN], history.heads[branch]
    if main == last:
        return
    message = end.summary.get("message") or f"Approve {branch}"
    checkpoint = history.commits[last]
    history.heads[MAIN] = len(history.commits)
    history.commits.append(
        checkpoint._replace(
            message=message, created_at=end.created_at, branch=MAIN, parents=(main, last)
        )
    )
