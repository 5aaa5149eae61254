"""`mulligan export`"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO

import click

from mulligan.cli.complete import session_names
from mulligan.cli.group import command
from mulligan.cli.output import Output, escape_text, plural
from mulligan.errors import UsageError
from mulligan.workspace.transfer.export import FORMATS, GitExport

MAX_SHOWN_PATHS = 5
SUFFIXES = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html"}


@command(
    "export",
    examples="""
mulligan export @ > session.jsonl              everything, for programs and for import
mulligan export @ -o session.md                a document to read
mulligan export 7f3k --format html -o session.html
mulligan export @ --format git --repo ../history
mulligan export @ --format git --repo . --prefix parser
""",
)
@click.argument("session", shell_complete=session_names)
@click.option("--format", type=click.Choice((*FORMATS, "git")),
              help="By default as the name of FILE says, else jsonl.")  # fmt: skip
@click.option("-o", "--output", "file", type=click.Path(), metavar="FILE", help="Write it there.")
@click.option("--replace", is_flag=True, help="Even if FILE is there already.")
@click.option("--repo", type=click.Path(), metavar="DIR", help="The repository, or a new one.")
@click.option("--prefix", metavar="NAME", help="Call the branches NAME/main, NAME/session_1…")
def export(
    out: Output,
    session: str,
    format: str | None,
    file: str | None,
    replace: bool,
    repo: str | None,
    prefix: str | None,
) -> None:
    """Write a session down: as JSONL, as Markdown, as one HTML page, or as branches of git.

    With --format git the session's checkpoints become commits: session_1, session_2… have the work
    of each round, main has what was approved, each approval as a merge. A repository that was
    there before gets them as mulligan-ID/main… unless --prefix says otherwise. No work tree and no
    branch that is checked out is touched.
    """
    format = format or SUFFIXES.get(os.path.splitext(file or "")[1].lower(), "jsonl")
    if format == "git":
        _to_git(out, session, file, repo, prefix)
        return
    if repo is not None or prefix is not None:
        raise UsageError("--repo and --prefix belong to --format git.")
    if out.as_json and file is None:
        raise UsageError(f"With --json, name a file for the {format}: -o FILE.")
    path = os.path.join(out.base, file) if file is not None else None
    if path is not None and os.path.lexists(path) and not replace:
        raise UsageError(f"{file} is there already; say --replace if it may go.")
    with out.workspace() as workspace:
        found = workspace.sessions.get(session).id
        pieces = workspace.sessions.export(found, format)
        if path is None:
            _write(sys.stdout.buffer, pieces)
            return
        size = _save(path, pieces)
    if out.as_json:
        out.data({"session": found, "format": format, "path": path, "bytes": size})
        return
    out.say(f"Wrote {escape_text(path)}.")


def _to_git(
    out: Output, session: str, file: str | None, repo: str | None, prefix: str | None
) -> None:
    if repo is None or file is not None:
        raise UsageError("Name the repository for the commits with --repo, and no file.")
    with out.workspace() as workspace:
        done = workspace.sessions.export_git(session, os.path.join(out.base, repo), prefix)
    if out.as_json:
        out.data(done.as_json())
        return
    out.line(done.head)
    for line in _told(done):
        out.say(line)


def _told(done: GitExport) -> Iterator[str]:
    where = escape_text(shlex.quote(done.repository))
    yield f"{plural(done.commits, 'commit')} on {', '.join(done.branches)}"
    yield f"  what is not approved yet: git -C {where} log {done.branches[0]}..{done.branch}"
    if done.empty_folders:
        yield f"  git keeps no empty folders: {_few(done.empty_folders)}"
    if done.refused:
        yield f"  git keeps these names for itself: {_few(done.refused)}"


def _few(paths: tuple[str, ...]) -> str:
    rest = f" and {len(paths) - MAX_SHOWN_PATHS:,} more" if len(paths) > MAX_SHOWN_PATHS else ""
    return ", ".join(map(escape_text, paths[:MAX_SHOWN_PATHS])) + rest


def _save(path: str, pieces: Iterable[str]) -> int:
    """Writes a file that is there whole, or not at all; gives its size."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "xb") as file:
            _write(file, pieces)
            size = file.tell()
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return size


def _write(file: IO[bytes], pieces: Iterable[str]) -> None:
    for piece in pieces:
        file.write(piece.encode())
    file.flush()
