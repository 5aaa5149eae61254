"""`mulligan sessions`"""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from mulligan.cli.group import command
from mulligan.cli.output import (
    Output,
    ago,
    escape_prose,
    escape_text,
    plural,
    short_id,
    unique_prefix_len,
)
from mulligan.core.entries import STATUSES
from mulligan.errors import Busy, MulliganError, NotWritable, OutOfSpace, UsageError
from mulligan.exporters.pieces import title_of
from mulligan.workspace.opening import open_location
from mulligan.workspace.project.location import home_directory, known_projects
from mulligan.workspace.results.review import PendingStats
from mulligan.workspace.results.sessions import Session, SessionPage
from mulligan.workspace.workspace import Workspace

DEFAULT_PAGE_SESSIONS = 50
STATUS_COLOURS = {"running": "green", "starting": "green", "waiting_input": "yellow"}
Pending = dict[str, PendingStats]


@command(
    "sessions",
    examples="""
mulligan sessions
mulligan sessions -n 5 --agent claude-code
mulligan sessions --status waiting_input
mulligan sessions --all --json | jq -r '.sessions[].title'
""",
)
@click.option("-n", "limit", type=click.IntRange(min=1), default=DEFAULT_PAGE_SESSIONS, metavar="N",
              help=f"The newest N; {DEFAULT_PAGE_SESSIONS} without.")  # fmt: skip
@click.option("--status", type=click.Choice(STATUSES), metavar="S", help="Only in this state.")
@click.option("--agent", metavar="A", help="Only with this agent.")
@click.option("--all", "everywhere", is_flag=True, help="Of every project.")
@click.option("--offset", type=click.IntRange(min=0), default=0, metavar="N", help="Go on there.")
@click.option("--cursor", metavar="C", help="Go on after the page that gave this cursor.")
def sessions(
    out: Output,
    limit: int,
    status: str | None,
    agent: str | None,
    everywhere: bool,
    offset: int,
    cursor: str | None,
) -> None:
    """List the sessions, newest first. One is named by its id, by its beginning, or by @, @1…"""
    pending: Pending = {}
    if everywhere:
        if cursor is not None:
            raise UsageError("A cursor is of one project; go on with --offset.")
        page = _of_all(out, limit, offset, status, agent)
    else:
        with out.workspace() as workspace:
            page = workspace.sessions.list(
                limit=limit, offset=offset, cursor=cursor, status=status, agent=agent
            )
            try:
                pending = workspace.review.stats() if page.sessions else {}
            except (Busy, NotWritable, OutOfSpace) as problem:
                out.say(f"What is pending is not shown: {problem}")
    if out.as_json:
        out.data(_as_json(page, pending))
        return
    out.paged(_lines(page, pending, everywhere))
    if not page.sessions:
        out.say("There is no such session." if status or agent or offset else "No session yet.")
    elif page.has_more:
        out.say(f"There are more; go on with --offset {page.next_offset}.")


def _of_all(
    out: Output, limit: int, offset: int, status: str | None, agent: str | None
) -> SessionPage:
    """The newest of all projects. A project that cannot be read is named and passed over."""
    home = home_directory()
    found: list[Session] = []
    for project in known_projects(home):
        if not os.path.exists(project.path("journal.sqlite")):
            continue
        try:
            with Workspace(open_location(project, home, wait=1)) as workspace:
                page = workspace.sessions.list(limit=offset + limit + 1, status=status, agent=agent)
        except (MulliganError, OSError) as problem:
            where = escape_text(os.fsdecode(project.root))
            out.say(click.style(f"Not read: {where}: ", fg="red") + escape_text(str(problem)))
            continue
        found += page.sessions
    found.sort(key=lambda each: each.updated_at, reverse=True)
    more = len(found) > offset + limit
    return SessionPage(
        tuple(found[offset : offset + limit]), more, None, offset + limit if more else None
    )


def _as_json(page: SessionPage, pending: Pending) -> dict[str, object]:
    rows = []
    for each in page.sessions:
        waiting = pending.get(each.id)
        rows.append(each.as_json() | {"pending": waiting.as_json() if waiting else None})
    return page.as_json() | {"sessions": rows}


def _lines(page: SessionPage, pending: Pending, everywhere: bool) -> Iterator[str]:
    rows = page.sessions
    agents = max((len(each.agent) for each in rows), default=0)
    models = max((len(each.model or "") for each in rows), default=0)
    counts = {each.id: _counts(pending.get(each.id)) for each in rows}
    width = max(len(plain) for plain, _styled in counts.values()) if rows else 0
    length = unique_prefix_len(each.id for each in rows)
    for each in rows:
        plain, styled = counts[each.id]
        columns = [
            click.style(f"{short_id(each.id, length):{length}}", fg="yellow"),
            f"{ago(each.updated_at):>10}",
            click.style(f"{each.status:13}", fg=STATUS_COLOURS.get(each.status)),
            f"{escape_text(each.agent):{agents}}",
        ]
        if models:
            columns.append(click.style(f"{escape_text(each.model or ''):{models}}", dim=True))
        if width:
            columns.append(" " * (width - len(plain)) + styled)
        columns.append(escape_prose(title_of(each.title)) or click.style("(no title)", dim=True))
        if everywhere:
            columns.append(click.style(escape_text(each.project), dim=True))
        yield "  ".join(columns).rstrip()


def _counts(stats: PendingStats | None) -> tuple[str, str]:
    """What waits for a decision, as it is measured and as it is shown."""
    if stats is None:
        return "", ""
    plus, minus = f"+{stats.additions}", f"−{stats.deletions}"
    files = "" if stats.additions or stats.deletions else f" {plural(stats.files, 'file')}"
    styled = f"{click.style(plus, fg='green')} {click.style(minus, fg='red')}{files}"
    return f"{plus} {minus}{files}", styled
