"""`mulligan stats`"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, escape_text, plural
from mulligan.cli.sessions.search import moment
from mulligan.errors import UsageError
from mulligan.journal.analytics import KEYS
from mulligan.workspace.project.location import home_directory
from mulligan.workspace.search.tool_stats import (
    Calls,
    Stats,
    Usage,
    Which,
    calls,
    calls_everywhere,
    delete_stats,
    delete_stats_everywhere,
    stats_everywhere,
)
from mulligan.workspace.search.tool_stats import stats as counted

BAR_COLUMNS = 20
CALL = "call"
EIGHTHS = " ▏▎▍▌▋▊▉█"


@command(
    "stats",
    examples="""
mulligan stats                             tools, the most used first
mulligan stats --least -n 5                the five least used
mulligan stats --by day --since 30d --tool Bash
mulligan stats --all --by agent --by tool
mulligan stats --by call --export calls.csv
mulligan stats --delete --yes
""",
)
@click.option(
    "--by",
    multiple=True,
    type=click.Choice([*KEYS, CALL]),
    help="Count by this; may be given twice. `call` lists each call.",
)
@click.option("--all", "everywhere", is_flag=True, help="Over all projects.")
@click.option("--session", metavar="S", help="Only in this session; @ is the latest.")
@click.option("--agent", metavar="A", help="Only calls by this agent.")
@click.option("--tool", metavar="T", help="Only calls of this tool.")
@click.option("--since", metavar="WHEN", help="Not older than: 12h, 2d, 8w, or a date.")
@click.option("--before", metavar="WHEN", help="Older than.")
@click.option("-n", "limit", type=click.IntRange(min=0), metavar="N", help="Only the first N.")
@click.option("--least", is_flag=True, help="The least used first.")
@click.option("--export", "target", metavar="FILE", help="Write to a new FILE.csv or FILE.json.")
@click.option("--delete", is_flag=True, help="Forget all of this; sessions stay as they are.")
@click.option("--yes", is_flag=True, help="Do not ask before deleting.")
def stats(
    out: Output,
    by: tuple[str, ...],
    everywhere: bool,
    session: str | None,
    agent: str | None,
    tool: str | None,
    since: str | None,
    before: str | None,
    limit: int | None,
    least: bool,
    target: str | None,
    delete: bool,
    yes: bool,
) -> None:
    """Show which tools agents used: how often, with what success, how long it took.

    Times of the day are UTC. Nothing of what was said or done is in it.
    """
    if session and everywhere:
        raise UsageError("A session is in one project; leave out --session or --all.")
    which: Which = {
        "agent": agent, "tool": tool, "after": moment(since), "before": moment(before),
    }  # fmt: skip
    if delete:
        if any((by, session, target, *which.values())):
            raise UsageError("--delete forgets everything; it goes with --all and --yes only.")
        _delete(out, everywhere, yes)
        return
    if CALL in by and len(by) > 1:
        raise UsageError("--by call lists each call, and cannot be counted by something else.")
    found = _found(out, by or ("tool",), everywhere, session, which)
    if isinstance(found, Stats):
        found = found.first(limit, least=least)
    if target:
        _export(out, target, found)
    elif out.as_json or isinstance(found, Calls):
        out.data(found.as_json())
    else:
        out.paged(_lines(found))
        if not found.rows:
            out.say("No tool was called.")
    for problem in found.problems:
        out.say(click.style("Not counted: ", fg="red") + escape_text(problem))


def _found(
    out: Output, by: tuple[str, ...], everywhere: bool, session: str | None, which: Which
) -> Stats | Calls:
    if everywhere:
        home = home_directory()
        return (
            calls_everywhere(home, **which) if CALL in by else stats_everywhere(home, by, **which)
        )
    with out.workspace() as workspace:
        if CALL in by:
            return calls(workspace.project, session=session, **which)
        return counted(workspace.project, by, session=session, **which)


def _export(out: Output, path: str, found: Stats | Calls) -> None:
    if path.endswith(".csv"):
        text = found.as_csv()
    elif path.endswith(".json"):
        text = json.dumps(found.as_json(), indent=2) + "\n"
    else:
        raise UsageError(f"{path} must end with .csv or .json.")
    try:
        with open(os.path.join(out.base, path), "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists already; give another name.") from None
    out.say(f"Wrote {escape_text(path)}.")


def _delete(out: Output, everywhere: bool, yes: bool) -> None:
    where = "all projects" if everywhere else "this project"
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("Say --yes to delete without being asked.")
        click.confirm(f"Forget which tools were called in {where}?", abort=True, err=True)
    problems: tuple[str, ...] = ()
    if everywhere:
        deleted, problems = delete_stats_everywhere(home_directory())
    else:
        with out.workspace() as workspace:
            deleted = delete_stats(workspace.project)
    if out.as_json:
        out.data({"deleted": deleted, "problems": list(problems)})
    else:
        out.say(f"Forgot {plural(deleted, 'call')}.")
    for problem in problems:
        out.say(click.style("Not deleted: ", fg="red") + escape_text(problem))


def _lines(found: Stats) -> Iterator[str]:
    if not found.rows:
        return
    keys = [[escape_text(part) or "-" for part in row.key] for row in found.rows]
    widths = [max(map(len, parts)) for parts in zip(*keys, strict=True)]
    names = ["  ".join(map(str.ljust, key, widths)) for key in keys]
    width = max(len(names[0]), len(" and ".join(found.by)))
    most = max(row.calls for row in found.rows)
    labels = f"{' and '.join(found.by):{width}}  {'':{BAR_COLUMNS}}"
    title = f"{labels} {'calls':>8}  success   average       p95"
    yield click.style(title, dim=True)
    for name, row in zip(names, found.rows, strict=True):
        yield f"{name:{width}}  {click.style(_bar(row.calls / most), fg='cyan')} {_numbers(row)}"
    if len(names) > 1:
        yield f"{'all':{width}}  {'':{BAR_COLUMNS}} {_numbers(found.total)}"


def _numbers(row: Usage) -> str:
    rate = "–" if row.success_rate is None else f"{100 * row.success_rate:.0f} %"
    colour = "red" if row.failure else None
    return (
        f"{row.calls:>8,}  {click.style(f'{rate:>7}', fg=colour)}  "
        f"{_duration(row.average_ms):>8}  {_duration(row.p95_ms):>8}"
        + (f"  {row.unknown:,} not ended" if row.unknown else "")
    )


def _bar(share: float) -> str:
    filled = max(1, round(share * BAR_COLUMNS * 8))
    return f"{'█' * (filled // 8) + EIGHTHS[filled % 8].strip():{BAR_COLUMNS}}"


def _duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "–"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
