"""What restore, undo and redo say when they are done."""

from __future__ import annotations

import click

from mulligan.cli.output import Output, change_line, plural, shown
from mulligan.workspace.results import RestorePlan, RestoreResult


def report(out: Output, done: RestoreResult | RestorePlan) -> int:
    """Prints the result; gives the exit code."""
    preview = isinstance(done, RestorePlan) or done.preview
    if out.as_json:
        out.data(done.as_json())
    else:
        for path in done.restored:
            out.line(change_line("restored", path, 0, 0))
        for path in done.deleted:
            out.line(change_line("deleted", path, 0, 0))
        for skip in done.skipped:
            out.line(f"{click.style('S', fg='cyan', bold=True)}  {shown(skip.path)}: {skip.reason}")
        out.say(_summary(done, preview))
        for path in getattr(done, "rescued", ()):
            out.say(f"Saved by somebody at the very moment, and put beside: {shown(path)}")
        if done.dirty and not preview and (done.restored or done.deleted):
            out.say(
                f"{plural(len(done.dirty), 'file')} had content that was in no checkpoint yet; "
                "it is safe in the safety checkpoint."
            )
    if isinstance(done, RestoreResult) and not done.verified:
        return 1
    return 0


def _summary(done: RestoreResult | RestorePlan, preview: bool) -> str:
    what = f"{len(done.restored):,} restored, {len(done.deleted):,} deleted"
    if done.skipped:
        what += f", {len(done.skipped):,} left alone"
    if preview:
        dirty = f"; {len(done.dirty):,} of them in no checkpoint yet" if done.dirty else ""
        return f"Would do: {what}{dirty}. Nothing was changed."
    assert isinstance(done, RestoreResult)
    if done.operation is None:
        if done.skipped:
            return f"Nothing was changed: {plural(len(done.skipped), 'path')} left alone."
        return "Nothing to do: everything is as it should be already."
    if done.undoes and not (done.restored or done.deleted):
        which = f"The {done.undoes_kind}, operation {done.undoes},"
        return f"{which} is taken back; no file had to change for that."
    if done.kind == "undo":
        which = f"the {done.undoes_kind}, operation {done.undoes}"
        return f"Took back {which}: {what}. `mulligan redo` does it again."
    if done.kind == "redo":
        return f"Did it again: {what}. `mulligan undo` takes it back."
    return f"Restored to {(done.target or '')[:8]}: {what}. `mulligan undo` takes it back."
