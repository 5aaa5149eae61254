"""What was out of a checkpoint's scope when it was taken, as far as that can be told now.

What a checkpoint could not see, it cannot say was not there. It may have been skipped, or ignored
by the rules as they were then; it may have been guarded, or have come into view later, when
somebody asked for it by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, cached_property

from mulligan.core import tree
from mulligan.core.coverage import Coverage
from mulligan.core.tree import Entry, Tree
from mulligan.journal import always_included, checkpoints
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.snapshot.checkpoints import coverage
from mulligan.workspace.snapshot.diff import within
from mulligan.workspace.snapshot.snapshot import Snapshot
from mulligan.worktree.ignore import git_repo
from mulligan.worktree.ignore.scope import Reason, Scope, project_scope
from mulligan.worktree.scan.rule_files import MULLIGANIGNORE, without_excludes


class ScopeAtCheckpoint:
    """The time at which a checkpoint was taken."""

    def __init__(self, project: OpenProject, target: CheckpointRow, now: Snapshot) -> None:
        self._project = project
        self._target = target
        self._now = now
        self._covered = coverage(project, target)
        self._passed_over = {each.path: each.broken for each in self._covered.passed_over}
        self.guarded = project.finder(target.guarded)
        self._rules_in = cache(self._find_rules)
        self._first_view = cache(self._find_first_view)

    @cached_property
    def _place(self) -> int:
        """Its position among all checkpoints: times may be a wrong clock's."""
        return checkpoints.position(self._project.journal, self._target.id)

    @cached_property
    def _forced(self) -> list[tuple[bytes, int | None]]:
        """The paths that are asked for by name today, and since which position."""
        return always_included.with_since(self._project.journal)

    @cached_property
    def _later(self) -> list[tuple[bytes, int]]:
        """Those of them that were asked for later than this."""
        return [(path, since) for path, since in self._forced if since and since >= self._place]

    def is_asked_for_now(self, path: bytes) -> bool:
        return any(within(path, each) for each, _since in self._forced)

    def reason_to_keep(self, path: bytes, is_directory: bool) -> str | None:
        """Why a path that the checkpoint does not have must not be deleted for that."""
        why = self._covered.reason_for(path)
        if why is not None:
            return f"the checkpoint does not cover it: it {why}"
        if self.is_asked_for_now(path):
            view = self._view_of(path)
            why = view[1].reason_for(path) if view is not None else None
            if why is not None and self._was_ignored(path, is_directory):
                return f"it was ignored when the checkpoint was taken, and later it {why}"
            return None
        if self._was_ignored(path, is_directory):
            return "it was ignored when the checkpoint was taken"
        return None

    def out_of_scope(self, path: bytes) -> Entry | None:
        """What was at a path that is not in the checkpoint's tree: a guarded file, or what an
        ignored path held when it came into view."""
        kept = self.guarded(path)
        if kept is not None and not kept.is_directory:
            return kept
        view = self._view_of(path)
        entry = self._project.finder(view[0])(path) if view is not None else None
        return entry if entry is not None and self._was_ignored(path, entry.is_directory) else None

    def first_views(self) -> Iterator[tuple[bytes, Entry]]:
        """The files that were asked for later than this, as they came into view."""
        for folder, since in self._later:
            top = self._project.finder(self._first_view(since)[0])(folder)
            if top is not None and top.is_directory:
                below = tree.walk(top.id, self._project.load, folder)
                yield from ((path, entry) for path, entry in below if not entry.is_directory)
            elif top is not None:
                yield folder, top

    def _view_of(self, path: bytes) -> tuple[bytes, Coverage] | None:
        """The first look at a path that was asked for later than this; not if it had been asked
        for before with a folder above it."""
        above = [since for each, since in self._forced if within(path, each)]
        if not above or any(since is None or since < self._place for since in above):
            return None
        return self._first_view(min(since for since in above if since is not None))

    def _find_first_view(self, place: int) -> tuple[bytes, Coverage]:
        row = checkpoints.first_after(self._project.journal, place)
        if row is None:
            return self._now.tree, self._now.coverage
        return row.tree, coverage(self._project, row)

    def _was_ignored(self, path: bytes, is_directory: bool) -> bool:
        # Rules that lie outside of the project may have been others: what a checkpoint left out
        # as a folder is known.
        if any(
            left.endswith(b"/") and within(path, left[:-1])
            for left, _files, _reason in self._covered.excluded
        ):
            return True
        directory, _slash, name = path.rpartition(b"/")
        rules = self._rules_in(directory)
        return rules is None or rules.decide(name, is_directory) != Reason.IN_SCOPE

    def _find_rules(self, directory: bytes) -> Scope | None:
        """What counted in a folder; `None` if it was ignored itself."""
        if not directory:
            sources = git_repo.git_sources(self._project.location.root)
            return project_scope(sources, *self._ignore_files(b""))
        above, _slash, name = directory.rpartition(b"/")
        rules = self._rules_in(above)
        if rules is None or rules.decide(name, True) != Reason.IN_SCOPE:
            return None
        gitignore, mulliganignore = self._ignore_files(directory)
        return rules.enter(name, gitignore=gitignore, mulliganignore=mulliganignore)

    def _ignore_files(self, directory: bytes) -> tuple[bytes | None, bytes | None]:
        folders = [
            self._project.load(folder)
            for root in (self._target.tree, self._target.guarded)
            if (folder := self._folder(root, directory)) is not None
        ]
        mulliganignore = self._content(folders, MULLIGANIGNORE)
        broken = self._passed_over.get(tree.join(directory, MULLIGANIGNORE))
        if mulliganignore is not None and broken is not None:
            mulliganignore = None if broken else without_excludes(mulliganignore)
        return self._content(folders, b".gitignore"), mulliganignore

    def _folder(self, root: bytes, directory: bytes) -> bytes | None:
        if not directory:
            return root
        entry = self._project.finder(root)(directory)
        return entry.id if entry is not None and entry.is_directory else None

    def _content(self, folders: Iterable[Tree], name: bytes) -> bytes | None:
        for folder in folders:
            entry = folder.get(name)
            if entry is not None and entry.kind == tree.FILE:
                return self._project.store.get(entry.id)
        return None
