"""Looking after the store: verify, collect garbage, forget, and say what is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import apsw

from mulligan.clock import now_ns
from mulligan.core.times import CLOCK_STEP_NS, nanoseconds
from mulligan.core.undo_order import next_redo, next_undo
from mulligan.errors import Corrupt, MulliganError, UsageError
from mulligan.journal import checkpoints, operations, sessions, views
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.store import gc as collector
from mulligan.store import verify as verifier
from mulligan.store.reachability import Root, reachable
from mulligan.store.writer import Writer
from mulligan.workspace.results.files import Collected, Finding, Forgotten, Verified
from mulligan.workspace.snapshot.checkpoints import coverage, new_id
from mulligan.workspace.snapshot.take import take_snapshot
from mulligan.workspace.trust import rule_files
from mulligan.worktree.scan.compare import SPECIAL
from mulligan.worktree.watch.remote import connect

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace


def verify(workspace: Workspace, *, repair: bool = False) -> Verified:
    """Reads everything. With `repair`, damaged objects are struck from the index, so that the
    next checkpoint stores their content anew if it is still on the disk."""
    # Whatever else is wrong here, it can be told what the store is like.
    with workspace.locked(recovering=True):
        if workspace.store.index.is_damaged():
            if not repair:
                raise Corrupt(
                    "The index of the store is damaged; `mulligan verify --repair` makes it again "
                    "from the packs."
                )
            workspace.store.index.rebuild()
        workspace.store.repair()
        found = verifier.verify(
            workspace.store,
            _roots(workspace),
            lambda done: workspace.progress("verifying", done, None),
        )
        problems = [f"{problem.where}: {problem.detail}" for problem in found.problems]
        problems += [f"journal: {line}" for line in _journal_problems(workspace)]
        if repair:
            _strike_out(workspace, found)
    return Verified(
        objects=found.objects,
        bytes=found.bytes,
        checkpoints=checkpoints.count(workspace.journal),
        problems=tuple(problems),
        repaired=len(found.damaged) if repair else 0,
    )


def _strike_out(workspace: Workspace, found: verifier.Verified) -> None:
    """Forgets what is damaged, and stores anew what the disk has of what built on it."""
    index = workspace.store.index
    index.drop((*found.damaged, *(record.id for record in found.unreadable_dependents)))
    index.drop_missing_packs()
    workspace.drop_cache()
    try:
        if found.unreadable_dependents:
            with Writer(workspace.store) as writer:
                take_snapshot(workspace, writer)
                writer.commit()
    finally:
        # What the disk does not have will be whole again if that which it builds on comes back.
        index.add(found.unreadable_dependents, {})


def gc(workspace: Workspace, *, dry_run: bool = False) -> Collected:
    with workspace.locked():
        found = collector.collect(
            workspace.store,
            list(_roots(workspace)),
            dry_run=dry_run,
            progress=lambda done: workspace.progress("following references", done, None),
        )
    return Collected(found.removed, found.freed_bytes, found.kept, dry_run)


def forget(
    workspace: Workspace,
    *,
    keep_last: int | None,
    older_than: float | None,
    max_bytes: int | None,
    session: str | None,
    dry_run: bool,
) -> Forgotten:
    """Drops checkpoints by count, age or size of the store; by the settings, if none is said.

    With `session`, only those of that session: all of them, if no other rule is given. The latest
    is never dropped, nor are those that the next undo and redo need.
    """
    has_rule = (keep_last, older_than, max_bytes) != (None, None, None)
    if not has_rule and session is None:
        rules = workspace.settings.retention
        if not any(rules):
            raise UsageError(
                "Say what to forget: by count, by age or by size, here or under [retention] in the "
                "settings. Nothing was dropped."
            )
        keep_last, max_bytes = rules.keep_last or None, rules.keep_size or None
        older_than = rules.keep_days * 86400.0 or None
    with workspace.locked():
        rows = everything = checkpoints.newest_first(workspace.journal)
        if session is not None:
            owner = sessions.resolve(workspace.journal, session).id
            rows = [row for row in everything if row.session == owner]
        keep = needed(workspace)
        chosen = set() if has_rule or session is None else {row.id for row in rows}
        if keep_last is not None:
            chosen |= _older_than_the_last(rows, max(1, keep_last))
        if older_than is not None:
            chosen |= _older(rows, older_than)
        if max_bytes is not None:
            chosen |= _over_budget(workspace, max_bytes)
        dropped = [row.id for row in reversed(rows) if row.id in chosen and row.id not in keep]
        if dropped and not dry_run:
            with workspace.journal.writing() as db:
                checkpoints.delete(db, dropped)
                views.forget(db)
    return Forgotten(tuple(dropped), len(everything) - len(dropped), dry_run)


def forget_named(workspace: Workspace, names: Sequence[str]) -> Forgotten:
    """Drops single checkpoints. The tree of one that undo needs stays, without its name."""
    with workspace.locked():
        rows = [checkpoints.resolve(workspace.journal, name) for name in names]
        ids = list(dict.fromkeys(row.id for row in rows))
        with workspace.journal.writing() as db:
            drop(workspace, db, ids)
        return Forgotten(tuple(ids), checkpoints.count(workspace.journal))


def drop(workspace: Workspace, db: apsw.Connection, ids: Sequence[str]) -> None:
    """Delete checkpoints inside the caller's transaction; keep the trees that undo needs."""
    kept = needed(workspace).intersection(ids)
    for id in ids:
        if id in kept:
            checkpoints.make_anonymous(db, id, new_id())
    checkpoints.delete(db, [id for id in ids if id not in kept])
    views.forget(db)


def _older_than_the_last(rows: list[CheckpointRow], count: int) -> set[str]:
    """Everything older than the last so many checkpoints that somebody took."""
    not_taken = set(checkpoints.NOT_TAKEN) - {checkpoints.FILES}
    taken = [at for at, row in enumerate(rows) if row.kind not in not_taken]
    return {row.id for row in rows[taken[count - 1] + 1 :]} if len(taken) >= count else set()


def _older(rows: list[CheckpointRow], seconds: float) -> set[str]:
    """Find the checkpoints that are older than so many seconds, whatever a wrong clock said.

    A time before that of an earlier checkpoint, or one that is still to come, is a wrong clock's:
    the first counts as the earlier one's, the second as that of the next checkpoint.
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
    found, following = set(), now
    for row in rows:
        taken = earliest[row.id]
        if row.kind != checkpoints.IMPORTED:
            taken = following = taken if taken <= now else following
        if taken < limit:
            found.add(row.id)
    return found


def doctor(workspace: Workspace) -> list[Finding]:
    """Looks for what usually goes wrong; reads, and changes nothing."""
    return list(_findings(workspace))


def _roots(workspace: Workspace) -> Iterator[Root]:
    """Everything in the journal that refers to an object."""
    for row in checkpoints.newest_first(workspace.journal):
        name = f"checkpoint {row.id}"
        yield Root(name, row.tree, True)
        yield Root(f"{name} (guarded)", row.guarded, True)
        yield Root(f"{name} (coverage)", row.coverage, False)
    for name, tree in views.trees(workspace.journal):
        yield Root(name, tree, True)
    for operation in operations.unfinished(workspace.journal):
        for id in (operation.plan_tree, operation.plan_guarded):
            if id is not None:
                yield Root(f"operation {operation.number}", id, True)


def _journal_problems(workspace: Workspace) -> list[str]:
    found = [row[0] for row in workspace.journal.rows("PRAGMA integrity_check")]
    problems = [] if found == ["ok"] else found
    rows = checkpoints.newest_first(workspace.journal)
    # Of an imported one another program's clock said when it was.
    times = [row.created_at for row in rows if row.kind not in checkpoints.PARTIAL]
    stamps = [nanoseconds(each) for each in reversed(times)]
    # A clock that was far off and set right goes back by more than that.
    if any(0 < was - now <= CLOCK_STEP_NS for was, now in pairwise(stamps)):
        problems.append("checkpoints are not in the order of time")
    return problems


def needed(workspace: Workspace) -> set[str | None]:
    """The checkpoints that must stay: the latest ones, and what the next undo and redo need."""
    last = (checkpoints.latest(workspace.journal), checkpoints.last_taken(workspace.journal))
    keep: set[str | None] = {row.id for row in last if row is not None}
    seen = operations.last_applied(workspace.journal)
    if seen is not None:
        keep.add(seen.after)
    for search in (next_undo, next_redo):
        step = search(lambda up_to: operations.newest_change(workspace.journal, up_to))
        operation = operations.by_number(workspace.journal, step.number) if step else None
        if operation is not None:
            keep |= {operation.before, operation.after}
    for operation in operations.unfinished(workspace.journal):
        keep.add(operation.before)
    return keep


def _over_budget(workspace: Workspace, max_bytes: int) -> set[str]:
    """The fewest of the oldest checkpoints without which the rest would fit."""
    rows = checkpoints.newest_first(workspace.journal)
    sizes = {record.id: record.length for record in workspace.store.index.all()}
    seen: set[bytes] = set()
    used = 0
    for position, row in enumerate(rows):
        roots = [
            Root(row.id, row.tree, True),
            Root(row.id, row.guarded, True),
            Root(row.id, row.coverage, False),
        ]
        known = set(seen)
        reachable(workspace.store, roots, lambda problem: None, seen=seen)
        used += sum(sizes.get(id, 0) for id in seen - known)
        if used > max_bytes and position:
            return {each.id for each in rows[position:]}
    return set()


def _findings(workspace: Workspace) -> Iterator[Finding]:
    yield Finding("ok", "project", f"{workspace.root} is kept in {workspace.project.directory}")
    latest = checkpoints.latest(workspace.journal)
    if latest is None:
        yield Finding("note", "checkpoints", "there is none yet", "run `mulligan checkpoint`")
    else:
        total = checkpoints.count(workspace.journal)
        yield Finding(
            "ok", "checkpoints", f"{total}, the latest {latest.id} of {latest.created_at}"
        )
        yield from _coverage_findings(workspace)
    yield from _rule_file_findings(workspace)
    yield from _store_findings(workspace)
    watcher = connect(workspace.project.path("watch.sock"))
    if watcher is not None:
        watcher.close()
        yield Finding("ok", "watcher", "running: checkpoints cost what changed")
    else:
        yield Finding(
            "note", "watcher", "not running: each checkpoint looks at every file",
            "run `mulligan watch` in another terminal for large projects",
        )  # fmt: skip


def _coverage_findings(workspace: Workspace) -> Iterator[Finding]:
    latest = checkpoints.latest(workspace.journal)
    assert latest is not None
    try:
        covered = coverage(workspace, latest)
    except Corrupt as problem:
        yield Finding("problem", "coverage", str(problem), "run `mulligan verify --repair`")
        return
    for path, reason in covered.skipped[:20]:
        told = f"{os.fsdecode(path)} is not in checkpoints: it {reason}"
        if reason in SPECIAL.values():
            yield Finding("note", "coverage", told, "nothing in it could be kept")
        else:
            yield Finding(
                "problem", "coverage", told,
                "change its permissions, raise max_file_size, or ignore it in .mulliganignore",
            )  # fmt: skip
    if covered.excluded:
        files = sum(each.files for each in covered.excluded) - covered.guarded
        told = f"files left out by ignore rules: {files:,}; guarded: {covered.guarded:,}"
        yield Finding("note", "coverage", told)


def _rule_file_findings(workspace: Workspace) -> Iterator[Finding]:
    for each in rule_files(workspace):
        if each.problem is not None:
            yield Finding(
                "problem", "rules", f"{each.path} is passed over: {each.problem}",
                "mend the file, or delete it; nothing in it counts",
            )  # fmt: skip
        elif each.can_be_accepted:
            weakens = ", ".join(each.weakens[:5]) + (" …" if len(each.weakens) > 5 else "")
            yield Finding(
                "note", "rules", f"{each.path} is not accepted; without effect: {weakens}",
                "run `mulligan trust` to see it and accept it",
            )  # fmt: skip


def _store_findings(workspace: Workspace) -> Iterator[Finding]:
    try:
        objects, stored = workspace.store.index.count()
    except MulliganError as problem:
        yield Finding("problem", "store", str(problem), "run `mulligan verify`")
        return
    size = f"{stored / (1 << 20):,.1f} MB" if stored >= 1 << 20 else f"{stored / 1024:.1f} KB"
    yield Finding(
        "ok", "store", f"{objects:,} objects in {size}; `mulligan verify` reads them all again"
    )
    free = os.statvfs(workspace.project.directory)
    available = free.f_bavail * free.f_frsize
    if available < 1 << 30:
        yield Finding(
            "problem", "disk", f"only {available >> 20} MB are free where the store is",
            "free some space, or run `mulligan forget` and `mulligan gc`",
        )  # fmt: skip
    damaged = os.path.join(workspace.store.directory, "index.sqlite.damaged")
    if os.path.exists(damaged):
        yield Finding(
            "note", "store", "the index was damaged and has been made again",
            f"run `mulligan verify`, then delete {damaged}",
        )  # fmt: skip
