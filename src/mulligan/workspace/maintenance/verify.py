"""Verify every object and reference of the store, and collect garbage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from mulligan.core.times import CLOCK_STEP_NS, nanoseconds
from mulligan.errors import Corrupt
from mulligan.journal import checkpoints, operations, views
from mulligan.store import gc as collector
from mulligan.store import verify as verifier
from mulligan.store.reachability import Root
from mulligan.store.writer import Writer
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import Collected, Verified
from mulligan.workspace.snapshot.take import take_snapshot


def verify(project: OpenProject, *, repair: bool = False) -> Verified:
    """Read every object. With `repair`, drop damaged objects from the index.

    The next checkpoint then stores their content again, if it is still on disk.
    """
    # A project that cannot recover must still be verifiable.
    with project.locked(recovering=True):
        if project.store.index.is_damaged():
            if not repair:
                raise Corrupt(
                    "The index of the store is damaged; `mulligan verify --repair` rebuilds it "
                    "from the packs."
                )
            project.store.index.rebuild()
        project.store.repair()
        report = verifier.verify(
            project.store,
            _roots(project),
            lambda done: project.progress("verifying", done, None),
        )
        problems = [f"{problem.where}: {problem.detail}" for problem in report.problems]
        problems += [f"journal: {line}" for line in _journal_problems(project)]
        if repair:
            _drop_damaged(project, report)
    return Verified(
        objects=report.objects,
        bytes=report.bytes,
        checkpoints=checkpoints.count(project.journal),
        problems=tuple(problems),
        repaired=len(report.damaged) if repair else 0,
    )


def _drop_damaged(project: OpenProject, report: verifier.Verified) -> None:
    """Drop damaged objects, and store again what the disk has of their deltas."""
    index = project.store.index
    index.drop((*report.damaged, *(record.id for record in report.unreadable_dependents)))
    index.drop_missing_packs()
    project.drop_cache()
    try:
        if report.unreadable_dependents:
            with Writer(project.store) as writer:
                take_snapshot(project, writer)
                writer.commit()
    finally:
        # Objects that are not on disk become readable again if their delta base does.
        index.add(report.unreadable_dependents, {})


def gc(project: OpenProject, *, dry_run: bool = False) -> Collected:
    with project.locked():
        collected = collector.collect(
            project.store,
            list(_roots(project)),
            dry_run=dry_run,
            progress=lambda done: project.progress("following references", done, None),
        )
    return Collected(collected.removed, collected.freed_bytes, collected.kept, dry_run)


def _roots(project: OpenProject) -> Iterator[Root]:
    """Yield every reference of the journal to an object."""
    for row in checkpoints.newest_first(project.journal):
        name = f"checkpoint {row.id}"
        yield Root(name, row.tree, True)
        yield Root(f"{name} (guarded)", row.guarded, True)
        yield Root(f"{name} (coverage)", row.coverage, False)
    for name, tree in views.trees(project.journal):
        yield Root(name, tree, True)
    for operation in operations.unfinished(project.journal):
        for id in (operation.plan_tree, operation.plan_guarded):
            if id is not None:
                yield Root(f"operation {operation.number}", id, True)


def _journal_problems(project: OpenProject) -> list[str]:
    problems = project.journal.integrity_problems()
    rows = checkpoints.newest_first(project.journal)
    # The times of imported checkpoints come from other programs' clocks.
    times = [row.created_at for row in rows if row.kind not in checkpoints.PARTIAL]
    stamps = [nanoseconds(each) for each in reversed(times)]
    # A larger step back is a clock that was set right.
    if any(0 < was - now <= CLOCK_STEP_NS for was, now in pairwise(stamps)):
        problems.append("checkpoints are not in the order of time")
    return problems
