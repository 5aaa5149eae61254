"""`mulligan search`"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from datetime import datetime

import click

from mulligan.cli.group import command
from mulligan.cli.maintenance.forget import UNITS
from mulligan.cli.output import Output, Progress, ago, escape_prose, escape_text, plural, short_id
from mulligan.clock import now_ns
from mulligan.core.entries import TYPES
from mulligan.core.times import rfc3339
from mulligan.errors import UsageError
from mulligan.workspace.project.location import home_directory
from mulligan.workspace.search import search as searching
from mulligan.workspace.search.search import Filters, Hit, SearchResult

WORDS = {
    "user_input": "you",
    "assistant_output": "agent",
    "tool_call": "tool",
    "tool_result": "result",
    "file_edit": "edit",
    "compact_marker": "compaction",
    "system_message": "system",
    "branch_summary": "summary",
}


@command(
    "search",
    examples="""
mulligan search parser crash               entries that hold both words, the best first
mulligan search --all --since 30d "foo-bar"
mulligan search --path src/app.py          whatever was said or done about a file
mulligan search --raw 'parse* NOT test'    the query syntax of SQLite's FTS5
mulligan search --rebuild                  make the index anew
""",
)
@click.argument("text", nargs=-1)
@click.option("--session", metavar="S", help="Only in this session; @ is the latest.")
@click.option("--all", "everywhere", is_flag=True, help="In all projects.")
@click.option("--agent", metavar="A", help="Only sessions with this agent.")
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(TYPES),
    metavar="T",
    help="Only such entries.",
)
@click.option("--path", metavar="P", help="Only what is about this file or folder, or this glob.")
@click.option("--since", metavar="WHEN", help="Not older than: 12h, 2d, 8w, or a date.")
@click.option("--before", metavar="WHEN", help="Older than.")
@click.option("-n", "limit", type=click.IntRange(min=0), metavar="N", help="At most N hits.")
@click.option("--raw", is_flag=True, help="TEXT is a query in the syntax of FTS5.")
@click.option("--rebuild", is_flag=True, help="Make the search index anew first.")
def search(
    out: Output,
    text: tuple[str, ...],
    session: str | None,
    everywhere: bool,
    agent: str | None,
    types: tuple[str, ...],
    path: str | None,
    since: str | None,
    before: str | None,
    limit: int | None,
    raw: bool,
    rebuild: bool,
) -> None:
    """Find what was said and done in sessions: all words of TEXT must be there.

    Any text is taken as it is; "run" also finds "running". A hit names its entry, to go on with
    `mulligan goto ENTRY`, and the checkpoint that holds the files as they were.
    """
    if session and everywhere:
        raise UsageError("A session is in one project; leave out --session or --all.")
    if not text and not path and not rebuild:
        raise UsageError("Say what to search for.")
    filters: Filters = {
        "agent": agent,
        "types": types,
        "after": moment(since),
        "before": moment(before),
        "path": path if everywhere else _here(out, path),
        "raw": raw,
    }
    found = _found(out, " ".join(text), session, everywhere, rebuild, limit, filters)
    if out.as_json:
        out.data(found.as_json())
    elif text or path:
        out.paged(_lines(found, everywhere))
        _say_how_many(out, found)
    else:
        out.say("The search index was made anew.")
    for problem in found.problems:
        out.say(click.style("Not searched: ", fg="red") + escape_text(problem))


def moment(text: str | None) -> str | None:
    """A time that somebody wrote: an age such as `2d`, or a date, in the zone of the clock."""
    if not text:
        return None
    try:
        if text[-1:].lower() in UNITS and text[:-1].replace(".", "", 1).isdecimal():
            seconds = float(text[:-1]) * UNITS[text[-1:].lower()]
            return rfc3339(now_ns() - int(seconds * 1e9))
        given = datetime.fromisoformat(text).astimezone()
        return rfc3339(int(given.timestamp() * 1000) * 1_000_000)
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"{text!r} is not a time; write 12h, 2d, 8w, 2026-11-15 or 2026-11-15T12:00."
        ) from None


def _found(
    out: Output,
    text: str,
    session: str | None,
    everywhere: bool,
    rebuild: bool,
    limit: int | None,
    filters: Filters,
) -> SearchResult:
    if not everywhere:
        with out.workspace() as workspace:
            if rebuild:
                searching.rebuild(workspace.project)
            return searching.search(
                workspace.project, text, session=session, limit=limit, **filters
            )
    with Progress() as progress:
        home = home_directory()
        if rebuild:
            searching.rebuild_everywhere(home, progress=progress.show)
        return searching.search_everywhere(
            home, text, limit=limit, progress=progress.show, **filters
        )


def _here(out: Output, path: str | None) -> str | None:
    """A path counts from where the user is; a glob from the project's top."""
    if path is None or any(mark in path for mark in "*?["):
        return path
    return os.path.join(os.path.realpath(out.base), path)


def _lines(found: SearchResult, everywhere: bool) -> Iterator[str]:
    for number, hit in enumerate(found.hits):
        if number:
            yield ""
        yield _headline(hit)
        yield f"  {_snippet(hit)}"
        entry = click.style(escape_text(hit.entry), fg="yellow")
        back = (
            f"  checkpoint {click.style(hit.checkpoint[:8], fg='yellow')}" if hit.checkpoint else ""
        )
        yield f"  entry {entry}  session {escape_text(hit.session)}{back}"
        if everywhere:
            where = escape_text(shlex.quote(hit.project))
            yield f"  mulligan -C {where} session show {short_id(hit.session)}"


def _headline(hit: Hit) -> str:
    title = click.style(escape_prose(" ".join(hit.title.split())) or "untitled", bold=True)
    facts = [hit.agent, WORDS.get(hit.type, hit.type), ago(hit.created_at)]
    return f"{title}  " + click.style(
        " · ".join(escape_text(fact) for fact in facts if fact), dim=True
    )


def _snippet(hit: Hit) -> str:
    """On one line: what matched stands out, white space does not."""
    parts = []
    for text, matched in hit.pieces:
        words = " ".join(text.split())
        start = " " if text[:1].isspace() else ""
        end = " " if words and text[-1:].isspace() else ""
        line = escape_text(f"{start}{words}{end}")
        parts.append(click.style(line, fg="red", bold=True) if matched else line)
    return "".join(parts).strip()


def _say_how_many(out: Output, found: SearchResult) -> None:
    count = len(found.hits)
    if not count:
        out.say("Nothing found.")
    elif found.total is None:
        out.say(f"{plural(count, 'hit')}; there are more, or may be. -n shows more of them.")
    elif found.total > count:
        out.say(f"{count:,} of {found.total:,} hits; -n shows more.")
