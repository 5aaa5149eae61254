"""Forget checkpoints: by count, age, size or name."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.clock import now_ns
from mulligan.core.ids import CheckpointId
from mulligan.core.times import nanoseconds
from mulligan.errors import UsageError
from mulligan.journal import checkpoints, sessions, views
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.store.reachability import Root, reachable
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import Forgotten
from mulligan.workspace.snapshot.drop import drop, needed


def forget(
    project: OpenProject,
    *,
    keep_last: int | None,
    older_than: float | None,
    max_bytes: int | None,
    session: str | None,
    dry_run: bool,
) -> Forgotten:
    """Delete checkpoints by count, age or store size; without a rule, by the settings.

    With `session`, only that session's checkpoints: all of them without another rule. The latest
    checkpoint stays, and so do those that the next undo and redo need.
    """
    has_rule = (keep_last, older_than, max_bytes) != (None, None, None)
    if not has_rule and session is None:
        rules = project.settings.retention
        if not any(rules):
            raise UsageError(
                "Say what to forget: by count, by age or by size, here or under [retention] in the "
                "settings. Nothing was dropped."
            )
        keep_last, max_bytes = rules.keep_last or None, rules.keep_size or None
        older_than = rules.keep_days * 86400.0 or None
    with project.locked():
        rows = everything = checkpoints.newest_first(project.journal)
        if session is not None:
            owner = sessions.resolve(project.journal, session).id
            rows = [row for row in everything if row.session == owner]
        keep = needed(project)
        chosen = set() if has_rule or session is None else {row.id for row in rows}
        if keep_last is not None:
            chosen |= _older_than_the_last(rows, max(1, keep_last))
        if older_than is not None:
            chosen |= _older(rows, older_than)
        if max_bytes is not None:
            chosen |= _over_budget(project, max_bytes)
        dropped = [row.id for row in reversed(rows) if row.id in chosen and row.id not in keep]
        if dropped and not dry_run:
            with project.journal.writing() as db:
                checkpoints.delete(db, dropped)
                views.forget(db)
    return Forgotten(tuple(dropped), len(everything) - len(dropped), dry_run)


def forget_named(project: OpenProject, names: Sequence[str]) -> Forgotten:
    """Delete single checkpoints. If undo needs one, its tree stays, without its name."""
    with project.locked():
        rows = [checkpoints.resolve(project.journal, name) for name in names]
        ids = list(dict.fromkeys(row.id for row in rows))
        with project.journal.writing() as db:
            drop(project, db, ids)
        return Forgotten(tuple(ids), checkpoints.count(project.journal))


def _over_budget(project: OpenProject, max_bytes: int) -> set[CheckpointId]:
    """Return the fewest oldest checkpoints whose deletion makes the store fit."""
    rows = checkpoints.newest_first(project.journal)
    sizes: dict[bytes, int] = {record.id: record.length for record in project.store.index.all()}
    seen: set[bytes] = set()
    used = 0
    for position, row in enumerate(rows):
        roots = [
            Root(row.id, row.tree, True),
            Root(row.id, row.guarded, True),
            Root(row.id, row.coverage, False),
        ]
        known = set(seen)
        reachable(project.store, roots, lambda problem: None, seen=seen)
        used += sum(sizes.get(id, 0) for id in seen - known)
        if used > max_bytes and position:
            return {each.id for each in rows[position:]}
    return set()


def _older(rows: list[CheckpointRow], seconds: float) -> set[CheckpointId]:
    """Return checkpoints older than some seconds, despite wrong clocks.

    A time before an earlier checkpoint's counts as that one's; a time in the future counts as that
    of the next checkpoint.
    """
    now = now_ns()
    limit = now - int(seconds * 1e9)
    earliest: dict[str, int] = {}
    newest = None
    for row in reversed(rows):
        stamp = nanoseconds(row.created_at)
        if row.kind == checkpoints.IMPORTED or stamp > now:
            earliest[row.id] = stamp
        else:
            newest = earliest[row.id] = stamp if newest is None else max(stamp, newest)
    older, following = set(), now
    for row in rows:
        taken = earliest[row.id]
        if row.kind != checkpoints.IMPORTED:
            taken = following = taken if taken <= now else following
        if taken < limit:
            older.add(row.id)
    return older


def _older_than_the_last(rows: list[CheckpointRow], count: int) -> set[CheckpointId]:
    """Return everything older than the last `count` checkpoints that were taken on purpose."""
    not_taken = set(checkpoints.NOT_TAKEN) - {checkpoints.FILES}
    taken = [at for at, row in enumerate(rows) if row.kind not in not_taken]
    return {row.id for row in rows[taken[count - 1] + 1 :]} if len(taken) >= count else set()
