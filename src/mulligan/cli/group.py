"""The command group: the list of commands, and what all commands share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import click

from mulligan.cli import output
from mulligan.errors import NO_MEMORY, MulliganError
from mulligan.version import __version__

SECTIONS = {
    "Begin here": {
        "up": "Protect a project, and open the page.",
        "demo": "Look around: a sample project with agents at work.",
    },
    "Stand behind an agent": {
        "install": "Let an agent call Mulligan at each of its steps.",
        "uninstall": "Take back what `install` wrote.",
        "run": "Run any program under protection.",
        "turn": "Say where an agent's turn begins and ends.",
    },
    "Decide on what agents did": {
        "pending": "List what agents did and you have not decided on yet.",
        "review": "Go through what agents did, change by change.",
        "keep": "Keep what an agent did: hunks, files, a turn, everything.",
        "discard": "Undo what an agent did: hunks, files, a turn, everything.",
        "approve": "Keep everything that a session did, and begin a new round.",
        "reset": "Undo everything that a session did and you have not kept.",
    },
    "Go back": {
        "undo": "Take back the last operation that changed something.",
        "redo": "Take back the last undo.",
        "restore": "Bring the project, or some paths, back to a checkpoint.",
        "goto": "Go to an entry of a session, and the files with it.",
    },
    "Checkpoints": {
        "checkpoint": "Take a checkpoint of the project.",
        "log": "List the checkpoints, newest first.",
        "status": "Show what changed since the last checkpoint.",
        "diff": "Show differences between checkpoints, or with the disk.",
        "show": "Show a checkpoint, or a file as it was in it.",
        "operations": "List what was done, newest first.",
        "watch": "Watch the project, so that checkpoints cost what changed.",
    },
    "Sessions": {
        "sessions": "List the sessions, newest first.",
        "session": "Show, begin, name, fork, compact or delete a session.",
        "tree": "Draw a session's tree: turns, branches, labels.",
        "search": "Find what was said and done in sessions.",
        "stats": "Show which tools agents used, and how that went.",
        "import": "Take in sessions from other agents' logs.",
        "export": "Write a session as JSONL, Markdown, HTML, or as a git branch.",
    },
    "For programs": {
        "serve": "Serve programs and the page: HTTP, live events, WebSocket.",
        "rpc": "Answer commands that come as lines of JSON, for programs.",
        "mcp": "Offer checkpoints, undo and search to agents as MCP tools.",
        "hook": "What agents call; reads an event, answers, never blocks.",
    },
    "Upkeep": {
        "doctor": "Explain what is wrong here, and how to mend it.",
        "trust": "Accept what the project's own settings and rules weaken.",
        "verify": "Re-read and re-hash everything that is stored.",
        "forget": "Drop old checkpoints.",
        "gc": "Free what no checkpoint needs any more.",
        "completion": "Print the completion script for a shell.",
    },
}
COMMANDS = {name: words for section in SECTIONS.values() for name, words in section.items()}

EXTRAS = {"anyio": "server", "starlette": "server", "uvicorn": "server", "websockets": "server"}
EXTRAS |= {"mcp": "mcp"}
"""Optional packages, and the extra of pyproject.toml that installs each."""
FOLDERS = {
    "agents": ("hook", "install", "mcp", "rpc", "run", "uninstall"),
    "demo": ("demo",),
    "files": (
        *("checkpoint", "diff", "log", "operations", "redo", "restore", "show", "status"),
        "undo",
    ),
    "maintenance": ("doctor", "forget", "gc", "verify"),
    "review": ("approve", "discard", "keep", "pending", "reset", "review"),
    "server": ("serve", "up", "watch"),
    "sessions": (
        "export",
        "goto",
        "import",
        "search",
        "session",
        "sessions",
        "stats",
        "tree",
        "turn",
    ),
}
FOLDER_OF = {command: f"{folder}." for folder, commands in FOLDERS.items() for command in commands}
MODULE_OF = {"import": ("import_logs", "import_command"), "mcp": ("mcp_command", "mcp_command")}
"""Commands whose names are Python keywords or the names of packages: module and function."""


class Group(click.Group):
    """Import a command's module when the command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = MODULE_OF.get(cmd_name, (cmd_name, cmd_name))
        folder = FOLDER_OF.get(cmd_name, "")
        command = getattr(import_module(f"mulligan.cli.{folder}{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                rows = [(f"{name:{max(map(len, COMMANDS))}}", commands[name]) for name in commands]
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run a command; the one place where errors become exit codes."""
        given = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in given
        try:
            code = super().main(given, standalone_mode=False, **extra)
        except MulliganError as problem:
            output.error(problem.code, str(problem), as_json=as_json)
            sys.exit(output.exit_status(problem.code))
        except click.exceptions.NoArgsIsHelpError as problem:
            click.echo(problem.format_message(), err=True)
            sys.exit(output.exit_status("usage"))
        except click.UsageError as problem:
            # A list of what can be chosen comes with a line each.
            message = " ".join(problem.format_message().split())
            output.error("usage", message, as_json=as_json)
            if problem.ctx is not None and not as_json:
                click.echo(f"Try `{problem.ctx.command_path} --help`.", err=True)
            sys.exit(output.exit_status("usage"))
        except click.ClickException as problem:
            output.error("failed", problem.format_message(), as_json=as_json)
            sys.exit(1)
        except (click.Abort, KeyboardInterrupt):
            click.echo("Interrupted.", err=True)
            sys.exit(130)
        except BrokenPipeError:
            # The reader closed the pipe.
            sys.stderr.close()
            sys.exit(141)
        except ModuleNotFoundError as problem:
            missing = EXTRAS.get((problem.name or "").partition(".")[0])
            if missing is None:
                raise
            message = f"This needs more than is installed: `pip install 'mulligan[{missing}]'`."
            output.error("unsupported", message, as_json=as_json)
            sys.exit(output.exit_status("unsupported"))
        except MemoryError:
            output.error("failed", NO_MEMORY, as_json=as_json)
            sys.exit(1)
        except (OSError, RecursionError) as problem:
            output.error("failed", f"{problem}" or type(problem).__name__, as_json=as_json)
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Begin with `mulligan up`, or `mulligan checkpoint`. After anything went wrong: "
    "`mulligan undo`, or `mulligan restore @`.",
)
@click.version_option(__version__, "-V", "--version", message="mulligan %(version)s")
@click.option("-C", "directory", metavar="DIR", help="Work on the project that DIR lies in.")
@click.option("--json", "as_json", is_flag=True, help="Print data as JSON.")
@click.option("--any-root", is_flag=True, help="Accept / or a home directory as a project.")
@click.pass_context
def mulligan(ctx: click.Context, directory: str | None, as_json: bool, any_root: bool) -> None:
    """Checkpoints of any project, and an undo that cannot lose a byte."""
    ctx.color = output.colours()
    ctx.obj = output.Output(directory=directory, as_json=as_json, any_root=any_root)


class Command(click.Command):
    """A command whose help ends with examples, the epilog: a line each, and what it does."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.epilog or "", formatter)


class CommandGroup(click.Group):
    """A command that has commands of its own."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.epilog or "", formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            rows = [(name, each.get_short_help_str(200)) for name, each in self.commands.items()]
            formatter.write_dl(rows)


def command(
    name: str, *, examples: str, kind: type[click.Command] = Command
) -> Callable[[Callable[..., Any]], Any]:
    """Create a command with the common options, and examples in its help."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        def run(
            ctx: click.Context, directory: str | None, as_json: bool, any_root: bool, **given: Any
        ) -> Any:
            out = ctx.ensure_object(output.Output)
            out.directory = directory or out.directory
            out.as_json = as_json or out.as_json
            out.any_root = any_root or out.any_root
            return function(out, **given)

        run.__doc__ = function.__doc__
        run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        made: Any = click.pass_context(run)
        made = click.option("--any-root", is_flag=True, hidden=True)(made)
        made = click.option("--json", "as_json", is_flag=True, help="Print data as JSON.")(made)
        made = click.option("-C", "directory", metavar="DIR", help="Work on that project.")(made)
        settings = {"help_option_names": ["-h", "--help"]}
        return click.command(name, cls=kind, epilog=examples, context_settings=settings)(made)

    return decorate


def _write_examples(examples: str, formatter: click.HelpFormatter) -> None:
    """Write example lines for a shell, each with its comment beside or above it."""
    rows = [re.split(r"\s{2,}", line, maxsplit=1) for line in examples.strip().splitlines()]
    column = max((len(row[0]) for row in rows if len(row) > 1), default=0)
    with formatter.section("Examples"):
        start = " " * formatter.current_indent
        for line, *words in rows:
            note = "".join(f"# {each}" for each in words)
            beside = f"{start}{line:{column}}  {note}"
            if note and len(beside) > formatter.width:
                formatter.write(f"{start}{note}\n{start}{line}\n")
            else:
                formatter.write(f"{beside.rstrip()}\n")
