"""Record agents' hook events as turns, edits and tool calls.

Hooks say when things happen: a checkpoint is taken before each prompt, and a step after each turn.
Messages and tool calls come from the agent's own log, which is read when a turn ends. A turn whose
end is never reported is ended by the next prompt.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from mulligan.clock import now_ns
from mulligan.core.coverage import storable
from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    BRANCH_SUMMARY,
    ERROR,
    RUNNING,
    STATUSES,
    SUCCESS,
    TOOL_CALL,
    UNREVERT_POINT,
    USER_INPUT,
    NewEntry,
)
from mulligan.core.hook_events import HookEvent, HookReply
from mulligan.core.hook_kinds import (
    CALL_BEGINS,
    CALL_ENDS,
    PROMPT,
    SESSION_ENDS,
    SESSION_STARTS,
    TURN_ENDS,
)
from mulligan.core.times import nanoseconds
from mulligan.errors import MulliganError, UsageError
from mulligan.journal import append, entries, hook_events, sessions, tool_calls, views
from mulligan.journal.sessions import SessionRow
from mulligan.journal.tool_calls import ToolCall
from mulligan.workspace.attribution import turns
from mulligan.workspace.attribution.observe import include_paths, observe, on_disk_not_in_tree
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.project.process import current_status, identity
from mulligan.workspace.sessions import entries as recording
from mulligan.workspace.snapshot.holding import last_seen

if TYPE_CHECKING:
    from mulligan.workspace.results.turns import Step

NO_PROMPT = "(no prompt was seen)"
REPEATED_PROMPT_SECONDS = 5
MAX_EAGER_LOG_BYTES = 1 << 20
"""Logs up to this size are read at every call; longer ones when a turn ends."""
NAME_MAX_BYTES = 255
NO_REPLY = HookReply()
WITHOUT_DURATIONS = ("gemini",)
"""Agents that do not report the duration of a call."""
WITHOUT_FORK_EVENTS = ("claude-code",)
"""Agents that do not report that a session is a fork, until it continues."""


def record_event(project: OpenProject, event: HookEvent) -> HookReply:
    """Record one hook event; return the reply for the agent and the user.

    One at a time, under the lock: an agent may run several hooks at once. An event with an `id` is
    recorded once: a hook that waits too long for a server records it itself.
    """
    with project.locked():
        if event.id is None:
            return _record(project, event)
        recorded = hook_events.reply(project.journal, event.id)
        if recorded is not None:
            return HookReply(**json.loads(recorded))
        # Recorded first: if the process is killed in between, the hook records the event.
        reply = _record(project, event)
        with project.journal.writing_without_sync() as db:
            hook_events.add(db, event.id, json.dumps(reply.as_json()))
        return reply


def _record(project: OpenProject, event: HookEvent) -> HookReply:
    known = sessions.by_id(project.journal, event.session)
    session = _session(project, event, known)
    if event.kind == PROMPT:
        return _prompt(project, session, event, is_new=known is None)
    if event.kind == CALL_BEGINS:
        return _call_begins(project, session, event)
    if event.kind == CALL_ENDS:
        return _call_ends(project, session, event)
    if event.kind == TURN_ENDS:
        return _turn_ends(project, session, event)
    if event.kind == SESSION_ENDS:
        return _session_ends(project, session, event)
    assert event.kind == SESSION_STARTS
    return _session_starts(project, session, event)


def _session(project: OpenProject, event: HookEvent, row: SessionRow | None) -> SessionRow:
    """Return the event's session, creating it if it is new."""
    if row is None:
        from mulligan.workspace.sessions import sessions as keeping

        values = {
            "agent": event.agent, "model": event.model, "mode": event.mode,
            "directory": event.directory,
        }  # fmt: skip
        keeping.create(
            project, id=event.session, checkpoint=False, values=values, process=event.process or 0
        )
        return sessions.resolve(project.journal, event.session)
    new: dict[str, Any] = {}
    process = identity(event.process) if event.process else None
    if process is not None and process != row.process and event.kind != SESSION_ENDS:
        new["process"] = process
    for name in ("model", "mode"):
        value = getattr(event, name)
        if value and value != getattr(row, name):
            new[name] = value
    if event.kind == SESSION_STARTS and row.status == "stopped":
        new["status"] = "waiting_input"
    if new:
        with project.journal.writing() as db:
            sessions.update(db, row.number, new)
    return row


def _session_starts(project: OpenProject, session: SessionRow, event: HookEvent) -> HookReply:
    """Import what the agent logged without hooks, such as a compaction."""
    if session.leaf is not None and not _is_open(project, session) and not _has_long_log(event):
        _import_log(project, event)
    return NO_REPLY


def _prompt(
    project: OpenProject, session: SessionRow, event: HookEvent, *, is_new: bool
) -> HookReply:
    if event.off_path:
        return NO_REPLY
    rejected = None
    if project.settings.tell_rejections:
        from mulligan.workspace.review.agent_feedback import rejections

        rejected = rejections(project, session)
    if _is_open(project, session):
        if _is_repeated_prompt(project, session, event.text or ""):
            # The hooks are installed twice, for the user and for the project.
            return NO_REPLY
        # The last turn never ended: its log has the rest.
        _import_log(project, event)
    elif session.leaf is None and not (is_new and _fork(project, session, event)):
        # The session may have begun before the hooks: import its history first.
        _import_log(project, event)
    _end_dead_turns(project, session)
    turns.begin(project, session.id, event.text or "")
    return HookReply(to_agent=rejected)


def _fork(project: OpenProject, session: SessionRow, event: HookEvent) -> bool:
    """Copy the origin's conversation into a forked session; False if this is no fork.

    The agent is still writing that conversation into the fork's log, so the log is not read. The
    agent resumed the origin first, in the same process, and did not end it: that identifies the
    origin.
    """
    process = identity(event.process) if event.process else None
    left = [
        row
        for row in sessions.with_process(project.journal, STATUSES[:-1])
        if row.process == process and row.agent == session.agent and row.number != session.number
    ]
    if event.agent not in WITHOUT_FORK_EVENTS or process is None or event.log is None:
        return False
    if len(left) != 1 or _is_open(project, left[0]):
        return False
    log = os.path.join(os.path.dirname(event.log), f"{left[0].id}.jsonl")
    _import_log(project, event._replace(session=left[0].id, log=log))
    origin = sessions.resolve(project.journal, left[0].id)
    way = entries.path(project.journal, origin.number, _last_agent_entry(project, origin))
    with project.journal.writing() as db:
        leaf = append.copy(db, origin.number, session.number, way) or None
        values = {"leaf": leaf, "forked_from": origin.id, "title": origin.title}
        sessions.update(db, session.number, values)
        sessions.update(db, origin.number, {"status": "stopped", "process": None})
    return True


def _last_agent_entry(project: OpenProject, session: SessionRow) -> int | None:
    """Return the agent's last entry, wherever the user has moved the leaf."""
    moves = (BRANCH_SUMMARY, UNREVERT_POINT)
    return entries.last_seq(project.journal, session.number, but=moves)


def _is_repeated_prompt(project: OpenProject, session: SessionRow, text: str) -> bool:
    """True if the leaf is this prompt, recorded a few seconds ago."""
    leaf = entries.by_seq(project.journal, session.number, session.leaf or 0)
    if leaf is None or leaf.type != USER_INPUT or leaf.content != storable(text):
        return False
    return now_ns() - nanoseconds(leaf.created_at) < REPEATED_PROMPT_SECONDS * 1_000_000_000


def _end_dead_turns(project: OpenProject, session: SessionRow) -> None:
    """End the turns of dead agents, so that later changes are not attributed to them."""
    for number in views.open_turns(project.journal):
        other = sessions.by_number(project.journal, number)
        if other is None or number == session.number:
            continue
        if current_status(other) == "stopped":
            turns.end(project, other.id, status="stopped", interrupted=True)


def _call_begins(project: OpenProject, session: SessionRow, event: HookEvent) -> HookReply:
    if not _is_open(project, session):
        turns.begin(project, session.id, NO_PROMPT)
    hidden = on_disk_not_in_tree(project, _inside(project, event), last_seen(project))
    if hidden:
        # A file out of scope is about to be written: take a checkpoint of it first.
        include_paths(project, hidden)
    elif len(views.open_turns(project.journal)) > 1:
        observe(project)
    if event.tool and not event.off_path:
        _append_call(project, session, event)
    return NO_REPLY


def _append_call(project: OpenProject, session: SessionRow, event: HookEvent) -> None:
    """Append the entry of a running call, after the log's entries before it.

    A long log is read at the end of the turn, and its calls are appended then: they must come after
    the text that led to them.
    """
    if event.log is not None and os.path.exists(event.log):
        if _has_long_log(event):
            return
        _import_log(project, event)
    if _find_call(project, session, event) is None:
        data = {"name": event.tool, "input": event.input, "status": RUNNING}
        own = {"call": event.call} if event.call else {}
        recording.put(project, session.number, [NewEntry(TOOL_CALL, "", data | own)])


def _has_long_log(event: HookEvent) -> bool:
    """True if the agent's log is too long to be read before the end of a turn."""
    if event.log is None or event.part or not os.path.exists(event.log):
        return False
    return os.path.getsize(event.log) > MAX_EAGER_LOG_BYTES


def _find_call(project: OpenProject, session: SessionRow, event: HookEvent) -> ToolCall | None:
    """Find a call by the agent's own id, else the oldest unfinished one with this input."""
    if event.call is not None:
        return tool_calls.by_call_id(project.journal, session.number, event.call)
    return tool_calls.unfinished(project.journal, session.number, event.tool or "", event.input)


def _call_ends(project: OpenProject, session: SessionRow, event: HookEvent) -> HookReply:
    paths = _inside(project, event)
    if paths:
        from mulligan.workspace.sessions import edits

        edits.record_tool_write(project, session, paths)
    call = _find_call(project, session, event)
    if call is not None and event.ok is not None:
        entry, begun = call
        took = event.duration
        if took is None and event.agent in WITHOUT_DURATIONS:
            took = round(max(0.0, (now_ns() - nanoseconds(begun)) / 1e6))
        with project.journal.writing() as db:
            append.end_call(
                db, session.number, entry, status=SUCCESS if event.ok else ERROR, duration=took
            )
    if len(views.open_turns(project.journal)) > 1:
        observe(project, acting=session.number)
    return NO_REPLY


def _turn_ends(project: OpenProject, session: SessionRow, event: HookEvent) -> HookReply:
    if event.off_path or not _is_open(project, session):
        return NO_REPLY
    has_log = _import_log(project, event)
    if event.text and not has_log:
        recording.put(project, session.number, [NewEntry(ASSISTANT_OUTPUT, event.text)])
    return HookReply(to_user=_summary_line(turns.end(project, session.id)))


def _session_ends(project: OpenProject, session: SessionRow, event: HookEvent) -> HookReply:
    """Mark the session as stopped; a turn in the middle of a call stays open.

    The command may run on, and its changes belong to the turn. The next prompt of any agent ends
    it.
    """
    if _is_open(project, session):
        _import_log(project, event)
        if not tool_calls.has_unfinished(project.journal, session.number):
            _turn_ends(project, session, event)
    with project.journal.writing() as db:
        sessions.update(db, session.number, {"status": "stopped", "process": None})
    return NO_REPLY


def _is_open(project: OpenProject, session: SessionRow) -> bool:
    return views.has_open_turn(project.journal, session.number)


def _import_log(project: OpenProject, event: HookEvent) -> bool:
    """Import the agent's own log; return False if there is none."""
    if event.log is None or not os.path.exists(event.log):
        return False
    from mulligan.workspace.transfer.import_logs import complete

    try:
        return complete(project, event.agent, event.log, event.part, event.session)
    except (MulliganError, OSError):
        # An unreadable log must not lose the turn.
        return False


def _inside(project: OpenProject, event: HookEvent) -> list[bytes]:
    """Return the paths of a call that are inside the project."""
    paths = []
    for path in event.paths:
        try:
            inside = project.path(os.path.join(event.directory, path))
        except (UsageError, ValueError):
            continue
        # No file can have a longer name, so none was written.
        if inside and all(len(name) <= NAME_MAX_BYTES for name in inside.split(b"/")):
            paths.append(inside)
    return paths


def _summary_line(step: Step) -> str | None:
    """Return one line about the work that a turn left for review."""
    parts = [
        f"{len(names)} {word}"
        for word, names in (
            ("added", step.added), ("modified", step.modified), ("deleted", step.deleted)
        )
        if names
    ]  # fmt: skip
    if not parts:
        return None
    return (
        f"Mulligan: {', '.join(parts)}; `mulligan review` to decide, `mulligan undo` to take back."
    )
