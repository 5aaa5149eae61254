"""Print the results of restore, undo, redo and goto."""

from __future__ import annotations

import click

from mulligan.cli.output import Output, ago, change_line, escape_text, exit_status, plural
from mulligan.errors import MulliganError, WouldLoseWork
from mulligan.workspace.restore.elsewhere import DIFFERS, RestoredElsewhere
from mulligan.workspace.restore.taking_out import would_be_forced
from mulligan.workspace.results.files import RestoreResult
from mulligan.worktree.restore.displaced import CHANGED_CONCURRENTLY

INCOMPLETE = "Not all of it could be done; each path left alone is listed with the reason."


def report(out: Output, done: RestoreResult) -> int:
    """Print the result; return the exit code."""
    failed = not done.verified
    refused = _refused(done) and not failed
    if out.as_json:
        found = done.as_json()
        if refused:
            found["error"] = {"code": WouldLoseWork.code, "message": _summary(done)}
        elif failed:
            found["error"] = {"code": MulliganError.code, "message": INCOMPLETE}
        out.data(found)
    else:
        for path in done.restored:
            out.line(change_line("restored", path, 0, 0))
        for path in done.deleted:
            out.line(change_line("deleted", path, 0, 0))
        for skip in done.skipped:
            out.line(
                f"{click.style('S', fg='cyan', bold=True)}  {escape_text(skip.path)}: {skip.reason}"
            )
        out.say(_summary(done))
        if failed:
            out.say(INCOMPLETE)
        for path in done.rescued:
            out.say(f"Changed during the restore, so kept as a copy: {escape_text(path)}")
        if done.dirty and not done.preview and (done.restored or done.deleted):
            out.say(
                f"{plural(len(done.dirty), 'file')} had content that was in no checkpoint; "
                "the safety checkpoint holds it."
            )
    if refused:
        return exit_status(WouldLoseWork.code)
    return exit_status(MulliganError.code) if failed else 0


def report_elsewhere(out: Output, done: RestoredElsewhere) -> int:
    """Print what was written into another directory; return the exit code."""
    refused = any(each.reason == DIFFERS for each in done.skipped) and not done.restored
    counts = f"{len(done.written):,} written, {len(done.skipped):,} left alone"
    verb = "Would restore" if done.preview else "Restored"
    summary = f"{verb} to {escape_text(done.directory)}: {counts}."
    if any(each.reason == DIFFERS for each in done.skipped):
        summary += " `--force` overwrites files that differ, and keeps a copy."
    if out.as_json:
        found = done.as_json()
        if refused:
            found["error"] = {"code": WouldLoseWork.code, "message": summary}
        elif not done.verified:
            found["error"] = {"code": MulliganError.code, "message": INCOMPLETE}
        out.data(found)
    else:
        for path in done.written:
            out.line(change_line("restored", path, 0, 0))
        for skip in done.skipped:
            out.line(
                f"{click.style('S', fg='cyan', bold=True)}  {escape_text(skip.path)}: {skip.reason}"
            )
        out.say(summary if done.verified else f"{summary} {INCOMPLETE}")
        if done.backup is not None:
            way = f"mulligan restore {done.backup[:8]} --force --to {escape_text(done.directory)}"
            out.say(f"The overwritten files are kept: `{way}` restores them.")
    if refused:
        return exit_status(WouldLoseWork.code)
    return 0 if done.verified else exit_status(MulliganError.code)


def _refused(done: RestoreResult) -> bool:
    """Return True if nothing was changed, to protect edits by others."""
    protected = any(
        would_be_forced(skip.reason) or skip.reason == CHANGED_CONCURRENTLY for skip in done.skipped
    )
    return protected and not (done.restored or done.deleted)


def _summary(done: RestoreResult) -> str:
    counts = f"{len(done.restored):,} restored, {len(done.deleted):,} deleted"
    if done.skipped:
        counts += f", {len(done.skipped):,} left alone"
    if done.preview:
        dirty = f"; {len(done.dirty):,} of them in no checkpoint" if done.dirty else ""
        root = f" in {escape_text(done.root)}" if done.root is not None else ""
        return f"Would {_planned_action(done)}{root}: {counts}{dirty}. Nothing was changed."
    if not (done.restored or done.deleted):
        if done.skipped:
            return f"Nothing was changed: {plural(len(done.skipped), 'path')} left alone."
        if done.operation is None:
            return "Nothing to do: the files are in that state already."
        counts = "no file had to change"
    if done.undoes is None:
        return f"Restored to {(done.target or '')[:8]}: {counts}. `mulligan undo` takes it back."
    if done.kind == "redo":
        return f"Did {_operation(done)} again: {counts}. `mulligan undo` takes it back."
    hint = "`mulligan redo` does it again."
    if any(would_be_forced(skip.reason) for skip in done.skipped):
        way = f"mulligan restore --force {(done.target or '')[:8]} PATH"
        hint = f"`{way}` restores a path that was left alone."
    return f"Took back {_operation(done)}: {counts}. {hint}"


def _planned_action(done: RestoreResult) -> str:
    if done.kind == "restore":
        return f"restore to {(done.target or '')[:8]}"
    if done.kind == "goto":
        return "bring the files there"
    if done.kind == "redo":
        return f"do {_operation(done)} again"
    return f"take back {_operation(done)}"


def _operation(done: RestoreResult) -> str:
    """Name the operation to undo or redo by its kind and age."""
    if done.undoes_at is None:
        return "the work of the open turn"
    return f"the {done.undoes_kind} of {ago(done.undoes_at)}"
