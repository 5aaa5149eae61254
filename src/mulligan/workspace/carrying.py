"""Carrying a session's view on while the disk changes: whose lines are whose, one by one.

What the session itself did leaves `approved` as it is: it is pending now. What anybody else did
joins `approved` where it does not touch pending work. Where it does touch, `approved` stays and so
does `written`, the disk as the session left it: what differs between `written` and the disk is
exactly what others changed within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mulligan.core.diff import is_binary
from mulligan.core.hunks import Hunk, apply_hunks, hunks
from mulligan.core.merge import fold, touched
from mulligan.core.renames import Candidate, exact_renames
from mulligan.core.tree import FILE, Change, Entry
from mulligan.journal import checkpoints, operations, sessions, views
from mulligan.journal.views import View
from mulligan.workspace.trees import Trees

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace
from mulligan.workspace.standing import Author, quiet

Id = bytes
LINES_UP_TO = 16 << 20
"""Larger files are compared whole."""


def carried_on(
    trees: Trees,
    known: Mapping[int, View],
    before: Id,
    after: Id,
    author: Author,
    *,
    by_us: bool = False,
) -> dict[int, View]:
    """The views after the disk went from one tree to another.

    `by_us`: Mulligan itself moved it, on a session's behalf. Then the open turn of that session
    has not done this, whosever account it goes to.
    """
    changes = trees.differences(before, after)
    found = {}
    for number, view in known.items():
        mine = [change for change in changes if author(change.path) == number]
        others = [change for change in changes if author(change.path) != number]
        moved = _with_others(trees, view, others, after if not mine else None, before, author)
        moved = _with_own(trees, moved, mine, after if not others else None, before)
        if by_us and moved.base is not None:
            moved = moved._replace(base=_followed(trees, moved.base, mine))
        found[number] = quiet(moved, after)
    return found


def _followed(trees: Trees, base: Id, changes: list[Change]) -> Id:
    """A turn's baseline after changes that are not the turn's."""
    into: dict[bytes, Entry | None] = {}
    for path, was, now in changes:
        held = trees.find(base, path)
        into[path], _written = _joined(trees, held, held, was, now)
    return trees.edit(base, into)


def same(one: Entry | None, other: Entry | None) -> bool:
    """Whether a path holds the same; of a folder only that it is one, and its mode, count."""
    if one is None or other is None:
        return one is other
    if one.is_directory and other.is_directory:
        return one.mode == other.mode
    return one[:5] == other[:5]


def as_lines(entry: Entry | None, trees: Trees) -> bytes | None:
    """The content of a file that can be compared line by line, else `None`."""
    if entry is None or entry.kind != FILE or entry.size > LINES_UP_TO:
        return None
    content = trees.read(entry)
    return None if is_binary(content) else content


def taken_back(
    workspace: Workspace, trees: Trees, known: dict[int, View], number: int, present: Id
) -> dict[int, View]:
    """The views without what an operation did to the one of its own session.

    What it did to the disk has been put to account already; this is about what it approved.
    """
    operation = operations.by_number(workspace.journal, number)
    owner = operation and operation.session and sessions.by_id(workspace.journal, operation.session)
    if not operation or not owner:
        return known
    given = views.at(workspace.journal, owner.number, number)
    before = views.of_session(workspace.journal, owner.number, before=number)
    view = known.get(owner.number) or views.of_session(workspace.journal, owner.number)
    if given is None or before is None or view is None:
        return known
    if given.round != before.round:
        view = view._replace(round=before.round)
    start = _tree_of(workspace, operation.before)
    if given.approved != before.approved and start is not None:
        # The view from before it, and all that has happened since is somebody else's: what the
        # session itself did since has been taken back already.
        then = before._replace(
            approved=before.approved or start, written=before.written or start, base=None
        )
        carried = carried_on(trees, {owner.number: then}, start, present, lambda path: None)
        moved = carried[owner.number]
        view = view._replace(approved=moved.approved or present, written=moved.written or present)
    return known | {owner.number: quiet(view, present)}


def _tree_of(workspace: Workspace, checkpoint: str | None) -> Id | None:
    row = checkpoints.by_id(workspace.journal, checkpoint) if checkpoint else None
    return row.tree if row is not None else None


def _with_others(
    trees: Trees,
    view: View,
    changes: list[Change],
    all_of_it: Id | None,
    before: Id,
    author: Author,
) -> View:
    """The view after somebody else changed the disk."""
    if not changes or view.approved is None:
        return view
    approved, written, base = view.approved, view.written or view.approved, view.base
    if all_of_it is not None and {approved, written, base or before} == {before}:
        return view._replace(
            approved=all_of_it, written=all_of_it, base=all_of_it if base is not None else None
        )
    into_approved: dict[bytes, Entry | None] = {}
    into_written: dict[bytes, Entry | None] = {}
    into_base: dict[bytes, Entry | None] = {}
    for old, new in _renamed(changes).items():
        present = trees.find(before, old)
        if not same(trees.find(approved, old), present):
            into_approved |= _moved(trees, approved, old, new)
            into_written |= _moved(trees, written, old, new)
        if base is not None and not same(trees.find(base, old), present):
            into_base |= _moved(trees, base, old, new)
    for path, was, now in changes:
        if path not in into_approved:
            held, wrote = trees.find(approved, path), trees.find(written, path)
            # What the user does is a decision; what another agent does is a proposal itself.
            join = _joined if author(path) is None else _joined_by_an_agent
            into_approved[path], into_written[path] = join(trees, held, wrote, was, now)
        if base is not None and path not in into_base:
            held = trees.find(base, path)
            into_base[path], _written = _joined(trees, held, held, was, now)
    return view._replace(
        approved=trees.edit(approved, into_approved),
        written=trees.edit(written, into_written),
        base=trees.edit(base, into_base) if base is not None else None,
    )


def _with_own(
    trees: Trees, view: View, changes: list[Change], all_of_it: Id | None, before: Id
) -> View:
    """The view after the session's own agent changed the disk."""
    if not changes or view.approved is None:
        return view
    written = view.written or view.approved
    if all_of_it is not None and written == before:
        return view._replace(written=all_of_it)
    into: dict[bytes, Entry | None] = {}
    for path, was, now in changes:
        wrote = trees.find(written, path)
        into[path] = now
        if same(wrote, was) or wrote is None or was is None or now is None:
            continue
        old, mine, new = (as_lines(each, trees) for each in (was, wrote, now))
        if old is not None and mine is not None and new is not None:
            # Where it clashes with what others changed within its work, it stays theirs too: when
            # unsure whose lines they are, they are somebody else's.
            into[path] = trees.with_content(now, fold(mine, old, new).content)
    return view._replace(written=trees.edit(written, into))


def _joined(
    trees: Trees, held: Entry | None, wrote: Entry | None, was: Entry | None, now: Entry | None
) -> tuple[Entry | None, Entry | None]:
    """What is approved and what is written at a path that somebody else changed."""
    if same(held, was) or same(held, now):
        return now, now
    if now is None:
        # They deleted the file with all the pending work in it: there is nothing left to review.
        return None, None
    base, old, new = (as_lines(each, trees) for each in (held, was, now))
    if held is None or was is None or base is None or old is None or new is None:
        return held, wrote
    edits = hunks(old, new)
    folded = fold(base, old, new, edits=edits)
    approved = trees.with_content(held, folded.content)._replace(mode=_mode(held, was, now))
    mine = as_lines(wrote, trees)
    if wrote is None or mine is None:
        return approved, wrote
    left = set(folded.left)
    taken = apply_hunks(old, [edit for edit in edits if edit not in left])
    written = trees.with_content(wrote, fold(mine, old, taken).content)
    return approved, written._replace(mode=_mode(wrote, was, now))


def _joined_by_an_agent(
    trees: Trees, held: Entry | None, wrote: Entry | None, was: Entry | None, now: Entry | None
) -> tuple[Entry | None, Entry | None]:
    """The same, where that was another session's agent.

    If it removed pending lines, they are pending again should they come back.
    """
    if not same(held, was) and (same(held, now) or now is None):
        return held, wrote
    if not same(wrote, was) and same(wrote, now):
        return held, wrote
    base, mine, old, new = (as_lines(each, trees) for each in (held, wrote, was, now))
    if (
        not (held and wrote and was and now)
        or base is None
        or mine is None
        or old is None
        or new is None
        or base == old == mine
    ):
        return _joined(trees, held, wrote, was, now)
    ours = set(hunks(old, mine))
    edits = [edit for edit in hunks(old, new) if edit not in ours]
    pending = hunks(base, old)
    approved = fold(base, old, apply_hunks(old, edits), pending=pending, edits=edits)
    near = touched([_turned(edit) for edit in edits], pending)
    left = set(approved.left)
    beside = [
        edit
        for at, edit in enumerate(edits)
        if edit not in left and (at not in near or _is_beside(edit, pending))
    ]
    written = fold(mine, old, apply_hunks(old, beside), edits=beside)
    return (
        trees.with_content(held, approved.content)._replace(mode=_mode(held, was, now)),
        trees.with_content(wrote, written.content)._replace(mode=_mode(wrote, was, now)),
    )


def _is_beside(edit: Hunk, pending: list[Hunk]) -> bool:
    """Whether lines were put next to pending work, not into it: at the place of a deletion, say."""
    return not edit.old_lines and not any(
        each.new_start < edit.old_start < each.new_start + len(each.new_lines) for each in pending
    )


def _turned(hunk: Hunk) -> Hunk:
    return Hunk(hunk.new_start, hunk.new_lines, hunk.old_start, hunk.old_lines)


def _mode(held: Entry, was: Entry, now: Entry) -> int:
    """The mode of a path that somebody else changed: theirs, unless it is pending itself."""
    return now.mode if held.mode == was.mode else held.mode


def _moved(trees: Trees, root: Id, old: bytes, new: bytes) -> dict[bytes, Entry | None]:
    held = trees.find(root, old)
    name = new.rpartition(b"/")[2]
    return {old: None, new: held._replace(name=name) if held is not None else None}


def _renamed(changes: Iterable[Change]) -> dict[bytes, bytes]:
    """Files that are now elsewhere, unchanged: from where to where."""
    gone, came = [], []
    for path, was, now in changes:
        if was is not None and was.kind == FILE and now is None:
            gone.append(Candidate(path, was.id, was.size))
        elif now is not None and now.kind == FILE and was is None:
            came.append(Candidate(path, now.id, now.size))
    return dict(exact_renames(gone, came)) if gone and came else {}
