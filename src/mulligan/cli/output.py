"""Output of the commands: data to stdout, messages and progress to stderr."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from mulligan.clock import now_ns
from mulligan.core.coverage import Coverage, decode_path, encode_path
from mulligan.core.invisible import escape_invisible
from mulligan.core.times import nanoseconds

if TYPE_CHECKING:
    from mulligan.workspace.results.files import FolderChange, Operation
    from mulligan.workspace.workspace import Workspace

EXIT = {
    "failed": 1,
    "usage": 2,
    "refused_root": 2,
    "not_found": 3,
    "ambiguous": 3,
    "nothing_to_undo": 3,
    "would_lose_work": 4,
    "busy": 5,
    "corrupt": 1,
    "missing_object": 1,
    "newer_format": 1,
    "out_of_space": 1,
    "not_writable": 1,
    "unsupported": 1,
}
"""0 done, 1 failed, 2 wrong usage, 3 not found, 4 would lose work, 5 busy."""


def exit_status(code: str) -> int:
    return EXIT[code]


def colours() -> bool | None:
    """Return False if the user wants no colours; None lets click decide by the terminal."""
    unwanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if unwanted else None


def error(code: str, message: str, *, as_json: bool) -> None:
    """Print an error for people, and with --json as data for programs."""
    text = click.style("mulligan: ", fg="red") + escape_text(message)
    click.echo(text, err=True, color=colours())
    if as_json:
        try:
            click.echo(json.dumps({"error": {"code": code, "message": message}}))
        except OSError:
            # The reader of stdout is gone; stderr and the exit code report the error.
            return


@dataclass
class Output:
    """The options that every command has, and the ways to print."""

    directory: str | None = None
    as_json: bool = False
    any_root: bool = False
    progress: Progress | None = None

    @property
    def base(self) -> str:
        """The directory that paths on the command line are relative to."""
        return os.path.abspath(self.directory or os.getcwd())

    @contextmanager
    def workspace(self, *, create: bool = False, watch: bool = False) -> Iterator[Workspace]:
        """Open the project with a progress line; report recovered operations."""
        from mulligan.workspace.workspace import open_workspace

        progress = self.progress = Progress()
        with (
            progress,
            open_workspace(
                self.base,
                watch=watch,
                create=create,
                allow_any_root=self.any_root,
                progress=progress.show,
            ) as workspace,
        ):
            try:
                yield workspace
            finally:
                progress.clear()
                for operation in workspace.project.recovered:
                    self._report_recovered(operation)
                for path, reason in workspace.project.broken_rule_files():
                    self.say(
                        f"Passed over: {escape_text(path)} {escape_text(reason)}. "
                        "Nothing in it counts."
                    )

    def _report_recovered(self, operation: Operation) -> None:
        """Report an interrupted operation that this command has finished or abandoned."""
        if operation.state != "applied":
            reason = operation.summary.get("reason", "")
            self.say(
                f"The {operation.kind} that was interrupted before was given up: {reason}. "
                "Run it again if you still want it."
            )
            return
        self.say(f"Finished the {operation.kind} that was interrupted before.")
        for path in operation.summary.get("rescued", ()):
            self.say(f"Rescued what was caught in between: {escape_text(path)}")
        for each in operation.summary.get("skipped", ()):
            self.say(f"Left alone: {escape_text(each['path'])}: {each['reason']}")

    def clear_progress(self) -> None:
        """Erase the progress line before other output."""
        if self.progress is not None:
            self.progress.clear()

    def paths(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """Resolve paths from the command line against the base directory."""
        return tuple(os.path.join(self.base, each) if each else "" for each in given)

    def data(self, content: dict[str, Any]) -> None:
        self.line(json.dumps(content, indent=2 if sys.stdout.isatty() else None))

    def line(self, text: str | bytes = "", *, nl: bool = True) -> None:
        self.clear_progress()
        try:
            click.echo(text if isinstance(text, bytes) else escape_controls(text), nl=nl)
        except BrokenPipeError:
            # The reader closed the pipe; the command itself goes on.
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, sys.stdout.fileno())
            os.close(quiet)

    def paged(self, lines: Iterable[str]) -> None:
        """Print lines of data, through the pager if they do not fit on the terminal."""
        text = escape_controls("\n".join(lines))
        if not text:
            return
        # A terminal that does not know how many lines it has says 0.
        if sys.stdout.isatty() and text.count("\n") + 1 >= (os.get_terminal_size(1).lines or 24):
            click.echo_via_pager(text + "\n")
        else:
            self.line(text)

    def say(self, text: str) -> None:
        self.clear_progress()
        click.echo(escape_controls(text), err=True)


class Progress:
    """A progress line on the terminal; silent if stderr is no terminal."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._shown = False
        self._last = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: object) -> None:
        self.clear()

    def show(self, stage: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if not self._on or now - self._last < 0.1:
            return
        self._last = now
        self._shown = True
        if total:
            filled = int(24 * done / total)
            bar = "█" * filled + "░" * (24 - filled)
            text = f"{stage} {bar} {done:,} of {total:,}"
        else:
            text = f"{stage} … {done:,}" if done else f"{stage} …"
        # A line that wraps could not be erased.
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[2K{text[:width]}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._shown = False


def ago(moment: str) -> str:
    """Format a time as its age, such as "5 min ago"."""
    seconds = max(0.0, (now_ns() - nanoseconds(moment)) / 1e9)
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < limit:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds // 86400)} d ago"


def size(number: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TB"


def plural(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def uncovered(coverage: Coverage, limit: int | None = None) -> list[str]:
    """Return a line for each path that the checkpoint does not cover."""
    lines = [
        f"  not covered: {escape_text(decode_path(path)) or 'everything else'} {reason}"
        for path, reason in coverage.skipped[:limit]
    ]
    rest = len(coverage.skipped) - len(lines)
    if rest:
        lines.append(f"  … and {rest:,} more; see `mulligan show @`.")
    return lines + _not_in_effect(coverage, limit)


def _not_in_effect(coverage: Coverage, limit: int | None) -> list[str]:
    """Return a line for each rule file that is not fully in effect.

    Broken ones at the root are left out: every command warns of them.
    """
    listed = [each for each in coverage.passed_over if b"/" in each.path or not each.broken]
    lines = []
    for path, reason, broken in listed[:limit]:
        way = "" if broken else "; `mulligan trust` shows it, and accepts it"
        lines.append(
            f"  not in effect: {escape_text(decode_path(path))} {escape_text(reason)}{way}"
        )
    rest = len(listed) - len(lines)
    return [*lines, f"  … and {rest:,} more; see `mulligan trust`."] if rest else lines


def guarded(paths: Sequence[str], checkpoint: str) -> str:
    """Say which guarded files have changed, and how to restore them."""
    names = ", ".join(escape_text(path) for path in paths[:3])
    if len(paths) > 3:
        names += f" and {len(paths) - 3:,} more"
    way = f"`mulligan restore {checkpoint[:8]} PATH` brings one back"
    return f"Guarded, and changed since: {names}; {way}."


def short_id(id: str, length: int = 8) -> str:
    """Return the beginning of an id; a suffix after a colon stays whole."""
    begin, colon, part = id.partition(":")
    return escape_text(begin[:length] + colon + part)


def unique_prefix_len(ids: Iterable[str], least: int = 8) -> int:
    """Return the shortest prefix length, at least `least`, that keeps ids distinct."""
    known = sorted(set(ids))
    needed = least
    for one, other in pairwise(known):
        while one[:needed] == other[:needed]:
            needed += 1
    return needed


def escape_text(path: str) -> str:
    """Escape what a terminal would act on, or a reader would not see."""
    return escape_invisible(path, _escaped)


def escape_prose(prose: str) -> str:
    """Escape a title or a message for a terminal; emoji and blanks stay."""
    return escape_invisible(prose, _escaped, prose=True)


def escape_controls(text: str) -> str:
    """Escape every control character but newlines, tabs and the colours of `click.style`.

    Fields are escaped by `shown` where they are put into a line; this is for one that was not.
    """
    return _CONTROLS.sub(lambda match: match[1] or _escaped(match[0]), text)


def escape_terminal(line: str) -> str:
    """Escape a line of a file for a terminal; tabs stay."""
    return "\t".join(escape_text(part) for part in line.split("\t"))


def _escaped(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in encode_path(character))


_CONTROLS = re.compile("(\x1b\\[[0-9;]*m)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
STATUS_COLOURS = {"added": "green", "modified": "yellow", "deleted": "red", "renamed": "cyan"}


def change_line(state: str, path: str, additions: int, deletions: int, note: str = "") -> str:
    letter = click.style(state[0].upper(), fg=STATUS_COLOURS.get(state), bold=True)
    counts = ""
    if additions or deletions:
        plus = click.style(f"+{additions}", fg="green")
        counts = f"  {plus} {click.style(f'−{deletions}', fg='red')}"
    return f"{letter}  {escape_text(path)}{counts}{note}"


def folder_line(change: FolderChange) -> str:
    modes = ""
    if change.status == "modified":
        modes = f"  {change.old_mode} → {change.new_mode}"
    return change_line(change.status, change.path + "/", 0, 0, modes)
