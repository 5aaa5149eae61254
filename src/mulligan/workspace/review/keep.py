"""Review: keeping and undoing what is pending, down to the hunk.

Nothing is tracked: baseline and disk give the hunks. *Keep* moves the baseline by a hunk, *discard*
moves the disk by it. Each decision is an operation, and `undo` takes it back like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.core.coverage import decode_path
from mulligan.core.hunks import apply_hunks, hunks, revert_hunks
from mulligan.core.merge import touched
from mulligan.core.tree import Entry
from mulligan.journal.views import View
from mulligan.workspace.attribution.carrying import as_lines, same
from mulligan.workspace.attribution.observation import Observation, observing
from mulligan.workspace.attribution.turns import record_open_turns
from mulligan.workspace.attribution.view import quiet
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.review import Kept, PendingStats, Position, Review
from mulligan.workspace.review.pending import File, Part, files, folders
from mulligan.workspace.review.selection import EVERYTHING, Choice, chosen_of, of_turn, session_of
from mulligan.workspace.snapshot.trees import Trees


def review(project: OpenProject, choice: Choice = EVERYTHING) -> Review:
    """Everything that waits for a decision, as it is at this moment."""
    with project.locked():
        only = session_of(project, choice)
        with observing(project) as now:
            now.commit()
            found = files(now, only=only, paths=choice.paths)
        project.save_cache()
    if choice.turn is not None:
        found = [of_turn(file, choice.turn) for file in found]
    return Review(tuple(file.shown for file in found if file.parts))


def stats(project: OpenProject) -> dict[str, PendingStats]:
    """How much each session has pending; those with nothing are not named."""
    with project.locked():
        with observing(project) as now:
            now.commit()
            # Asked for again and again, by lists that show it: it follows from these.
            cause = (now.seen.tree, now.seen.covered, sorted(now.standing.views.items()))
            if project.pending_stats_cache is None or project.pending_stats_cache[0] != cause:
                project.pending_stats_cache = (cause, _counted(files(now, turns=False)))
            found = project.pending_stats_cache[1]
        project.save_cache()
    return dict(found)


def _counted(pending: list[File]) -> dict[str, PendingStats]:
    found: dict[str, PendingStats] = {}
    for file in (each.shown for each in pending if each.parts):
        known = found.get(file.session, PendingStats(0, 0, 0))
        found[file.session] = PendingStats(
            known.additions + file.additions, known.deletions + file.deletions, known.files + 1
        )
    return found


def position(
    project: OpenProject,
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
    found = review(project, choice).hunks
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


def keep(project: OpenProject, choice: Choice) -> Kept:
    """Moves the baseline by what is chosen; the disk stays as it is."""
    with project.locked():
        record_open_turns(project)
        only = session_of(project, choice)
        with observing(project) as now:
            now.commit()
            found = files(now, only=only, paths=choice.paths, turns=choice.turn is not None)
            chosen = chosen_of(found, choice)
            by_session = _by_session(chosen)
            made = {number: _kept_view(now, work) for number, work in by_session.items()}
            now.commit()
            numbers = []
            with project.journal.writing() as db:
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
        project.save_cache()
    whole = [file for file, parts in chosen if len(parts) == len(file.parts)]
    return Kept(
        tuple(numbers),
        tuple(part.shown.id for _file, parts in chosen for part in parts),
        tuple(decode_path(file.path) for file in whole),
    )


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
        into |= folders(trees, now.seen.tree, approved, file.path, into)
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


def _by_session(
    chosen: list[tuple[File, list[Part]]],
) -> dict[int, list[tuple[File, list[Part]]]]:
    found: dict[int, list[tuple[File, list[Part]]]] = {}
    for file, parts in chosen:
        found.setdefault(file.session.number, []).append((file, parts))
    return found


def _summary(work: Sequence[tuple[File, list[Part]]]) -> dict[str, list[str]]:
    return {
        "hunks": [part.shown.id for _file, parts in work for part in parts],
        "paths": [decode_path(file.path) for file, _parts in work],
    }
