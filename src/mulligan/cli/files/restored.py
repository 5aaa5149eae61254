"""What restore, undo and redo say when they are done."""

from __future__ import annotations

import click

from mulligan.cli.output import Output, ago, change_line, escape_text, exit_status, plural
from mulligan.errors import MulliganError, WouldLoseWork
from mulligan.workspace.restore.elsewhere import DIFFERS, RestoredElsewhere
from mulligan.workspace.restore.taking_out import would_be_forced
from mulligan.workspace.results.files import RestoreResult
from mulligan.worktree.restore.displaced import CHANGED_CONCURRENTLY

NOT_ALL = "Not all of it could be done; what was left alone is named, each with the reason."


def report(out: Output, done: RestoreResult) -> int:
    """Prints the result; gives the exit code."""
    preview = done.preview
    failed = isinstance(done, RestoreResult) and not done.verified
    refused = _refused(done) and not failed
    if out.as_json:
        found = done.as_json()
        if refused:
            found["error"] = {"code": WouldLoseWork.code, "message": _summary(done, preview)}
        elif failed:
            found["error"] = {"code": MulliganError.code, "message": NOT_ALL}
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
        out.say(_summary(done, preview))
        if failed:
            out.say(NOT_ALL)
        for path in getattr(done, "rescued", ()):
            out.say(f"Saved by somebody at the very moment, and put beside: {escape_text(path)}")
        if done.dirty and not preview and (done.restored or done.deleted):
            out.say(
                f"{plural(len(done.dirty), 'file')} had content that was in no checkpoint yet; "
                "it is safe in the safety checkpoint."
            )
    if refused:
        return exit_status(WouldLoseWork.code)
    return exit_status(MulliganError.code) if failed else 0


def report_elsewhere(out: Output, done: RestoredElsewhere) -> int:
    """Prints what was written into another directory; gives the exit code."""
    refused = any(each.reason == DIFFERS for each in done.skipped) and not done.restored
    what = f"{len(done.written):,} written, {len(done.skipped):,} left alone"
    verb = "Would restore" if done.preview else "Restored"
    words = f"{verb} to {escape_text(done.directory)}: {what}."
    if any(each.reason == DIFFERS for each in done.skipped):
        words += " `--force` overwrites what differs, and keeps a copy."
    if out.as_json:
        found = done.as_json()
        if refused:
            found["error"] = {"code": WouldLoseWork.code, "message": words}
        elif not done.verified:
            found["error"] = {"code": MulliganError.code, "message": NOT_ALL}
        out.data(found)
    else:
        for path in done.written:
            out.line(change_line("restored", path, 0, 0))
        for skip in done.skipped:
            out.line(
                f"{click.style('S', fg='cyan', bold=True)}  {escape_text(skip.path)}: {skip.reason}"
            )
        out.say(words if done.verified else f"{words} {NOT_ALL}")
        if done.backup is not None:
            way = f"mulligan restore {done.backup[:8]} --force --to {escape_text(done.directory)}"
            out.say(f"What was overwritten is kept: `{way}` brings it back.")
    if refused:
        return exit_status(WouldLoseWork.code)
    return 0 if done.verified else exit_status(MulliganError.code)


def _refused(done: RestoreResult) -> bool:
    """Whether all that there was to do was left, because it is somebody's work."""
    theirs = any(
        would_be_forced(skip.reason) or skip.reason == CHANGED_CONCURRENTLY for skip in done.skipped
    )
    return theirs and not (done.restored or done.deleted)


def _summary(done: RestoreResult, preview: bool) -> str:
    what = f"{len(done.restored):,} restored, {len(done.deleted):,} deleted"
    if done.skipped:
        what += f", {len(done.skipped):,} left alone"
    if preview:
        dirty = f"; {len(done.dirty):,} of them in no checkpoint yet" if done.dirty else ""
        place = f" in {escape_text(done.root)}" if done.root is not None else ""
        return f"Would {_to_do(done)}{place}: {what}{dirty}. Nothing was changed."
    assert isinstance(done, RestoreResult)
    if not (done.restored or done.deleted):
        if done.skipped:
            return f"Nothing was changed: {plural(len(done.skipped), 'path')} left alone."
        if done.operation is None:
            return "Nothing to do: everything is as it should be already."
        what = "no file had to change for that"
    if done.undoes is None:
        return f"Restored to {(done.target or '')[:8]}: {what}. `mulligan undo` takes it back."
    if done.kind == "redo":
        return f"Did {_which(done)} again: {what}. `mulligan undo` takes it back."
    more = "`mulligan redo` does it again."
    if any(would_be_forced(skip.reason) for skip in done.skipped):
        way = f"mulligan restore --force {(done.target or '')[:8]} PATH"
        more = f"`{way}` brings back one that was left, too."
    return f"Took back {_which(done)}: {what}. {more}"


def _to_do(done: RestoreResult) -> str:
    if done.kind == "restore":
        return f"restore to {(done.target or '')[:8]}"
    if done.kind == "goto":
        return "bring the files there"
    return f"do {_which(done)} again" if done.kind == "redo" else f"take back {_which(done)}"


def _which(done: RestoreResult) -> str:
    """What an undo or a redo is about, as people remember it."""
    if done.undoes_at is None:
        return "what the turn that is going on has done"
    return f"the {done.undoes_kind} of {ago(done.undoes_at)}"
