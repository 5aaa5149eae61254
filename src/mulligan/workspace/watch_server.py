"""Share a running watcher with other processes, so that their scans are fast too."""

from __future__ import annotations

from types import TracebackType

from mulligan.core.coverage import decode_path
from mulligan.errors import UsageError
from mulligan.journal import checkpoints as journal
from mulligan.workspace.attribution.checkpoint import take
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import Checkpoint
from mulligan.workspace.snapshot.diff import status
from mulligan.worktree.watch.remote import Server, serve


class Watching:
    """Serves a project's watcher until it is closed; takes the first checkpoint if needed."""

    def __init__(self, project: OpenProject) -> None:
        if project.watcher is None:
            raise UsageError("Open the project with watch=True to watch it.")
        self._watcher = project.watcher
        self._server: Server = serve(self._watcher, project.location.path("watch.sock"))
        try:
            self.first = self._scan(project)
        except BaseException:
            self._server.close()
            raise
        self._token = self._watcher.peek(None).token

    def changes(self, timeout: float) -> list[str]:
        """Wait up to `timeout` seconds for changes; return the changed paths."""
        if not self._watcher.wait(timeout):
            return []
        seen = self._watcher.peek(self._token)
        self._token = seen.token
        return sorted(decode_path(path) for path in seen.paths)

    def close(self) -> None:
        self._server.close()

    def _scan(self, project: OpenProject) -> Checkpoint | None:
        """Scan the whole project, so that every directory is watched."""
        if journal.latest(project.journal) is None:
            return take(project, "First checkpoint", kind="initial")
        status(project)
        return None

    def __enter__(self) -> Watching:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
