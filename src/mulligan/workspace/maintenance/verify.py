"""Verify every object and reference of the store, and collect garbage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from mulligan.core.times import CLOCK_STEP_NS, nanoseconds
from mulligan.errors import Corrupt
from mulligan.journal import checkpoints, operations, views
from mulligan.store import gc as collector
from mulligan.store import verify as verifier
from mulligan.store.reachability import Root
from mulligan.store.writer import Writer
from mulligan.workspace.results.files import Collected, Verified
from mulligan.workspace.snapshot.take import take_snapshot

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
