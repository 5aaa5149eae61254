"""What is pending, derived: the hunks from each session's baseline to the disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from mulligan.core.coverage import decode_path
from mulligan.core.entries import STEP_SNAPSHOT
from mulligan.core.hunks import Hunk, hunks
from mulligan.core.merge import Span, map_spans, touched
from mulligan.core.tree import FILE, Change, Entry, Finder, parents
from mulligan.journal import checkpoints, entries, operations, sessions
from mulligan.journal.operations import OperationRow
from mulligan.journal.sessions import SessionRow
from mulligan.journal.views import View
from mulligan.workspace.attribution.carrying import LINES_UP_TO, as_lines, renamed, same
from mulligan.workspace.attribution.observation import Observation
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.review import PendingFile, PendingHunk
from mulligan.workspace.snapshot.diff import within
from mulligan.workspace.snapshot.trees import Trees

Id = bytes
LINES, MODE, WHOLE = "lines", "mode", "whole"
USER = "user"


class Part(NamedTuple):
    """A hunk with what is needed to act on it; `lines` is none of a file's whole or its mode."""

    shown: PendingHunk
    lines: Hunk | None


class File(NamedTuple):
    """A path with pending work: what is approved there, and what the disk holds."""

    session: SessionRow
    view: View
    path: bytes
    before: Entry | None
    after: Entry | None
    parts: tuple[Part, ...]

    @property
    def appeared_or_vanished(self) -> bool:
        return self.before is None or self.after is None

    @property
    def shown(self) -> PendingFile:
        sides = [each for each in (self.before, self.after) if each is not None]
        status = "added" if self.before is None else "deleted" if self.after is None else "modified"
        is_text = any(part.lines is not None for part in self.parts)
        large = any(entry.kind == FILE and entry.size > LINES_UP_TO for entry in sides)
        files = all(entry.kind == FILE for entry in sides)
        contents = len({entry.id for entry in sides}) > 1 or self.appeared_or_vanished
        empty = all(entry.size == 0 for entry in sides)
        return PendingFile(
            session=self.session.id,
            path=shown_path(self),
            status=status,
            is_binary=files and contents and not is_text and not large and not empty,
            is_too_large=large,
            old_mode=_mode(self.before),
            new_mode=_mode(self.after),
            hunks=tuple(part.shown for part in self.parts),
        )


def files(
    now: Observation,
    *,
    only: SessionRow | None = None,
    paths: Sequence[bytes] = (),
    turns: bool = True,
) -> list[File]:
    """Everything pending, by path; of one session, or of all."""
    found: list[File] = []
    for number, view in now.standing.views.items():
        if view.approved is None or (only is not None and only.number != number):
            continue
        session = sessions.by_number(now.project.journal, number)
        if session is None:
            continue
        mine = list(_of_session(now, session, view, paths))
        found += _with_turns(now, session, mine) if turns else mine
    found.sort(key=lambda file: (file.path.split(b"/"), file.session.created_at))
    return found


def turns_of(project: OpenProject, session: SessionRow) -> list[OperationRow]:
    """The turns that changed something, on the way to where the session stands, oldest first.

    Numbers count along a way, so on a branch that the session has left they mean other turns.
    """
    found = operations.of_session(project.journal, session.id, ("turn",))
    if not found:
        return []
    way = entries.on_path(project.journal, session.number, session.leaf, types=(STEP_SNAPSHOT,))
    ids = {entry.id for entry in way}
    return [each for each in found if each.changed and each.summary.get("entry") in ids]


def shown_path(file: File) -> str:
    entry = file.after or file.before
    return decode_path(file.path) + ("/" if entry is not None and entry.is_directory else "")


def _of_session(
    now: Observation, session: SessionRow, view: View, paths: Sequence[bytes]
) -> Iterator[File]:
    assert view.approved is not None
    everything_is_its_own = view.written == now.seen.tree
    for path, before, after in now.trees.differences(view.approved, now.seen.tree):
        if paths and not any(within(path, each) for each in paths):
            continue
        if after is None and now.seen.coverage.reason_for(path):
            # It could not be looked at: that is not to say that it is gone.
            continue
        if _is_told_by_its_files(before, after):
            continue
        wrote = after
        if not everything_is_its_own and view.written is not None:
            wrote = now.trees.find(view.written, path)
        theirs: dict[str, Entry | None] = {}
        if not same(wrote, after):
            theirs = _pending_for_others(now, session, path, after)
        parts = _parts(now.trees, session, path, before, after, wrote, theirs)
        yield File(session, view, path, before, after, tuple(parts))


def _is_told_by_its_files(before: Entry | None, after: Entry | None) -> bool:
    """Whether a folder that came or went is shown by the files in it."""
    entry = before if after is None else after
    if entry is None or not entry.is_directory:
        return False
    return (before is None or after is None) and entry.files > 0


def _pending_for_others(
    now: Observation, session: SessionRow, path: bytes, after: Entry | None
) -> dict[str, Entry | None]:
    """What is approved at a path for each other session that has pending work there."""
    found: dict[str, Entry | None] = {}
    for number, view in now.standing.views.items():
        if number == session.number or view.approved is None:
            continue
        approved = now.trees.find(view.approved, path)
        row = sessions.by_number(now.project.journal, number)
        if row is not None and not same(approved, after):
            found[row.id] = approved
    return found


def _parts(
    trees: Trees,
    session: SessionRow,
    path: bytes,
    before: Entry | None,
    after: Entry | None,
    wrote: Entry | None,
    theirs: Mapping[str, Entry | None],
) -> Iterator[Part]:
    texts = [b"" if each is None else as_lines(each, trees) for each in (before, after)]
    names: dict[str, int] = {}

    def part(kind: str, lines: Hunk | None, mixed: bool, by: tuple[str, ...]) -> Part:
        old, new = (lines.old_lines, lines.new_lines) if lines else ((), ())
        # Of what cannot be parted, the name follows from the whole of both versions.
        sides = (old, new) if lines else tuple((repr(each).encode(),) for each in (before, after))
        name = _name(session, path, kind, *sides)
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name = f"{name}-{names[name]}"
        return Part(
            PendingHunk(
                id=name,
                session=session.id,
                path=decode_path(path),
                kind=WHOLE if lines is None else LINES,
                old_start=lines.old_start + 1 if lines else 0,
                new_start=lines.new_start + 1 if lines else 0,
                old_lines=tuple(map(decode_path, old)),
                new_lines=tuple(map(decode_path, new)),
                mixed=mixed,
                changed_by=by if mixed else (),
            ),
            lines,
        )

    old, new = texts
    changed_since = not same(wrote, after)
    anybody = tuple(theirs) or (USER,)
    found = hunks(old, new) if old is not None and new is not None else []
    if not found and not (before and after and before.same_content(after)):
        yield part(WHOLE, None, changed_since, anybody)
        return
    others: set[int] = set()
    since: list[Hunk] = []
    if changed_since and found:
        mine = as_lines(wrote, trees)
        since = hunks(mine, new) if mine is not None and new is not None else []
        others = touched(found, since)
        if before is None or after is None or mine is None:
            others = set(range(len(found)))
    proposed = {id: hunks(as_lines(each, trees) or b"", new or b"") for id, each in theirs.items()}
    for at, each in enumerate(found):
        yield part(LINES, each, at in others, _who(each, since, proposed) or anybody)
    if before is not None and after is not None and before.mode != after.mode:
        yield part(MODE, None, wrote is not None and wrote.mode != after.mode, anybody)


def _who(
    hunk: Hunk, since: Sequence[Hunk], proposed: Mapping[str, Sequence[Hunk]]
) -> tuple[str, ...]:
    """Whose the changes within a hunk are: those that no session proposes are the user's."""
    within = touched(since, [hunk])
    found = {id: within & touched(since, theirs) for id, theirs in proposed.items()}
    names = tuple(id for id, changes in found.items() if changes)
    return names if within == set().union(*found.values()) else (USER, *names)


def _with_turns(now: Observation, session: SessionRow, found: list[File]) -> Iterator[File]:
    """The files, each hunk with the turns that had a part in it."""
    made = _turns(now, session, {file.path for file in found})
    for file in found:
        mine = made.get(file.path, [])
        numbers = sorted({number for number, _before, _after in mine})
        if len(numbers) <= 1:
            by_part = [numbers] * len(file.parts)
        else:
            by_part = _shares(now.trees, file, mine)
        parts = [
            Part(part.shown._replace(turns=tuple(share)), part.lines)
            for part, share in zip(file.parts, by_part, strict=True)
        ]
        yield file._replace(parts=tuple(parts))


def _turns(
    now: Observation, session: SessionRow, paths: set[bytes]
) -> dict[bytes, list[tuple[int, Entry | None, Entry | None]]]:
    """For each path the turns that changed it, with what it was before and after."""
    found: dict[bytes, list[tuple[int, Entry | None, Entry | None]]] = {}
    journal = now.project.journal
    for operation in turns_of(now.project, session) if paths else ():
        before, after = (
            checkpoints.by_id(journal, each) if each else None
            for each in (operation.before, operation.after)
        )
        number = operation.summary.get("turn")
        if before is None or after is None or number is None:
            continue
        changes = now.trees.differences(before.tree, after.tree)
        names = names_now(now, after.tree, changes, paths)
        for path, was, became in changes:
            path = names.get(path, path)
            if path in paths:
                found.setdefault(path, []).append((number, was, became))
    return found


def names_now(
    now: Observation, since: Id, changes: Sequence[Change], paths: Collection[bytes] | None = None
) -> dict[bytes, bytes]:
    """Where those of some changed files are now that have been renamed, to one of these paths."""
    present = Finder(now.seen.tree, now.trees.load)
    gone = {
        path
        for path, _was, became in changes
        if became is not None and path not in (paths or ()) and present(path) is None
    }
    if not gone:
        return {}
    found = renamed(now.trees, now.trees.differences(since, now.seen.tree), gone)
    return {old: new for old, new in found.items() if paths is None or new in paths}


def _shares(
    trees: Trees, file: File, made: Iterable[tuple[int, Entry | None, Entry | None]]
) -> list[list[int]]:
    """Which turns had a part in each hunk: those whose lines are in it, wherever they are now."""
    shares: list[set[int]] = [set() for _part in file.parts]
    present = as_lines(file.after, trees)
    for number, was, became in made:
        old, new = as_lines(was, trees), as_lines(became, trees)
        spans: list[Span] | None = None
        if present is not None and new is not None:
            changes = hunks(old or b"", new)
            places = [(each.new_start, each.new_start + len(each.new_lines)) for each in changes]
            spans = map_spans(places, new, present)
        for at, part in enumerate(file.parts):
            if part.lines is None or spans is None or _meets(part.lines, spans):
                shares[at].add(number)
    return [sorted(each) for each in shares]


def _meets(hunk: Hunk, spans: list[Span]) -> bool:
    start, end = hunk.new_start, hunk.new_start + len(hunk.new_lines)
    return any(
        max(start, first) < min(end, last)
        or ((start == end or first == last) and first <= end and start <= last)
        for first, last in spans
    )


def _name(
    session: SessionRow, path: bytes, kind: str, old: tuple[bytes, ...], new: tuple[bytes, ...]
) -> str:
    """A name that follows from the hunk alone, so that it stays while others come and go."""
    parts = (session.id.encode(), path, kind.encode(), b"".join(old), b"".join(new))
    digest = sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts))
    return digest.hexdigest()[:12]


def folders(
    trees: Trees,
    like: bytes | None,
    root: bytes,
    path: bytes,
    known: dict[bytes, Entry | None],
) -> dict[bytes, Entry | None]:
    """The folders above a path as one tree has them, where the other differs."""
    found: dict[bytes, Entry | None] = {}
    for above in parents(path):
        if above in known or like is None:
            continue
        wanted, held = trees.find(like, above), trees.find(root, above)
        if (wanted is None) != (held is None):
            found[above] = wanted
    return found


def _mode(entry: Entry | None) -> str | None:
    return None if entry is None else f"{entry.mode:04o}"
