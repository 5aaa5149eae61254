"""Where the sessions stand: what of the disk is whose, kept right while anybody changes it.

A session's pending work is the difference from its `approved` tree to the disk. So whenever the
disk goes from one tree to another, the change must be put to somebody's account. What the session
itself did leaves `approved` as it is: it is pending now. What anybody else did joins `approved`
where it does not touch pending work, line by line: nobody is asked to approve the work of others,
or their own. Where it does touch, `approved` stays and so does `written`, the disk as the session
left it: what differs between `written` and the disk is exactly what others changed within it.

What is always true: `approved` and the pending hunks together are the disk.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from mulligan.journal import ledger, operations, sessions, views
from mulligan.journal.views import View
from mulligan.workspace.attribution.view import Author
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.snapshot.holding import last_seen
from mulligan.workspace.snapshot.snapshot import Snapshot
from mulligan.workspace.snapshot.trees import Trees

Id = bytes
"""Gives the session whose work a change of a path is, or `None` for the user's own."""


class Standing(NamedTuple):
    """The views as they are with the disk as it is now, and whether that must be written down."""

    views: dict[int, View]
    moved: bool
    summary: Mapping[str, Any] | None = None


def settle(
    project: OpenProject,
    trees: Trees,
    seen: Snapshot,
    came_into_view: Collection[bytes] = (),
    acting: int | None = None,
) -> Standing:
    """The views, with whatever happened to the disk since it was last seen put to account."""
    known = views.live(project.journal)
    if not known:
        return Standing({}, moved=False)
    last = last_seen(project)
    if last is None or last == seen.tree:
        return Standing(known, moved=False)
    at_work = authors(project, known, acting)

    def author(path: bytes) -> int | None:
        return None if any(within(path, each) for each in came_into_view) else at_work(path)

    # Not needed while nothing moves.
    from mulligan.workspace.attribution.carrying import carried_on
    from mulligan.workspace.snapshot.diff import within

    trees.commit()
    return Standing(carried_on(trees, known, last, seen.tree, author), moved=True)


def authors(project: OpenProject, known: Mapping[int, View], acting: int | None = None) -> Author:
    """Whose a change is that was just found: the open turn's, or without one the user's.

    With several open turns it is the one that has written the path by its own account, else the
    one that is just ending something, else the one with a running tool call, else the one that
    said something last.
    """
    working = [number for number, view in known.items() if view.is_open]
    if len(working) <= 1:
        only = working[0] if working else None
        return lambda path: only
    last = operations.last_applied(project.journal)
    since = last.created_at if last is not None else ""
    wrote = ledger.last_writers(project.journal, working, since)
    busiest = acting if acting in working else sessions.most_active(project.journal, working)
    return lambda path: wrote.get(path, busiest)
