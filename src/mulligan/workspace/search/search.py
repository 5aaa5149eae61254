"""Search sessions: one, those of a project, or those of all projects.

A hit names its entry, what matched, and the checkpoint to return to. The index is a file beside the
journal, and catches up with it before each search.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import Any, NamedTuple, TypedDict, Unpack

from mulligan.core.coverage import decode_path as shown_path
from mulligan.core.entries import TYPES
from mulligan.core.times import nanoseconds, rfc3339
from mulligan.errors import MulliganError, NotWritable, OutOfSpace, UsageError
from mulligan.journal import sessions
from mulligan.journal.db import MEMORY, Database
from mulligan.journal.entry_numbers import session_of, session_range
from mulligan.journal.migrations import JOURNAL
from mulligan.journal.search.entry_filters import (
    NearestCheckpoints,
    containing,
    first_at,
    newest_of,
    session_times,
    times_of,
)
from mulligan.journal.search.entry_rows import candidate_rows, hit_rows
from mulligan.journal.search.index import MAX_RANKED_ENTRIES, Index
from mulligan.journal.search.query import Pieces, Reader, all_of, marked, of_types
from mulligan.journal.search.texts import columns_of, paths_of
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.project.location import ProjectLocation, known_projects
from mulligan.workspace.project.lock import locked
from mulligan.workspace.results.files import Progress

DEFAULT_SESSION_HITS = 20
DEFAULT_HITS = 50
CHUNK_ENTRIES = 500
MAX_IDLE_TOOLS = 2

Ranges = dict[int, tuple[int, int]]


class Hit(NamedTuple):
    """An entry that matches; a higher `score` is better.

    `checkpoint` is the entry's own, or the nearest before it on its path.
    """

    project: str
    session: str
    title: str
    agent: str
    entry: str
    seq: int
    type: str
    created_at: str
    checkpoint: str | None
    score: float
    pieces: Pieces

    @property
    def snippet(self) -> str:
        """The matches between `<mark>` and `</mark>`, with context. Not escaped."""
        return marked(self.pieces)

    def as_json(self) -> dict[str, Any]:
        fields = self._asdict()
        del fields["pieces"]
        return fields | {"snippet": self.snippet}


class SearchResult(NamedTuple):
    """The hits of a search; `total` is `None` if counting would take too long."""

    query: str
    hits: tuple[Hit, ...]
    total: int | None
    problems: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        hits = [hit.as_json() for hit in self.hits]
        return self._asdict() | {"hits": hits, "problems": list(self.problems)}


class Filters(TypedDict, total=False):
    """Filters of a search, and how to read its text.

    `path` is a file, a folder or a glob; `after` is inclusive, `before` exclusive. `raw` is FTS5
    syntax; `as_you_type` makes the last word a prefix.
    """

    agent: str | None
    types: Sequence[str]
    after: str | None
    before: str | None
    path: str | None
    include_compacted: bool
    raw: bool
    as_you_type: bool


class RankedHit(NamedTuple):
    """An entry's sort key: the greatest comes first."""

    score: float
    created_at: str
    number: int


def search(
    project: OpenProject,
    text: str,
    *,
    session: str | None = None,
    limit: int | None = None,
    offset: int = 0,
    **filters: Unpack[Filters],
) -> SearchResult:
    """Return entries with all words of a text, best first, then newest first.

    Without text, returns every entry about `path`. Raises `UsageError` only for filters that make
    no sense and for a broken raw query.
    """
    start, end = _page(offset, limit, DEFAULT_SESSION_HITS if session else DEFAULT_HITS)
    location, journal = project.location, project.journal
    with _tools_of(project) as tools:
        asked = _Search(tools.reader, text, filters, project.progress)
        ranked, total = asked.rank(location, journal, tools.index, end, session=session)
        hits = asked.hits(location, journal, ranked[start:end])
    return SearchResult(text, tuple(hits.values()), total)


def search_everywhere(
    home: str,
    text: str,
    *,
    limit: int | None = None,
    offset: int = 0,
    progress: Progress | None = None,
    **filters: Unpack[Filters],
) -> SearchResult:
    """Search every project with data in this home, even if its directory is gone.

    A project that cannot be searched is named in `problems`.
    """
    start, end = _page(offset, limit, DEFAULT_HITS)
    ranked: list[tuple[RankedHit, ProjectLocation]] = []
    totals: list[int | None] = []
    hits: dict[tuple[ProjectLocation, int], Hit] = {}
    with closing(Reader()) as reader:
        asked = _Search(reader, text, filters, progress or _silent)

        def rank(project: ProjectLocation, journal: Database) -> None:
            with closing(_readable_index_of(project)) as index:
                hits_here, total = asked.rank(project, journal, index, end)
            ranked.extend((each, project) for each in hits_here)
            totals.append(total)

        def show(project: ProjectLocation, journal: Database) -> None:
            mine = [each for each, where in chosen if where == project]
            for number, hit in asked.hits(project, journal, mine).items():
                hits[project, number] = hit

        problems = in_each(known_projects(home), rank)
        ranked.sort(reverse=True)
        chosen = ranked[start:end]
        # Opened again, because there may be more projects than file descriptors.
        problems += in_each(list(dict.fromkeys(project for _, project in chosen)), show)
    keys = [(project, each.number) for each, project in chosen]
    total = None if None in totals else sum(each for each in totals if each is not None)
    return SearchResult(
        text, tuple(hits[key] for key in keys if key in hits), total, tuple(problems)
    )


def rebuild(project: OpenProject) -> None:
    """Rebuild the search index."""
    _rebuild(project.location, project.journal, project.progress)


def rebuild_everywhere(home: str, *, progress: Progress | None = None) -> tuple[str, ...]:
    """Rebuild the index of every project; return the problems."""

    def work(project: ProjectLocation, journal: Database) -> None:
        _rebuild(project, journal, progress or _silent)

    return tuple(in_each(known_projects(home), work))


def in_each(
    projects: Sequence[ProjectLocation], work: Callable[[ProjectLocation, Database], None]
) -> list[str]:
    """Call `work` with the journal of each project; return a line per failure."""
    problems = []
    for project in projects:
        path = project.path("journal.sqlite")
        # Never create a missing or empty journal here.
        if not any(
            os.path.exists(each) and os.path.getsize(each) for each in (path, path + "-wal")
        ):
            continue
        try:
            with closing(Database(path, JOURNAL)) as journal:
                work(project, journal)
        except UsageError:
            raise
        except (MulliganError, OSError) as problem:
            problems.append(f"{shown_path(project.root)}: {problem}")
    return problems


def moment(given: str | None) -> str | None:
    """Parse a time; raise `UsageError` if it is none."""
    if not given:
        return None
    try:
        return rfc3339(nanoseconds(given))
    except (ValueError, OverflowError):
        raise UsageError(f"{given!r} is not a time; write 2026-11-15T12:00:00Z.") from None


class SearchTools:
    """A query parser and the open index, reused by the next search."""

    def __init__(self, project: ProjectLocation) -> None:
        self.reader = Reader()
        self.index = _readable_index_of(project)

    def close(self) -> None:
        self.reader.close()
        self.index.close()


class _Search:
    """One query, for one or many projects."""

    def __init__(self, reader: Reader, text: str, filters: Filters, progress: Progress) -> None:
        self._reader, self._progress = reader, progress
        self._agent = filters.get("agent")
        self._types = tuple(filters.get("types", ()))
        self._after, self._before = moment(filters.get("after")), moment(filters.get("before"))
        self._path = filters.get("path")
        self._compacted = filters.get("include_compacted", True)
        for type in self._types:
            if type not in TYPES:
                raise UsageError(f"There is no type {type!r}; there are {', '.join(TYPES)}.")
        if filters.get("raw"):
            self._query = reader.raw(text)
        else:
            self._query = reader.words(text, as_you_type=filters.get("as_you_type", False))

    def rank(
        self,
        project: ProjectLocation,
        journal: Database,
        index: Index,
        count: int,
        *,
        session: str | None = None,
    ) -> tuple[list[RankedHit], int | None]:
        """Return the best `count` hits in order, and the number of all, if known."""
        only = sessions.resolve(journal, session).number if session else None
        path = None if self._path is None else _inside(project, self._path)

        def ask(index: Index) -> list[tuple[int, float]]:
            answer: list[tuple[int, float]] | None = None
            while answer is None:
                index.catch_up(journal, self._progress)
                answer = index.matches(match, ranges) if match else []
            return answer

        match = self._query.match
        if path is not None and not self._query.literal:
            match = all_of(match, self._reader.path(path))
        match = all_of(match, of_types(self._types)) if match else ""
        ranges = self._ranges(journal, only)
        try:
            matches = index.use(ask)
        except (NotWritable, OutOfSpace):
            # The index is out of date, and its directory cannot be written.
            with closing(_index_in_memory()) as other:
                matches = other.use(ask)
        if self._query.literal:
            matches = containing(journal, self._query.literal, ranges)
        matches.sort(key=itemgetter(1), reverse=True)
        return self._filtered(project, journal, path, matches, count)

    def hits(
        self, project: ProjectLocation, journal: Database, chosen: Sequence[RankedHit]
    ) -> dict[int, Hit]:
        """Return the hits by entry number, in the given order."""
        rows = hit_rows(journal, [each.number for each in chosen])
        texts = [columns_of(row.type, row.content, row.data) for row in rows.values()]
        pieces = dict(zip(rows, self._reader.mark(texts, self._query), strict=True))
        nearest = NearestCheckpoints(journal, set(map(session_of, rows)))
        hits = {}
        for score, _, number in chosen:
            if number in rows:
                row = rows[number]
                hits[number] = Hit(
                    shown_path(project.root), row.session, row.title, row.agent, row.entry,
                    row.seq, row.type, row.created_at,
                    nearest.find(session_of(number), row.branch, row.seq), score,
                    pieces[number],
                )  # fmt: skip
        return hits

    def _ranges(self, journal: Database, session: int | None) -> Ranges | None:
        """Return the ranges of entry numbers to search; times increase within a session."""
        if session is None and not (self._agent or self._after or self._before):
            return None
        ranges: Ranges = {}
        for number, first, last in session_times(journal, session, self._agent):
            low, high = session_range(number)
            if self._after and first < self._after:
                low = first_at(journal, number, self._after) if last >= self._after else high
            if self._before and last >= self._before:
                high = first_at(journal, number, self._before) if first < self._before else low
            if low < high:
                ranges[number] = (low, high)
        return ranges

    def _filtered(
        self,
        project: ProjectLocation,
        journal: Database,
        path: str | None,
        matches: list[tuple[int, float]],
        count: int,
    ) -> tuple[list[RankedHit], int | None]:
        """Apply the filters that the index lacks, reading as few entries as possible."""
        if path is None and self._compacted and not self._query.literal:
            return _newest_of_ties(journal, matches, count), len(matches) if len(
                matches
            ) < MAX_RANKED_ENTRIES else None
        kept: list[RankedHit] = []
        for start in range(0, len(matches), CHUNK_ENTRIES):
            kept.sort(reverse=True)
            # Hits that tie with the last one are needed: of equal scores the newest comes first.
            if len(kept) >= count and (not count or kept[count - 1].score > matches[start][1]):
                return kept[:count], None
            kept += self._passing(
                project, journal, path, dict(matches[start : start + CHUNK_ENTRIES])
            )
        every = len(matches) < MAX_RANKED_ENTRIES and not self._query.literal
        return sorted(kept, reverse=True)[:count], len(kept) if every else None

    def _passing(
        self,
        project: ProjectLocation,
        journal: Database,
        path: str | None,
        scores: dict[int, float],
    ) -> Iterator[RankedHit]:
        literal = self._query.literal
        with_text = bool(literal) or path is not None
        for row in candidate_rows(journal, scores, with_text=with_text):
            if (
                (self._compacted or not row.is_compacted)
                and (not self._types or row.type in self._types)
                and (path is None or _is_about(project, path, row.data))
                and (
                    not literal
                    or any(literal in each for each in columns_of(row.type, row.content, row.data))
                )
            ):
                yield RankedHit(scores[row.number], row.created_at, row.number)


@contextmanager
def _tools_of(project: OpenProject) -> Iterator[SearchTools]:
    """Reuse the tools of the last search, or make new ones."""
    try:
        tools = project.search_tools.pop()
        if not tools.index.is_current:
            tools.close()
            tools = SearchTools(project.location)
    except IndexError:
        tools = SearchTools(project.location)
    try:
        yield tools
    except BaseException:
        tools.close()
        raise
    if len(project.search_tools) < MAX_IDLE_TOOLS:
        project.search_tools.append(tools)
    else:
        tools.close()


def _readable_index_of(project: ProjectLocation) -> Index:
    """Return the index, or an empty one in memory if it cannot be opened."""
    try:
        return _index_of(project)
    except (NotWritable, OutOfSpace):
        return _index_in_memory()


def _index_in_memory() -> Index:
    return Index(MEMORY, nullcontext)


def _index_of(project: ProjectLocation) -> Index:
    return Index(project.path("search.sqlite"), lambda: locked(project.path("search.lock")))


def _newest_of_ties(
    journal: Database, matches: list[tuple[int, float]], count: int
) -> list[RankedHit]:
    """Return the first `count` hits, ties sorted by time."""
    if not matches or not count:
        return []
    least = matches[min(count, len(matches)) - 1][1]
    scores = {number: score for number, score in matches if score > least}
    tied = [number for number, score in matches if score == least]
    if len(tied) > CHUNK_ENTRIES:
        tied = newest_of(journal, tied, count)
    scores |= dict.fromkeys(tied, least)
    times = times_of(journal, scores)
    return sorted((RankedHit(scores[each], times[each], each) for each in times), reverse=True)[
        :count
    ]


def _rebuild(project: ProjectLocation, journal: Database, progress: Progress) -> None:
    def work(index: Index) -> None:
        index.clear()
        index.catch_up(journal, progress)

    with closing(_index_of(project)) as index:
        index.use(work)


def _page(offset: int, limit: int | None, usual: int) -> tuple[int, int]:
    start = max(0, offset)
    return start, start + max(0, usual if limit is None else limit)


def _inside(project: ProjectLocation, path: str) -> str:
    """Return a path relative to the project; paths outside stay absolute."""
    path = os.path.normpath(path) if path else "."
    root = shown_path(project.root)
    if path in (root, "."):
        return ""
    return path.removeprefix(root.rstrip("/") + "/")


def _is_about(project: ProjectLocation, wanted: str, data: dict[str, Any] | None) -> bool:
    for each in paths_of(data):
        path = _inside(project, each)
        if not wanted or path == wanted or path.startswith(wanted + "/"):
            return True
        if any(mark in wanted for mark in "*?[") and fnmatchcase(path, wanted):
            return True
    return False


def _silent(stage: str, done: int, total: int | None) -> None:
    return
