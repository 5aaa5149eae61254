"""Carrying a session's view on while the disk changes: whose lines are whose, one by one.

What the session itself did leaves `approved` as it is: it is pending now. What anybody else did
joins `approved` where it does not touch pending work. Where it does touch, `approved` stays and so
does `written`, the disk as the session left it: what differs between `written` and the disk is
exactly what others changed within it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from mulligan.core.diff import is_binary
from mulligan.core.hunks import Hunk, apply_hunks, hunks, revert_hunks
from mulligan.core.merge import merge_edits, touched
from mulligan.core.renames import Candidate, exact_renames, similar_renames
from mulligan.core.tree import FILE, Change, Entry
from mulligan.journal.views import View
from mulligan.workspace.attribution.view import Author, quiet
from mulligan.workspace.snapshot.trees import Trees

Id = bytes
LINES_UP_TO = 16 << 20
"""Larger files are compared whole."""


class Withdrawn(NamedTuple):
    """What a session had written at a path, with and without what it takes back now."""

    before: bytes
    after: bytes


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
    changes = trees.differences(before, after) if known else []

    @cache
    def withdrawn(change: Change) -> Withdrawn | None:
        whose = author(change.path)
        view = known.get(whose) if whose is not None else None
        return _withdrawn(trees, view, change) if view is not None else None

    found = {}
    for number, view in known.items():
        mine = [change for change in changes if author(change.path) == number]
        others = [change for change in changes if author(change.path) != number]
        moved = _with_others(
            trees, view, others, after if not mine else None, before, author, withdrawn
        )
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


def _with_others(
    trees: Trees,
    view: View,
    changes: list[Change],
    all_of_it: Id | None,
    before: Id,
    author: Author,
    withdrawn: Callable[[Change], Withdrawn | None],
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
    # What the user does is a decision; what another agent does is a proposal itself.
    joins = {
        path: _joined if author(path) is None else _joined_by_an_agent
        for path, _was, _now in changes
    }
    came = {path: now for path, _was, now in changes}
    unfinished = {
        path
        for path, was, now in changes
        if now is None
        and not all(same(trees.find(each, path), was) for each in (approved, base or before))
    }
    for old, new in renamed(trees, changes, unfinished).items():
        was = _as(trees.find(before, old), new)
        held, wrote = _as(trees.find(approved, old), new), _as(trees.find(written, old), new)
        into_approved[old] = into_written[old] = None
        into_approved[new], into_written[new] = joins[new](trees, held, wrote, was, came[new])
        if base is not None:
            held = _as(trees.find(base, old), new)
            into_base[old] = None
            into_base[new], _written = _joined(trees, held, held, was, came[new])
    for change in changes:
        path, was, now = change
        if path in into_approved:
            continue
        held, wrote = trees.find(approved, path), trees.find(written, path)
        into_approved[path], into_written[path] = joins[path](trees, held, wrote, was, now)
        if held is not None and not same(held, was):
            # What was built upon a proposal is not to bring it back.
            away = withdrawn(change)
            if away is not None and now is None:
                into_approved[path] = into_written[path] = None
            elif away is not None:
                into_approved[path] = _without(trees, into_approved[path], away)
        if base is not None:
            held = trees.find(base, path)
            into_base[path], _written = _joined(trees, held, held, was, now)
    return view._replace(
        approved=trees.edit(approved, into_approved),
        written=trees.edit(written, into_written),
        base=trees.edit(base, into_base) if base is not None else None,
    )


def _withdrawn(trees: Trees, view: View, change: Change) -> Withdrawn | None:
    """What a session takes back of its own proposal by changing a path, if anything."""
    if view.approved is None:
        return None
    path, was, now = change
    held, wrote = trees.find(view.approved, path), trees.find(view.written or view.approved, path)
    if now is None:
        return Withdrawn(b"", b"") if held is None else None
    base, mine, old, new = (as_lines(each, trees) for each in (held, wrote, was, now))
    if base is None or mine is None or old is None or new is None:
        return None
    proposed, pending, left = (
        [_turned(hunk) for hunk in hunks(base, each)] for each in (mine, old, new)
    )
    gone = touched(proposed, pending) - touched(proposed, left)
    if not gone:
        return None
    return Withdrawn(mine, revert_hunks(mine, [_turned(proposed[at]) for at in sorted(gone)]))


def _without(trees: Trees, held: Entry | None, away: Withdrawn) -> Entry | None:
    """What is approved at a path, for one who took over what another has withdrawn."""
    lines = as_lines(held, trees)
    if held is None or lines is None:
        return held
    return trees.with_content(held, merge_edits(lines, *away).content)


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
    came = {path: now for path, _was, now in changes}
    # A file that it renames takes along what others have changed in it.
    shared = {
        path
        for path, was, now in changes
        if now is None and not same(trees.find(written, path), was)
    }
    for old, new in renamed(trees, changes, shared).items():
        wrote, was = (_as(trees.find(each, old), new) for each in (written, before))
        into[old], into[new] = None, _own(trees, wrote, was, came[new])
    for path, was, now in changes:
        if path not in into:
            into[path] = _own(trees, trees.find(written, path), was, now)
    return view._replace(written=trees.edit(written, into))


def _own(trees: Trees, wrote: Entry | None, was: Entry | None, now: Entry | None) -> Entry | None:
    """What is written at a path that the session itself has changed."""
    if same(wrote, was) or was is None or now is None:
        return now
    old, new = as_lines(was, trees), as_lines(now, trees)
    # Of a file that it had deleted, and others have made again, it has written nothing yet.
    mine = b"" if wrote is None else as_lines(wrote, trees)
    if old is None or mine is None or new is None:
        return wrote
    # Where it clashes with what others changed within its work, or brings back lines with more
    # between them, it stays theirs too. So does a file that cannot be parted: when unsure whose
    # something is, it is somebody else's.
    removed = hunks(old, mine)
    edits = [
        edit
        for edit in hunks(old, new)
        if not any(_lines(each) & _lines(edit) for each in _meeting(edit, removed))
    ]
    mine = merge_edits(mine, old, apply_hunks(old, edits), edits=edits).content
    return trees.with_content(now, mine)


def _joined(
    trees: Trees, held: Entry | None, wrote: Entry | None, was: Entry | None, now: Entry | None
) -> tuple[Entry | None, Entry | None]:
    """What is approved and what is written at a path that somebody else changed."""
    if same(held, was) and not same(held, now):
        return now, _still_written(trees, wrote, was, now)
    if same(held, now):
        return now, now
    if now is None:
        # They deleted the file with all the pending work in it: there is nothing left to review.
        return None, None
    base, old, new = (as_lines(each, trees) for each in (held, was, now))
    if held is None or was is None or base is None or old is None or new is None:
        return held, wrote
    edits = hunks(old, new)
    folded = merge_edits(base, old, new, edits=edits)
    approved = trees.with_content(held, folded.content)._replace(mode=_mode(held, was, now))
    mine = as_lines(wrote, trees)
    if wrote is None or mine is None:
        return approved, wrote
    left = set(folded.unplaced)
    taken = apply_hunks(old, [edit for edit in edits if edit not in left])
    written = trees.with_content(wrote, merge_edits(mine, old, taken).content)
    return approved, written._replace(mode=_mode(wrote, was, now))


def _still_written(
    trees: Trees, wrote: Entry | None, was: Entry | None, now: Entry | None
) -> Entry | None:
    """What is written where nothing is pending: another agent may have removed what was."""
    old = b"" if was is None else as_lines(was, trees)
    mine, new = as_lines(wrote, trees), as_lines(now, trees)
    if same(wrote, was) or wrote is None or old is None or mine is None or new is None:
        return now
    return trees.with_content(wrote, merge_edits(mine, old, new).content)


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
    ours = hunks(old, mine)
    edits = [edit for edit in hunks(old, new) if not _brings_back(edit, ours)]
    pending = hunks(base, old)
    approved = merge_edits(base, old, apply_hunks(old, edits), pending=pending, edits=edits)
    near = touched([_turned(edit) for edit in edits], pending)
    left = set(approved.unplaced)
    beside = [
        edit
        for at, edit in enumerate(edits)
        if edit not in left and (at not in near or _is_beside(edit, pending))
    ]
    written = merge_edits(mine, old, apply_hunks(old, beside), edits=beside)
    return (
        trees.with_content(held, approved.content)._replace(mode=_mode(held, was, now)),
        trees.with_content(wrote, written.content)._replace(mode=_mode(wrote, was, now)),
    )


def _brings_back(edit: Hunk, removed: Iterable[Hunk]) -> bool:
    """Whether lines are at their place again that others had removed: some, or with more lines."""
    came = _lines(edit)
    return any(
        edit == each or (came and _lines(each) and (_lines(each) <= came or came <= _lines(each)))
        for each in _meeting(edit, removed)
    )


def _meeting(edit: Hunk, others: Iterable[Hunk]) -> list[Hunk]:
    """The hunks of another difference from the same version that touch one or lie next to it."""
    start, end = edit.old_start, edit.old_start + len(edit.old_lines)
    return [
        each
        for each in others
        if each.old_start <= end and start <= each.old_start + len(each.old_lines)
    ]


def _lines(hunk: Hunk) -> set[bytes]:
    """What came, whatever the lines end with."""
    return {line.rstrip(b"\r\n") for line in hunk.new_lines}


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


def _as(entry: Entry | None, path: bytes) -> Entry | None:
    """The entry under the name that it has at a path."""
    return entry._replace(name=path.rpartition(b"/")[2]) if entry is not None else None


def renamed(trees: Trees, changes: Iterable[Change], of: Collection[bytes]) -> dict[bytes, bytes]:
    """Where some of the files are now, from where to where; they may be edited on the way."""
    gone: dict[bytes, Entry] = {}
    came: dict[bytes, Entry] = {}
    for path, was, now in changes:
        if was is not None and was.kind == FILE and now is None:
            gone[path] = was
        elif now is not None and now.kind == FILE and was is None:
            came[path] = now
    if not came or gone.keys().isdisjoint(of):
        return {}
    found = dict(exact_renames(_candidates(gone), _candidates(came)))
    rest = {path: entry for path, entry in gone.items() if path in of and path not in found}
    for path in found.values():
        del came[path]
    contents = {entry.id: entry for entry in (*rest.values(), *came.values())}
    similar = similar_renames(
        _candidates(rest), _candidates(came), lambda id: trees.read(contents[id])
    )
    found |= {old: new for old, new, _share in similar}
    return {old: new for old, new in found.items() if old in of}


def _candidates(files: Mapping[bytes, Entry]) -> list[Candidate]:
    return [Candidate(path, entry.id, entry.size) for path, entry in files.items()]
