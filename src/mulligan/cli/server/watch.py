"""`mulligan watch`"""

from __future__ import annotations

import json
import signal
import time
from types import FrameType

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, escape_text, plural
from mulligan.workspace.watch_server import Watching


@command(
    "watch",
    examples="""
mulligan watch                        until Ctrl-C
mulligan watch --checkpoint-after 30  and take a checkpoint whenever all is quiet for 30 s
mulligan watch --json                 one line of JSON for each change
""",
)
@click.option(
    "--checkpoint-after",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Take a checkpoint when nothing has changed for so long after something did.",
)
def watch(out: Output, checkpoint_after: float | None) -> None:
    """Watch the project, so that every command on it costs what changed.

    Takes a first checkpoint if there is none. Shows the paths that change.
    """
    stop = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal stop
        stop = True

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    with (
        out.workspace(create=True, watch=True) as workspace,
        Watching(workspace.project) as watching,
    ):
        if watching.first is not None:
            out.clear_progress()
            files = plural(watching.first.files, "file")
            out.say(f"First checkpoint {watching.first.id}: {files}.")
        out.say(f"Watching {escape_text(workspace.root)}; Ctrl-C ends it.")
        if out.as_json:
            click.echo(json.dumps({"watching": workspace.root}))
        changed_at: float | None = None
        while not stop:
            for path in watching.changes(0.5):
                changed_at = time.monotonic()
                click.echo(json.dumps({"path": path}) if out.as_json else escape_text(path))
            quiet = (
                changed_at is not None
                and checkpoint_after is not None
                and (time.monotonic() - changed_at >= checkpoint_after)
            )
            if quiet:
                changed_at = None
                taken = workspace.checkpoint("All quiet after changes", kind="watch")
                if out.as_json:
                    click.echo(json.dumps(taken.as_json()))
                else:
                    out.say(f"Checkpoint {taken.id[:8]}.")
    out.say("Ended; everything is in order.")
