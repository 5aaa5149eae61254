"""Import other agents' logs as sessions of the projects that they are about.

Neither the project's files nor the logs change. Existing entries stay as they are, so a second
import adds only what is new. The fingerprints of imported logs are in `imports.sqlite` in the home,
which can be deleted at any time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from mulligan.core.coverage import decode_path, usable
from mulligan.errors import MulliganError, NotFound
from mulligan.importers.records import (
    Importer,
    Problem,
    ReadContent,
    Record,
    Session,
    Snapshot,
    Source,
)
from mulligan.journal import imported_logs
from mulligan.journal.db import Database
from mulligan.journal.migrations import JOURNAL
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.project.location import ProjectLocation, is_imported, register
from mulligan.workspace.project.lock import locked
from mulligan.workspace.project.refused_roots import refuse_as_project
from mulligan.workspace.results.files import Progress, plain
from mulligan.workspace.transfer.import_claims import Claims
from mulligan.workspace.transfer.import_session import Target, clean
from mulligan.workspace.transfer.import_snapshots import Snapshots

IMPORTERS = {
    "claude-code": "claude_code.reader",
    "codex": "codex.reader",
    "gemini": "gemini.reader",
    "opencode": "opencode.reader",
    "pi": "pi.reader",
    "aider": "aider",
    "agentsmithy": "agentsmithy",
    "yaai": "yaai",
    "mulligan": "mulligan_jsonl",
}
OWN_FOLDERS = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR")
BATCH_RECORDS = 2000
NO_SESSION = "an entry came before any session"


class ImportResult(NamedTuple):
    """What an import did; `problems` names every line that was skipped.

    `checkpoints` were made of file contents that the logs hold.
    """

    agent: str
    logs: int
    unchanged: int
    sessions: int
    entries: int
    problems: tuple[Problem, ...]
    projects: tuple[str, ...] = ()
    checkpoints: int = 0

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def importer(agent: str) -> Importer:
    """Return the importer of an agent's logs; raise `NotFound` if there is none."""
    if agent not in IMPORTERS:
        known = ", ".join(IMPORTERS)
        raise NotFound(f"There is no importer for {agent!r}; there are {known}.")
    reader = import_module(f"mulligan.importers.{IMPORTERS[agent]}").IMPORTER
    assert isinstance(reader, Importer)
    return reader


def import_logs(
    home: str,
    agent: str,
    *,
    paths: tuple[str, ...] = (),
    user_home: str | None = None,
    environment: Mapping[str, str] | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> ImportResult:
    """Import an agent's logs: the given ones, else all of the user's.

    Logs whose fingerprint is unchanged are skipped, unless `again`.
    """
    reader = importer(agent)
    sources = list(_sources(reader, paths, user_home, environment))
    os.makedirs(home, mode=0o700, exist_ok=True)
    seen = Database(os.path.join(home, "imports.sqlite"), imported_logs.MIGRATIONS)
    claims = Claims(home, reader, user_home=user_home, environment=environment, named=bool(paths))
    work = _Import(reader, claims)
    unchanged = 0
    try:
        for done, source in enumerate(sources):
            looks = _fingerprint(source)
            if not again and looks is not None and _last_fingerprint(seen, agent, source) == looks:
                unchanged += 1
                continue
            work.tell = partial(progress or _silent, "importing", done, len(sources))
            whole = work.take(source)
            (progress or _silent)("importing", done + 1, len(sources))
            if not whole:
                # It was locked, or the disk was full: the next import tries again.
                continue
            imported_logs.record(seen, agent, clean(source.path), clean(source.part), looks or "")
    finally:
        work.close()
        seen.close()
    return ImportResult(
        reader.agent,
        len(sources),
        unchanged,
        len(work.touched),
        work.entries,
        tuple(dict.fromkeys(work.problems)),
        tuple(sorted(work.roots)),
        work.checkpoints,
    )


def complete(project: OpenProject, agent: str, path: str, part: str, session: str) -> bool:
    """Add entries from the agent's own log to a session that hooks record.

    Messages and calls that hooks recorded are not duplicated. Returns False if the log has no such
    session.
    """
    if not os.path.exists(path):
        return False
    work = _Import(importer(agent))
    work.use(project.location.id, project.journal, project.location)
    work.take(Source(path, part), only=session)
    return True


def follow(
    home: str,
    agent: str,
    *,
    paths: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    every: float = 1.0,
    told: Callable[[ImportResult], bool],
) -> None:
    """Import changed logs repeatedly, until `told` returns False."""
    while told(import_logs(home, agent, paths=paths, environment=environment)):
        time.sleep(every)


class _Import:
    """A running import: its open journals and its counts."""

    def __init__(self, reader: Importer, claims: Claims | None = None) -> None:
        """Without `claims`, everything goes to the project given to `use`."""
        self._reader, self._claims = reader, claims
        self._journals: dict[str, Database] = {}
        self._snapshots: dict[str, Snapshots] = {}
        self._project: ProjectLocation | None = None
        self.tell: Callable[[], None] = _no_progress
        self.entries = 0
        self.checkpoints = 0
        self.touched: set[str] = set()
        self.roots: set[str] = set()
        self.problems: list[Problem] = []

    def close(self) -> None:
        for snapshots in self._snapshots.values():
            snapshots.close()
        for journal in self._journals.values():
            journal.close()

    def use(self, id: str, journal: Database, project: ProjectLocation) -> None:
        """Import into one project, whose journal the caller opened and closes."""
        self._journals[id] = journal
        self._project = project

    def take(self, source: Source, *, only: str | None = None) -> bool:
        """Import one log in batches; return True if it was read to its end.

        `only` names the one session to import.
        """
        target: Target | None = None
        batch: list[Record] = []
        contents = self._reader.contents
        try:
            content = contents(source) if contents is not None else None
            for record in self._reader.read(source):
                if isinstance(record, Problem):
                    self.problems.append(record)
                elif isinstance(record, Session) and only is not None and record.id != only:
                    self._flush(target, batch)
                    target = None
                elif isinstance(record, Session) and (
                    target is None or target.claimed != record.id
                ):
                    self._flush(target, batch)
                    target = self._target(source, record)
                elif target is None:
                    if only is None:
                        self.problems.append(Problem(source.path, 0, NO_SESSION))
                elif isinstance(record, Snapshot) and content is not None:
                    self._flush(target, batch)
                    self._take_snapshot(target, record, content)
                else:
                    batch.append(record)
                    if len(batch) >= BATCH_RECORDS:
                        self._flush(target, batch)
                        # A long log may be interrupted here; the next import continues.
                        self.tell()
            self._flush(target, batch)
        except (OSError, MulliganError) as problem:
            self.problems.append(Problem(source.path, 0, str(problem)))
            return False
        except Exception as problem:
            # A log is foreign input: an error in one must not stop the others.
            reason = f"It cannot be read: {type(problem).__name__}: {problem}"
            self.problems.append(Problem(source.path, 0, reason))
            return False
        return True

    def _take_snapshot(self, target: Target, record: Snapshot, content: ReadContent) -> None:
        id = target.project.id
        refused = refuse_as_project(target.project.root)
        if refused is not None and is_imported(target.project):
            reason = f"No files are taken for {decode_path(target.project.root)}: {refused}."
            self.problems.append(Problem(record.log_path, 0, reason))
            return
        if id not in self._snapshots:
            self._snapshots[id] = Snapshots(self._journals[id], target.project)
        taken = target.take(record, self._snapshots[id], content)
        self.checkpoints += taken.is_new
        self.problems += (Problem(record.log_path, 0, each) for each in taken.problems)
        self.touched.add(target.session)

    def _flush(self, target: Target | None, batch: list[Record]) -> None:
        if target is not None and batch:
            before = target.entries
            target.write(batch)
            self.problems += target.problems
            target.problems.clear()
            self.entries += target.entries - before
            self.touched.add(target.session)
        batch.clear()

    def _target(self, source: Source, record: Session) -> Target:
        project, claimed = self._project, record.id
        if self._claims is not None:
            project, record, problem = self._claims.place(source, record)
            if problem is not None:
                self.problems.append(Problem(source.path, 0, problem))
        assert project is not None
        journal = self._journals.get(project.id)
        if journal is None:
            journal = self._journals[project.id] = _open(project)
        self.roots.add(decode_path(project.root))
        if self._claims is not None:
            id = self._claims.session_id(journal, source, record)
            if id != record.id:
                reason = f"There is another session {record.id}; this one is called {id} here."
                self.problems.append(Problem(source.path, 0, reason))
            record = record._replace(id=id)
        return Target(journal, project, source, record, self._reader.agent, claimed)


def _silent(stage: str, done: int, total: int | None) -> None:
    pass


def _no_progress() -> None:
    pass


def _sources(
    reader: Importer,
    paths: tuple[str, ...],
    user_home: str | None,
    environment: Mapping[str, str] | None,
) -> Iterator[Source]:
    if not paths:
        home = user_home or os.path.expanduser("~")
        yield from reader.find(home, os.environ if environment is None else environment)
        return
    for path in paths:
        full = os.path.abspath(usable(path))
        if not os.path.lexists(full):
            raise NotFound(f"There is no {path}.")
        if not os.path.isdir(full):
            yield Source(full)
            continue
        # The directory may be a home with the agent's folder, that folder, or just logs.
        places = {"PWD": full} | dict.fromkeys(OWN_FOLDERS, full)
        start = os.path.realpath(full) + os.sep
        inside = [
            source
            for surroundings in ({"PWD": full}, places)
            for source in reader.find(full, surroundings)
            if os.path.realpath(source.path).startswith(start)
        ]
        yield from dict.fromkeys(inside or map(Source, _files_below(full)))


def _files_below(folder: str) -> Iterator[str]:
    for above, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".jsonl", ".db")):
                yield os.path.join(above, name)


def _open(project: ProjectLocation) -> Database:
    register(project, imported=True)
    with locked(project.path("lock")):
        return Database(project.path("journal.sqlite"), JOURNAL)


def _last_fingerprint(seen: Database, agent: str, source: Source) -> str | None:
    """Return the log's fingerprint as of its last import."""
    return imported_logs.fingerprint(seen, agent, clean(source.path), clean(source.part))


def _fingerprint(source: Source) -> str | None:
    """Return size and time of a log, including a database's WAL."""
    parts = []
    for path in (source.path, source.path + "-wal"):
        try:
            status = os.stat(path)
        except OSError:
            continue
        parts.append(f"{status.st_size} {status.st_mtime_ns}")
    return "; ".join(parts) or None
