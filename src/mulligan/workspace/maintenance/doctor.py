"""Check a project for common problems, and say how to fix them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mulligan.errors import Corrupt, MulliganError
from mulligan.journal import checkpoints
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import Finding
from mulligan.workspace.snapshot.checkpoints import coverage
from mulligan.workspace.trust import rule_files
from mulligan.worktree.scan.compare import SPECIAL
from mulligan.worktree.watch.remote import connect


def doctor(project: OpenProject) -> list[Finding]:
    """Check for common problems; change nothing."""
    return list(_findings(project))


def _findings(project: OpenProject) -> Iterator[Finding]:
    yield Finding("ok", "project", f"{project.root} is kept in {project.location.directory}")
    latest = checkpoints.latest(project.journal)
    if latest is None:
        yield Finding("note", "checkpoints", "there is none yet", "run `mulligan checkpoint`")
    else:
        total = checkpoints.count(project.journal)
        yield Finding(
            "ok", "checkpoints", f"{total}, the latest {latest.id} of {latest.created_at}"
        )
        yield from _coverage_findings(project)
    yield from _rule_file_findings(project)
    yield from _store_findings(project)
    watcher = connect(project.location.path("watch.sock"))
    if watcher is not None:
        watcher.close()
        yield Finding("ok", "watcher", "running: checkpoints cost what changed")
    else:
        yield Finding(
            "note", "watcher", "not running: each checkpoint looks at every file",
            "run `mulligan watch` in another terminal for large projects",
        )  # fmt: skip


def _coverage_findings(project: OpenProject) -> Iterator[Finding]:
    latest = checkpoints.latest(project.journal)
    assert latest is not None
    try:
        covered = coverage(project, latest)
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


def _rule_file_findings(project: OpenProject) -> Iterator[Finding]:
    for each in rule_files(project):
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


def _store_findings(project: OpenProject) -> Iterator[Finding]:
    try:
        objects, stored = project.store.index.count()
    except MulliganError as problem:
        yield Finding("problem", "store", str(problem), "run `mulligan verify`")
        return
    size = f"{stored / (1 << 20):,.1f} MB" if stored >= 1 << 20 else f"{stored / 1024:.1f} KB"
    yield Finding(
        "ok", "store", f"{objects:,} objects in {size}; `mulligan verify` reads them all again"
    )
    free = os.statvfs(project.location.directory)
    available = free.f_bavail * free.f_frsize
    if available < 1 << 30:
        yield Finding(
            "problem", "disk", f"only {available >> 20} MB are free where the store is",
            "free some space, or run `mulligan forget` and `mulligan gc`",
        )  # fmt: skip
    damaged = os.path.join(project.store.directory, "index.sqlite.damaged")
    if os.path.exists(damaged):
        yield Finding(
            "note", "store", "the index was damaged and has been made again",
            f"run `mulligan verify`, then delete {damaged}",
        )  # fmt: skip
