"""Undoing pending work on the disk: by hunk, file, session or turn; what others did stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mulligan.core.coverage import decode_path
from mulligan.core.hunks import Hunk, apply_hunks, hunks, revert_hunks
from mulligan.core.merge import touched
from mulligan.core.tree import Change, Entry
from mulligan.errors import NotFound, UsageError
from mulligan.journal import checkpoints
from mulligan.journal.operations import OperationRow
from mulligan.journal.sessions import SessionRow
from mulligan.workspace.attribution.carrying import as_lines, same
from mulligan.workspace.attribution.observation import Observation, observing
from mulligan.workspace.attribution.turns import record_open_turns
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.run import RestoreOutcome, RestoreRequest, perform
from mulligan.workspace.restore.taking_out import CHANGED_SINCE, SOME_LINES, revert_change
from mulligan.workspace.restore.target import HunkDecision, RestoreTarget, drop_blocked_paths
from mulligan.workspace.results.files import RestoreResult
from mulligan.workspace.results.review import Discarded
from mulligan.workspace.review.pending import File, Part, files, folders, names_now, turns_of
from mulligan.workspace.review.selection import Choice, chosen_of, session_of
from mulligan.workspace.snapshot.trees import Trees

Chosen = list[tuple[File, list[Part]]]


def discard(
    project: OpenProject, choice: Choice, *, force: bool = False, preview: bool = False
) -> Discarded:
    """Moves the disk by what is chosen, back to the baseline; the baseline stays as it is.

    What somebody has changed since within a hunk is left and reported, unless `force`.
    """
    undone: list[str] = []
    left: set[str] = set()
    results: list[RestoreResult] = []
    with project.locked():
        if not preview:
            record_open_turns(project)
        if choice.turn is not None:
            done, left = _discard_turn(project, choice, force=force, preview=preview)
            return Discarded(tuple(done[0]), tuple(sorted(left)), (done[1],))
        waiting = _sessions_with_choice(project, choice)
        # The latest first: what it did on top of another's work is then out of the way.
        for session in waiting:
            names, conflicts, result = _discard(
                project, session, choice, force=force, preview=preview
            )
            undone += names
            left |= conflicts
            results.append(result)
    return Discarded(tuple(undone), tuple(sorted(left)), tuple(results))


def undoing(
    project: OpenProject, now: Observation, chosen: Chosen, *, force: bool
) -> tuple[RestoreTarget, list[str], list[str]]:
    """To have these hunks undone; and which are, and which not because others are in them."""
    undone: list[str] = []
    conflicts: list[str] = []
    main: dict[bytes, Entry | None] = {}
    spared: dict[bytes, str] = {}
    for file, parts in chosen:
        acting = [part for part in parts if force or not part.shown.mixed]
        undone += [part.shown.id for part in acting]
        if len(acting) < len(parts):
            conflicts += [part.shown.id for part in parts if part not in acting]
            spared[file.path] = CHANGED_SINCE if file.appeared_or_vanished else SOME_LINES
        if acting:
            main[file.path] = _undone_entry(now.trees, file, acting)
            main |= folders(now.trees, file.view.approved, now.seen.tree, file.path, main)
    wish = drop_blocked_paths(project, now.seen, RestoreTarget("discard", None, main, {}, spared))
    return wish, undone, conflicts


def _discard(
    project: OpenProject, session: SessionRow, choice: Choice, *, force: bool, preview: bool
) -> tuple[list[str], set[str], RestoreResult]:
    def target(now: Observation) -> RestoreTarget:
        pending = files(now, only=session, paths=choice.paths, turns=False)
        mine = choice._replace(session=session.id)
        chosen = chosen_of(pending, mine, missing_is_fine=True)
        target, undone, conflicts = undoing(project, now, chosen, force=force)
        path_of = {
            part.shown.id: decode_path(file.path) for file, parts in chosen for part in parts
        }
        return target._replace(
            session=session.id,
            session_effects={"summary": {"hunks": undone, "conflicts": conflicts}},
            hunks=HunkDecision(tuple(undone), tuple(conflicts), path_of),
        )

    return _outcome(perform(project, RestoreRequest(target, replace_open=force, preview=preview)))


def _outcome(outcome: RestoreOutcome) -> tuple[list[str], set[str], RestoreResult]:
    """Split the chosen hunks into those that were undone and those that stayed."""
    hunks = outcome.target.hunks
    assert hunks is not None
    stayed = _stayed(outcome.result, hunks.path_of)
    undone = [id for id in hunks.undone if id not in stayed]
    return undone, {*hunks.conflicts, *stayed}, outcome.result


def _stayed(result: RestoreResult, path_of: Mapping[str, str]) -> set[str]:
    """The hunks in files that were left alone as a whole."""
    left = {skip.path for skip in result.skipped} - {*result.restored, *result.deleted}
    return {id for id, path in path_of.items() if path in left}


def _discard_turn(
    project: OpenProject, choice: Choice, *, force: bool, preview: bool
) -> tuple[tuple[list[str], RestoreResult], set[str]]:
    """Takes one turn's work out, where it is still pending; what later turns did stays."""
    if choice.hunks:
        raise UsageError("Name hunks, or a turn; a turn is taken out with all its hunks.")
    session = session_of(project, choice)
    assert session is not None
    steps = [
        operation
        for operation in turns_of(project, session)
        if operation.summary.get("turn") == choice.turn
    ]
    if not steps:
        raise NotFound(
            f"Session {session.id} has no turn {choice.turn} that changed anything, on the branch "
            "where it stands. `mulligan pending` names hunks, whatever they come from."
        )

    def target(now: Observation) -> RestoreTarget:
        pending = {file.path: file for file in files(now, only=session, paths=choice.paths)}
        main: dict[bytes, Entry | None] = {}
        skipped: dict[bytes, str] = {}
        for operation in reversed(steps):
            for path, wanted, reason in _turn_taken_out(now, operation, pending, main, force):
                main[path] = wanted
                approved = pending[path].view.approved
                main.update(folders(now.trees, approved, now.seen.tree, path, main))
                if reason is not None:
                    skipped[path] = reason
        hunks = _hunks_of_turn(pending, choice.turn, main, skipped)
        found = RestoreTarget(
            "discard", None, main, {}, skipped, session=session.id, hunks=hunks,
            session_effects={"summary": {"turn": choice.turn, "hunks": list(hunks.undone)}},
        )  # fmt: skip
        return drop_blocked_paths(project, now.seen, found)

    undone, conflicts, result = _outcome(
        perform(project, RestoreRequest(target, replace_open=force, preview=preview))
    )
    return (undone, result), conflicts


def _hunks_of_turn(
    pending: Mapping[bytes, File],
    turn: int | None,
    main: Mapping[bytes, Entry | None],
    skipped: Mapping[bytes, str],
) -> HunkDecision:
    """Return the turn's pending hunks: undone where its file changes, conflicts where skipped."""
    undone: list[str] = []
    conflicts: list[str] = []
    path_of: dict[str, str] = {}
    for path, file in pending.items():
        ids = [part.shown.id for part in file.parts if turn in part.shown.turns]
        path_of.update((id, decode_path(path)) for id in ids)
        undone += ids if path in main else []
        conflicts += ids if path in skipped else []
    return HunkDecision(tuple(undone), tuple(conflicts), path_of)


def _turn_taken_out(
    now: Observation,
    operation: OperationRow,
    waiting: dict[bytes, File],
    main: dict[bytes, Entry | None],
    force: bool,
) -> Iterable[tuple[bytes, Entry | None, str | None]]:
    """For each path of a turn with pending work: what should be there without the turn."""
    journal, trees = now.project.journal, now.trees
    before, after = (
        checkpoints.by_id(journal, each) if each else None
        for each in (operation.before, operation.after)
    )
    if before is None or after is None:
        raise NotFound("What that turn changed was forgotten; it cannot be taken out by itself.")
    made = trees.differences(before.tree, after.tree)
    names = names_now(now, after.tree, made, waiting)
    for path, was, became in made:
        path = names.get(path, path)
        file = waiting.get(path)
        if file is None:
            continue
        change = Change(path, became, was)
        held = main.get(path, file.after)
        wanted, reason = (change.after, None) if force else revert_change(trees, change, held)
        present, goal = as_lines(held, trees), as_lines(wanted, trees)
        if held is not None and wanted is not None and present is not None and goal is not None:
            # Only where it is pending: what was kept of the turn stays.
            edits = hunks(present, goal)
            pending = hunks(as_lines(file.before, trees) or b"", present)
            open_ones = touched([_flipped(each) for each in edits], pending)
            content = apply_hunks(present, [edits[at] for at in sorted(open_ones)])
            wanted = trees.with_content(wanted, content)
        if not same(held, wanted) or reason is not None:
            yield path, wanted, reason


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


def _sessions_with_choice(project: OpenProject, choice: Choice) -> list[SessionRow]:
    """The sessions that a choice is about, the one that worked last first."""
    only = session_of(project, choice)
    with observing(project) as now:
        now.commit()
        found = files(now, only=only, paths=choice.paths, turns=False)
    chosen = chosen_of(found, choice)
    rows = {file.session.number: file.session for file, _parts in chosen}
    return sorted(rows.values(), key=lambda row: row.updated_at, reverse=True)


def _flipped(hunk: Hunk) -> Hunk:
    return Hunk(hunk.new_start, hunk.new_lines, hunk.old_start, hunk.old_lines)
