"""What a view becomes when Mulligan looks back: undoes an operation, or brings something back.

What that does to the disk is put to account like anything else (`carrying`). This is about the
rest: what an operation had approved is pending again when it is undone, and whose lines are whose
is what it was, where the disk holds again what it held then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from mulligan.core.coverage import decode_path
from mulligan.core.tree import Entry
from mulligan.journal import checkpoints, operations, sessions, view_history, views
from mulligan.journal.views import View
from mulligan.workspace.attribution.carrying import carried_on, renamed, same
from mulligan.workspace.attribution.view import quiet
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.snapshot.trees import Trees

Id = bytes
Came = Mapping[bytes, Entry | None]
Wanted = dict[bytes, Entry | None]
LOOKED_AT = 50
"""How many of a session's views with work of others in them are remembered here."""
LOOKED_THROUGH = 200
"""How many views of all other sessions."""
LOOKED_UPON = 50_000
"""How many paths of earlier trees, about: where very much came, only the last ones count."""


class _Past(NamedTuple):
    """Where a session stood once, with what was on the disk.

    `decided` are the paths that were approved just then, `None` for all of them.
    """

    session: int
    view: View
    tree: Id
    decided: Collection[str] | None


def brought_back(
    project: OpenProject,
    trees: Trees,
    known: dict[int, View],
    owner: int | None,
    before: Id,
    present: Id,
    until: int | None,
) -> dict[int, View]:
    """The views after Mulligan moved the disk, on behalf of one session or of the user.

    What is on the disk again as it once was is whose it was then. For the session on whose behalf
    it came, that tells which lines in it are not its own; for all others, what is pending. Only
    what was `until` an operation counts, if that one was undone.
    """
    came = {path: now for path, _was, now in trees.differences(before, present)}
    if not came:
        return known
    found = known | _as_then(project, trees, known, owner, came, present, until)
    if owner is not None and found[owner].approved is not None:
        found[owner] = _for_owner(project, trees, found[owner], owner, came, present)
    return found


def _for_owner(
    project: OpenProject, trees: Trees, view: View, session: int, came: Came, present: Id
) -> View:
    """What others had changed within its work is still theirs."""
    into: dict[bytes, Entry | None] = {}
    for written, tree in view_history.written_not_on_disk(project.journal, session, LOOKED_AT):
        for path, mine, held in trees.differences(written, tree):
            if path not in into and came.get(path) is not None and same(held, came[path]):
                into[path] = mine
    return quiet(view._replace(written=trees.edit(view.written or present, into)), present)


def _as_then(
    project: OpenProject,
    trees: Trees,
    known: dict[int, View],
    owner: int | None,
    came: Came,
    present: Id,
    until: int | None,
) -> dict[int, View]:
    """For all but the owner: what was pending is so again, unless it was approved since."""
    open_paths: dict[int, set[bytes]] = {}
    into: dict[int, tuple[Wanted, Wanted]] = {}
    unlike: dict[Id, set[bytes]] = {present: set()}
    for past in _pasts(project, owner, until):
        paths = open_paths.setdefault(past.session, set(came))
        few = len(unlike) < 5 or len(unlike) * len(came) < LOOKED_UPON
        if paths and few and past.tree not in unlike:
            unlike[past.tree] = {each.path for each in trees.differences(past.tree, present)}
        here = paths - unlike.get(past.tree, paths)
        if here:
            held, wrote = _sides(past.view, past.tree)
            approved, written = (
                {path: entry for path, entry, _now in trees.differences(side, past.tree)}
                for side in (held, wrote)
            )
            sides = into.setdefault(past.session, ({}, {}))
            for path in here:
                # That it was not there then, either, tells nothing unless it had been removed.
                if came[path] is not None or path in approved:
                    sides[0][path] = approved.get(path, came[path])
                    sides[1][path] = written.get(path, came[path])
            paths -= here
        paths -= {
            path for path in paths if past.decided is None or decode_path(path) in past.decided
        }
    found = {}
    for session, (approved, written) in into.items():
        view = known.get(session) or views.of_session(project.journal, session) or View()
        held, wrote = _sides(view, present)
        view = view._replace(
            approved=trees.edit(held, approved), written=trees.edit(wrote, written)
        )
        view = quiet(view, present)
        if session in known or not view.is_quiet:
            found[session] = view
    return found


def taken_back(
    project: OpenProject, trees: Trees, known: dict[int, View], number: int, present: Id
) -> dict[int, View]:
    """The views without what an operation did to the one of its own session.

    What it did to the disk has been put to account already; this is about what it approved.
    """
    operation = operations.by_number(project.journal, number)
    owner = operation and operation.session and sessions.by_id(project.journal, operation.session)
    if not operation or not owner:
        return known
    given = views.at(project.journal, owner.number, number)
    before = views.of_session(project.journal, owner.number, before=number)
    view = known.get(owner.number) or views.of_session(project.journal, owner.number)
    if given is None or before is None or view is None:
        return known
    if given.round != before.round:
        view = view._replace(round=before.round)
    start, end = (_tree_of(project, each) for each in (operation.before, operation.after))
    if start is not None and end is not None:
        sides = _sides(before, start)
        paths = _decided_on(trees, operation.kind, sides, _sides(given, end))
        # The view from before it. What has happened since at those paths is somebody else's: what
        # the session itself did there has been taken back already.
        moved = View(before.round, *sides)
        if paths:
            known_then: dict[int, View] = {owner.number: moved}
            moved = carried_on(trees, known_then, start, present, lambda path: None)[owner.number]
            paths |= set(renamed(trees, trees.differences(start, present), paths).values())
        approved, written = (
            trees.edit(now, {path: trees.find(then, path) for path in paths})
            for now, then in zip(_sides(view, present), _sides(moved, present), strict=True)
        )
        view = view._replace(approved=approved, written=written)
    return known | {owner.number: quiet(view, present)}


def _pasts(project: OpenProject, owner: int | None, until: int | None) -> Iterator[_Past]:
    """Where the other sessions stood, newest first."""
    journal = project.journal
    for past in view_history.of_other_sessions(journal, owner, until, LOOKED_THROUGH):
        decided: Collection[str] | None = past.summary.get("committed", ())
        if past.is_own and past.kind in ("keep", "approve"):
            decided = past.summary.get("paths") if past.kind == "keep" else None
        yield _Past(past.session, past.view, past.tree, decided)


def _sides(view: View, present: Id) -> tuple[Id, Id]:
    """What a view names as approved and as written: the disk, while nothing is pending."""
    return view.approved or present, view.written or present


def _decided_on(trees: Trees, kind: str, before: tuple[Id, Id], after: tuple[Id, Id]) -> set[bytes]:
    """The paths at which an operation changed what is approved, or threw pending work away."""
    threw_away = kind in ("discard", "reset")
    return {
        change.path
        for was, became in list(zip(before, after, strict=True))[: 2 if threw_away else 1]
        for change in trees.differences(was, became)
    }


def _tree_of(project: OpenProject, checkpoint: str | None) -> Id | None:
    row = checkpoints.by_id(project.journal, checkpoint) if checkpoint else None
    return row.tree if row is not None else None
