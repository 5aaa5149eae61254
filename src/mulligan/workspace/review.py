"""Review: keeping and undoing what is pending, down to the hunk.

Nothing is tracked: baseline and disk give the hunks. *Keep* moves the baseline by a hunk, *discard*
moves the disk by it. Each decision is an operation, and `undo` takes it back like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mulligan.core.coverage import text
from mulligan.core.hunks import Hunk, apply_hunks, hunks, revert_hunks
from mulligan.core.merge import touched
from mulligan.core.tree import Entry
from mulligan.errors import NotFound, UsageError
from mulligan.journal import checkpoints, operations, sessions
from mulligan.journal.operations import OperationRow
from mulligan.journal.sessions import SessionRow
from mulligan.journal.views import View
from mulligan.workspace.observe import Observation, observing
from mulligan.workspace.pending import File, Part, files, parents
from mulligan.workspace.restore import perform
from mulligan.workspace.results import RestoreResult
from mulligan.workspace.review_results import (
    Discarded,
    Kept,
    PendingStats,
    Position,
    Review,
)
from mulligan.workspace.standing import as_lines, quiet, same
from mulligan.workspace.taking_out import CHANGED_SINCE, SOME_LINES, without
from mulligan.workspace.trees import Trees
from mulligan.workspace.wish import Wish, settled

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace


class Choice(NamedTuple):
    """What a decision is about: hunks by id, paths, a session, a turn of it; else everything."""

    hunks: tuple[str, ...] = ()
    paths: tuple[bytes, ...] = ()
    session: str | None = None
    turn: int | None = None


EVERYTHING = Choice()


def review(workspace: Workspace, choice: Choice = EVERYTHING) -> Review:
    """Everything that waits for a decision, as it is at this moment."""
    with workspace.locked():
        only = _session(workspace, choice)
        with observing(workspace) as now:
            now.commit()
            found = files(now, only=only, paths=choice.paths)
        workspace.save_cache()
    if choice.turn is not None:
        found = [_of_turn(file, choice.turn) for file in found]
    return Review(tuple(file.shown for file in found if file.parts))


def stats(workspace: Workspace) -> dict[str, PendingStats]:
    """How much each session has pending; those with nothing are not named."""
    found: dict[str, PendingStats] = {}
    for file in review(workspace).files:
        known = found.get(file.session, PendingStats(0, 0, 0))
        found[file.session] = PendingStats(
            known.additions + file.additions, known.deletions + file.deletions, known.files + 1
        )
    return found


def position(
    workspace: Workspace,
    current: str | None = None,
    *,
    step: int = 0,
    path: str | None = None,
    choice: Choice = EVERYTHING,
) -> Position:
    """Where a hunk is among all of them, or the one so many steps on, around the end if need be.

    A hunk that is gone is stood in for by the first one of `path`, or after it: the reader's
    place is kept while things change around it.
    """
    found = review(workspace, choice).hunks
    if not found:
        return Position(0, 0)
    at = next((index for index, hunk in enumerate(found) if hunk.id == current), None)
    if at is None:
        at = 0
        if path is not None:
            there = (index for index, hunk in enumerate(found) if hunk.path >= path)
            at = next(there, 0)
        if step > 0:
            step -= 1
    at = (at + step) % len(found)
    return Position(at + 1, len(found), found[at].id, found[at].path, found[at].session)


def keep(workspace: Workspace, choice: Choice) -> Kept:
    """Moves the baseline by what is chosen; the disk stays as it is."""
    with workspace.locked():
        only = _session(workspace, choice)
        with observing(workspace) as now:
            now.commit()
            found = files(now, only=only, paths=choice.paths, turns=choice.turn is not None)
            chosen = _chosen(found, choice)
            by_session = _by_session(chosen)
            made = {number: _kept_view(now, work) for number, work in by_session.items()}
            now.commit()
            numbers = []
            with workspace.journal.writing() as db:
                after = now.safety(db, "Before keeping") if made else None
                for number, view in made.items():
                    assert after is not None
                    work = by_session[number]
                    numbers.append(
                        now.record(
                            db,
                            kind="keep",
                            after=after,
                            before=after.id,
                            session=work[0][0].session.id,
                            changed=True,
                            changes={number: view},
                            summary=_summary(work),
                        )
                    )
                    now.standing = now.standing._replace(moved=False)
        workspace.save_cache()
    whole = [file for file, parts in chosen if len(parts) == len(file.parts)]
    return Kept(
        tuple(numbers),
        tuple(part.shown.id for _file, parts in chosen for part in parts),
        tuple(text(file.path) for file in whole),
    )


def discard(
    workspace: Workspace, choice: Choice, *, force: bool = False, preview: bool = False
) -> Discarded:
    """Moves the disk by what is chosen, back to the baseline; the baseline stays as it is.

    What somebody has changed since within a hunk is left and reported, unless `force`.
    """
    undone: list[str] = []
    left: set[str] = set()
    results: list[RestoreResult] = []
    with workspace.locked():
        if choice.turn is not None:
            done, left = _discard_turn(workspace, choice, force=force, preview=preview)
            return Discarded(tuple(done[0]), tuple(sorted(left)), (done[1],))
        waiting = _sessions_with_choice(workspace, choice)
        # The latest first: what it did on top of another's work is then out of the way.
        for session in waiting:
            names, conflicts, result = _discard(
                workspace, session, choice, force=force, preview=preview
            )
            undone += names
            left |= conflicts
            results.append(result)
    return Discarded(tuple(undone), tuple(sorted(left)), tuple(results))


def _discard(
    workspace: Workspace, session: SessionRow, choice: Choice, *, force: bool, preview: bool
) -> tuple[list[str], set[str], RestoreResult]:
    undone: list[str] = []
    conflicts: set[str] = set()

    def wishing(now: Observation) -> Wish:
        undone.clear()
        conflicts.clear()
        main: dict[bytes, Entry | None] = {}
        spared: dict[bytes, str] = {}
        found = files(now, only=session, paths=choice.paths, turns=False)
        for file, parts in _chosen(
            found, choice._replace(session=session.id), missing_is_fine=True
        ):
            acting = [part for part in parts if force or not part.shown.mixed]
            for part in parts:
                if part not in acting:
                    conflicts.add(part.shown.id)
                    spared[file.path] = CHANGED_SINCE if file.appeared_or_vanished else SOME_LINES
            if acting:
                undone.extend(part.shown.id for part in acting)
                main[file.path] = _undone_entry(now.trees, file, acting)
                main |= _folders(now.trees, file.view.approved, now.seen.tree, file.path, main)
        wish = Wish(
            "discard",
            None,
            main,
            {},
            spared,
            session=session.id,
            intent={"summary": {"hunks": list(undone), "conflicts": sorted(conflicts)}},
        )
        return settled(workspace, now.seen, wish)

    result = perform(workspace, wishing, preview=preview)
    return undone, conflicts, result


def _discard_turn(
    workspace: Workspace, choice: Choice, *, force: bool, preview: bool
) -> tuple[tuple[list[str], RestoreResult], set[str]]:
    """Takes one turn's work out, where it is still pending; what later turns did stays."""
    if choice.session is None:
        raise UsageError("Say whose turn: a turn is one of a session.")
    if choice.hunks:
        raise UsageError("Name hunks, or a turn; a turn is taken out with all its hunks.")
    session = sessions.resolve(workspace.journal, choice.session)
    steps = [
        operation
        for operation in operations.of_session(workspace.journal, session.id, ("turn",))
        if operation.summary.get("turn") == choice.turn and operation.changed
    ]
    if not steps:
        raise NotFound(f"Session {session.id} has no turn {choice.turn} that changed anything.")
    undone: list[str] = []
    conflicts: set[str] = set()

    def wishing(now: Observation) -> Wish:
        undone.clear()
        conflicts.clear()
        waiting = {file.path: file for file in files(now, only=session, paths=choice.paths)}
        main: dict[bytes, Entry | None] = {}
        spared: dict[bytes, str] = {}
        for operation in reversed(steps):
            for path, wanted, reason in _turn_taken_out(now, operation, waiting, main, force):
                main[path] = wanted
                approved = waiting[path].view.approved
                main.update(_folders(now.trees, approved, now.seen.tree, path, main))
                if reason is not None:
                    spared[path] = reason
        for path, file in waiting.items():
            mine = [part for part in file.parts if choice.turn in part.shown.turns]
            if path in main:
                undone.extend(part.shown.id for part in mine)
            if path in spared:
                conflicts.update(part.shown.id for part in mine)
        wish = Wish(
            "discard",
            None,
            main,
            {},
            spared,
            session=session.id,
            intent={"summary": {"turn": choice.turn, "hunks": list(undone)}},
        )
        return settled(workspace, now.seen, wish)

    result = perform(workspace, wishing, preview=preview)
    return (undone, result), conflicts


def _turn_taken_out(
    now: Observation,
    operation: OperationRow,
    waiting: dict[bytes, File],
    main: dict[bytes, Entry | None],
    force: bool,
) -> Iterable[tuple[bytes, Entry | None, str | None]]:
    """For each path of a turn with pending work: what should be there without the turn."""
    journal, trees = now.workspace.journal, now.trees
    before, after = (
        checkpoints.by_id(journal, each) if each else None
        for each in (operation.before, operation.after)
    )
    if before is None or after is None:
        raise NotFound("What that turn changed was forgotten; it cannot be taken out by itself.")
    for change in trees.differences(after.tree, before.tree):
        file = waiting.get(change.path)
        if file is None:
            continue
        held = main.get(change.path, file.after)
        wanted, reason = (change.after, None) if force else without(trees, change, held)
        present, goal = as_lines(held, trees), as_lines(wanted, trees)
        if held is not None and wanted is not None and present is not None and goal is not None:
            # Only where it is pending: what was kept of the turn stays.
            edits = hunks(present, goal)
            pending = hunks(as_lines(file.before, trees) or b"", present)
            open_ones = touched([_flipped(each) for each in edits], pending)
            content = apply_hunks(present, [edits[at] for at in sorted(open_ones)])
            wanted = trees.with_content(wanted, content)
        if not same(held, wanted) or reason is not None:
            yield change.path, wanted, reason


def _kept_view(now: Observation, work: list[tuple[File, list[Part]]]) -> View:
    """The session's view once what is chosen belongs to its baseline."""
    trees = now.trees
    view = work[0][0].view
    approved = view.approved or now.seen.tree
    written = view.written or approved
    into: dict[bytes, Entry | None] = {}
    into_written: dict[bytes, Entry | None] = {}
    for file, parts in work:
        if len(parts) == len(file.parts):
            into[file.path] = into_written[file.path] = file.after
        else:
            into[file.path] = _kept_entry(trees, file, parts)
            into_written[file.path] = _still_written(trees, file, parts)
        into |= _folders(trees, now.seen.tree, approved, file.path, into)
    view = view._replace(
        approved=trees.edit(approved, into), written=trees.edit(written, into_written)
    )
    return quiet(view, now.seen.tree)


def _kept_entry(trees: Trees, file: File, parts: list[Part]) -> Entry | None:
    """What is approved at a path once some of its hunks are."""
    assert file.before is not None
    assert file.after is not None
    chosen = [part.lines for part in parts if part.lines is not None]
    entry = file.before
    if chosen:
        entry = trees.with_content(entry, apply_hunks(trees.read(entry), chosen))
    if len(chosen) < len(parts):
        entry = entry._replace(mode=file.after.mode)
    return entry


def _still_written(trees: Trees, file: File, parts: list[Part]) -> Entry | None:
    """The disk without what others changed within the hunks that are still pending."""
    wrote = trees.find(file.view.written, file.path) if file.view.written else file.after
    if same(wrote, file.after) or wrote is None or file.after is None:
        return wrote
    mine, present = as_lines(wrote, trees), as_lines(file.after, trees)
    if mine is None or present is None:
        return wrote
    rest = [part.lines for part in file.parts if part.lines is not None and part not in parts]
    theirs = hunks(mine, present)
    within = touched(theirs, rest)
    content = revert_hunks(present, [theirs[at] for at in sorted(within)])
    return trees.with_content(file.after, content)


def _undone_entry(trees: Trees, file: File, parts: list[Part]) -> Entry | None:
    """What the disk should hold at a path once some of its hunks are undone."""
    if len(parts) == len(file.parts) or file.before is None or file.after is None:
        return file.before
    chosen = [part.lines for part in parts if part.lines is not None]
    entry = file.after
    if chosen:
        entry = trees.with_content(entry, revert_hunks(trees.read(entry), chosen))
    if len(chosen) < len(parts):
        entry = entry._replace(mode=file.before.mode)
    return entry


def _folders(
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


def _chosen(
    found: list[File], choice: Choice, *, missing_is_fine: bool = False
) -> list[tuple[File, list[Part]]]:
    """The files with those of their hunks that a choice names; all, if it names none."""
    wanted = set(choice.hunks)
    chosen = []
    for file in found:
        parts = [
            part
            for part in file.parts
            if (not wanted or _names(wanted, part))
            and (choice.turn is None or choice.turn in part.shown.turns)
        ]
        if parts:
            chosen.append((file, parts))
    if wanted and not missing_is_fine:
        _check_found(wanted, chosen)
    if choice.paths and not chosen and not missing_is_fine:
        raise NotFound(f"Nothing is pending in {', '.join(map(text, choice.paths))}.")
    return chosen


def _names(wanted: Iterable[str], part: Part) -> bool:
    return any(part.shown.id == name or _is_prefix(name, part.shown.id) for name in wanted)


def _is_prefix(name: str, id: str) -> bool:
    return len(name) >= 4 and id.startswith(name) and not id[len(name) :].startswith("-")


def _check_found(wanted: set[str], chosen: list[tuple[File, list[Part]]]) -> None:
    ids = [part.shown.id for _file, parts in chosen for part in parts]
    for name in sorted(wanted):
        fitting = [id for id in ids if id == name or _is_prefix(name, id)]
        if not fitting:
            raise NotFound(f"There is no pending hunk {name}; `mulligan pending` lists them.")
        if name not in ids and len(fitting) > 1:
            raise UsageError(f"Hunk {name} could be {' or '.join(fitting[:3])}; give more of it.")


def _by_session(
    chosen: list[tuple[File, list[Part]]],
) -> dict[int, list[tuple[File, list[Part]]]]:
    found: dict[int, list[tuple[File, list[Part]]]] = {}
    for file, parts in chosen:
        found.setdefault(file.session.number, []).append((file, parts))
    return found


def _sessions_with_choice(workspace: Workspace, choice: Choice) -> list[SessionRow]:
    """The sessions that a choice is about, the one that worked last first."""
    only = _session(workspace, choice)
    with observing(workspace) as now:
        now.commit()
        found = files(now, only=only, paths=choice.paths, turns=False)
    chosen = _chosen(found, choice)
    rows = {file.session.number: file.session for file, _parts in chosen}
    return sorted(rows.values(), key=lambda row: row.updated_at, reverse=True)


def _session(workspace: Workspace, choice: Choice) -> SessionRow | None:
    if choice.session is None:
        return None
    return sessions.resolve(workspace.journal, choice.session)


def _of_turn(file: File, turn: int) -> File:
    return file._replace(parts=tuple(part for part in file.parts if turn in part.shown.turns))


def _flipped(hunk: Hunk) -> Hunk:
    return Hunk(hunk.new_start, hunk.new_lines, hunk.old_start, hunk.old_lines)


def _summary(work: Sequence[tuple[File, list[Part]]]) -> dict[str, list[str]]:
    return {
        "hunks": [part.shown.id for _file, parts in work for part in parts],
        "paths": [text(file.path) for file, _parts in work],
    }
