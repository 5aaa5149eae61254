"""Count agents' tool calls, in one project or in all. Contents are not read."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypedDict, Unpack

from mulligan.errors import UsageError
from mulligan.journal import analytics, sessions
from mulligan.journal.analytics import KEYS, TIMES, Call, CallFilter, CallGroup
from mulligan.journal.db import Database
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.project.location import ProjectLocation, known_projects
from mulligan.workspace.search.search import in_each, moment

PERCENTILE = 0.95


class Usage(NamedTuple):
    """The counts and durations (in milliseconds) of some calls.

    `key` has a value for each name in the table's `by`. Unfinished calls are `unknown`; the success
    rate is of finished calls.
    """

    key: tuple[str, ...]
    calls: int
    success: int
    failure: int
    unknown: int
    success_rate: float | None
    average_ms: float | None
    p95_ms: float | None

    def as_json(self, by: Sequence[str]) -> dict[str, Any]:
        fields = self._asdict()
        return dict(zip(by, fields.pop("key"), strict=True)) | fields


class Stats(NamedTuple):
    """Counts of tool calls, sorted by count, or by time for time buckets."""

    by: tuple[str, ...]
    rows: tuple[Usage, ...]
    total: Usage
    problems: tuple[str, ...] = ()

    def first(self, limit: int | None = None, *, least: bool = False) -> Stats:
        """Return only the first `limit` rows; `least` puts the least used first."""
        rows = self.rows[::-1] if least else self.rows
        return self._replace(rows=rows[:limit])

    def as_json(self) -> dict[str, Any]:
        return {
            "by": list(self.by),
            "rows": [row.as_json(self.by) for row in self.rows],
            "total": self.total.as_json(()),
            "problems": list(self.problems),
        }

    def as_csv(self) -> str:
        return _csv([row.as_json(self.by) for row in self.rows], [*self.by, *Usage._fields[1:]])


class Calls(NamedTuple):
    """Single calls, in order of time."""

    calls: tuple[Call, ...]
    problems: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        calls = [call._asdict() for call in self.calls]
        return {"calls": calls, "problems": list(self.problems)}

    def as_csv(self) -> str:
        return _csv([call._asdict() for call in self.calls], Call._fields)


class Which(TypedDict, total=False):
    """Which calls to count; `after` is inclusive, `before` exclusive."""

    after: str | None
    before: str | None
    agent: str | None
    tool: str | None


def stats(
    project: OpenProject,
    by: Sequence[str] = ("tool",),
    *,
    session: str | None = None,
    **which: Unpack[Which],
) -> Stats:
    """Count calls by tool, agent, session, hour, day or month, or several of these."""
    names, chosen = _check_names(by), _call_filter(which)
    if session:
        chosen = chosen._replace(session=sessions.resolve(project.journal, session).number)
    return _tabulate(names, analytics.call_groups(project.journal, names, chosen))


def stats_everywhere(home: str, by: Sequence[str] = ("tool",), **which: Unpack[Which]) -> Stats:
    """Count calls of all projects; unreadable projects are named in `problems`."""
    names, chosen = _check_names(by), _call_filter(which)
    parts: list[CallGroup] = []

    def work(project: ProjectLocation, journal: Database) -> None:
        parts.extend(analytics.call_groups(journal, names, chosen))

    problems = in_each(known_projects(home), work)
    return _tabulate(names, parts)._replace(problems=tuple(problems))


def calls(project: OpenProject, *, session: str | None = None, **which: Unpack[Which]) -> Calls:
    """Return single calls, for export."""
    chosen = _call_filter(which)
    if session:
        chosen = chosen._replace(session=sessions.resolve(project.journal, session).number)
    return Calls(tuple(analytics.calls(project.journal, chosen)))


def calls_everywhere(home: str, **which: Unpack[Which]) -> Calls:
    """Return single calls of all projects."""
    chosen = _call_filter(which)
    calls_found: list[Call] = []

    def work(project: ProjectLocation, journal: Database) -> None:
        calls_found.extend(analytics.calls(journal, chosen))

    problems = in_each(known_projects(home), work)
    calls_found.sort(key=lambda call: call.created_at)
    return Calls(tuple(calls_found), tuple(problems))


def delete_stats(project: OpenProject) -> int:
    """Delete the project's tool events; return how many. Sessions and entries stay."""
    with project.journal.writing() as db:
        return analytics.delete_all(db)


def delete_stats_everywhere(home: str) -> tuple[int, tuple[str, ...]]:
    """Delete the tool events of all projects; return how many, and the problems."""
    deleted = 0

    def work(project: ProjectLocation, journal: Database) -> None:
        nonlocal deleted
        with journal.writing() as db:
            deleted += analytics.delete_all(db)

    problems = in_each(known_projects(home), work)
    return deleted, tuple(problems)


def _tabulate(by: tuple[str, ...], parts: Iterable[CallGroup]) -> Stats:
    groups: dict[tuple[str, ...], list[CallGroup]] = {}
    everything: list[CallGroup] = []
    for part in parts:
        groups.setdefault(part.key, []).append(part)
        everything.append(part)
    rows = [_usage(key, group) for key, group in sorted(groups.items())]
    if not set(by) & set(TIMES):
        rows.sort(key=lambda row: row.calls, reverse=True)
    return Stats(by, tuple(rows), _usage((), everything))


def _usage(key: tuple[str, ...], parts: Sequence[CallGroup]) -> Usage:
    success = sum(part.calls for part in parts if part.success)
    failure = sum(part.calls for part in parts if part.success is False)
    unknown = sum(part.calls for part in parts if part.success is None)
    timed = sorted((part.duration, part.calls) for part in parts if part.duration is not None)
    measured = sum(count for _, count in timed)
    took = sum(part.took for part in parts)
    return Usage(
        key,
        success + failure + unknown,
        success,
        failure,
        unknown,
        success / (success + failure) if success + failure else None,
        took / measured if measured else None,
        _percentile(timed, measured),
    )


def _percentile(timed: Sequence[tuple[float, int]], measured: int) -> float | None:
    """Return the nearest-rank percentile of the durations."""
    left = math.ceil(PERCENTILE * measured)
    for duration, count in timed:
        left -= count
        if left <= 0:
            return duration
    return None


def _check_names(by: Sequence[str]) -> tuple[str, ...]:
    for name in by:
        if name not in KEYS:
            raise UsageError(f"Calls are not counted by {name!r} but by {', '.join(KEYS)}.")
    if not by:
        raise UsageError(f"Say what to count calls by: {', '.join(KEYS)}.")
    return tuple(dict.fromkeys(by))


def _call_filter(which: Which) -> CallFilter:
    return CallFilter(
        moment(which.get("after")),
        moment(which.get("before")),
        which.get("agent"),
        None,
        which.get("tool"),
    )


def _csv(rows: Iterable[dict[str, Any]], names: Sequence[str]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()
