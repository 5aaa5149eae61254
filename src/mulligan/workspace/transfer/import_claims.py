"""Decide what an imported log may claim: its directory, and a session's id.

Logs are untrusted input, so a claim counts only as far as the log's own location allows:

- A log inside a project (a clone, an unpacked archive) is about that project only. The user's own
  logs, where each agent keeps them, may be about any directory.
- A session recorded here is continued only by its agent's own log, an imported one only by the log
  that it came from. Any other log with the same id becomes a session of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

from mulligan.core.coverage import decode_path, storable, usable
from mulligan.errors import UsageError
from mulligan.importers.records import Importer, Session, Source
from mulligan.journal import sessions
from mulligan.journal.db import Database
from mulligan.journal.sessions import SessionRow
from mulligan.workspace.project.location import ProjectLocation, holder_of_log, project_of_log

OWN = "mulligan"
"""Our own exports: their sessions name the agent that wrote them."""

ID_MAX_CHARACTERS = 255


class ImportDestination(NamedTuple):
    """The project of an imported session, the adapted record, and a problem to report."""

    project: ProjectLocation
    record: Session
    problem: str | None = None


class Claims:
    """The logs of one import: which are the user's own, and what each may claim."""

    def __init__(
        self,
        home: str,
        reader: Importer,
        *,
        user_home: str | None = None,
        environment: Mapping[str, str] | None = None,
        named: bool = False,
    ) -> None:
        """`named`: the user named the logs; else the importer searched for them, in PWD too."""
        self._home, self._reader = home, reader
        self._user_home = user_home or os.path.expanduser("~")
        self._environment = dict(os.environ if environment is None else environment)
        folder = self._environment.pop("PWD", "")
        self._folder = os.path.realpath(folder) if folder and not named else None

    def place(self, source: Source, record: Session) -> ImportDestination:
        """Decide which project a session of a log belongs to."""
        claimed = _claimed_directory(record)
        directory = claimed or os.path.dirname(os.path.abspath(source.path))
        around = self._containing_directory(source)
        if around is None or _is_in(directory, around) or self._is_own(source.path):
            known = record._replace(directory=claimed)
            problem = None
            if record.directory and claimed is None:
                problem = (
                    f"Session {record.id} says that it is about {record.directory!a}, which is no "
                    f"path of a folder; it is kept under {directory}."
                )
            return ImportDestination(project_of_log(directory, self._home), known, problem)
        problem = (
            f"Session {record.id} says that it is about {record.directory}; the log lies in "
            f"{around}, and is taken as a session of that."
        )
        return ImportDestination(
            project_of_log(around, self._home), record._replace(directory=around), problem
        )

    def session_id(self, journal: Database, source: Source, record: Session) -> str:
        """Decide which id an imported session gets: its own, or a derived one."""
        seed = f"{self._reader.agent}\0{source.path}\0{record.id}"
        other = sha256(storable(seed).encode()).hexdigest()[:16]
        if sessions.by_id(journal, other) is not None:
            return other
        row = sessions.by_id(journal, record.id)
        if row is None:
            return record.id if _is_free(journal, record.id) else other
        return record.id if self._continues(row, source) else other

    def _continues(self, row: SessionRow, source: Source) -> bool:
        agent, path = self._reader.agent, storable(source.path)
        if agent not in (row.agent, OWN):
            return False
        if row.source is None:
            return agent != OWN and self._is_own(source.path)
        if row.source == path:
            return True
        return self._is_own(path) and (self._is_own(row.source) or not os.path.exists(row.source))

    def _containing_directory(self, source: Source) -> str | None:
        """Return the directory that a log came with; None for the user's own logs."""
        holder = holder_of_log(source.path, self._home)
        if holder is not None:
            return decode_path(holder)
        if self._folder is not None and _is_in(source.path, self._folder):
            return self._folder
        return None

    def _is_own(self, path: str) -> bool:
        return os.path.realpath(path) in self._own_logs

    @cached_property
    def _own_logs(self) -> frozenset[str]:
        """Return the agent's logs in the user's home, independent of PWD."""
        sources = self._reader.find(self._user_home, self._environment)
        return frozenset(os.path.realpath(source.path) for source in sources)


def _claimed_directory(record: Session) -> str | None:
    """Return the directory that a log names, if it is an absolute path."""
    try:
        directory = usable(record.directory or "")
    except UsageError:
        return None
    return directory if os.path.isabs(directory) else None


def _is_free(journal: Database, id: str) -> bool:
    """True if the id can be typed, and is no prefix of another session's."""
    if not id.isprintable() or len(id) > ID_MAX_CHARACTERS or id.startswith("@"):
        return False
    return not sessions.is_prefix(journal, id)


def _is_in(path: str, folder: str) -> bool:
    real = os.path.realpath(path)
    return real == folder or real.startswith(folder.rstrip("/") + "/")
