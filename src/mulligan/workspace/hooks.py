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
SAME_SECONDS = 5
SOON_READ = 1 << 20
"""Logs up to this size are read at every call; longer ones when a turn ends."""
NAME_MAX_BYTES = 255
NOTHING = HookReply()
MEASURED = ("gemini",)
"""Agents that do not report the duration of a call."""
UNTOLD_FORKS = ("claude-code",)
"""Agents that do not report that a session is a fork, until it continues."""


def happened(project: OpenProject, told: HookEvent) -> HookReply:
    """Record one hook event; return the reply for the agent and the user.

    One at a time, under the lock: an agent may run several hooks at once. An event with an `id` is
    recorded once: a hook that waits too long for a server records it itself.
    """
    with project.locked():
        if told.id is None:
            return _record(project, told)
        recorded = hook_events.reply(project.journal, told.id)
        if recorded is not None:
            return HookReply(**json.loads(recorded))
        # Recorded first: if the process is killed in between, the hook records the event.
        reply = _record(project, told)
        with project.journal.writing_without_sync() as db:
            hook_events.add(db, told.id, json.dumps(reply.as_json()))
        return reply


def _record(project: OpenProject, told: HookEvent) -> HookReply:
    known = sessions.by_id(project.journal, told.session)
    session = _session(project, told, known)
    if told.kind == PROMPT:
        return _prompt(project, session, told, is_new=known is None)
    if told.kind == CALL_BEGINS:
        return _call_begins(project, session, told)
    if told.kind == CALL_ENDS:
        return _call_ends(project, session, told)
    if told.kind == TURN_ENDS:
        return _turn_ends(project, session, told)
    if told.kind == SESSION_ENDS:
        return _session_ends(project, session, told)
    assert told.kind == SESSION_STARTS
    return _session_starts(project, session, told)


def _session(project: OpenProject, told: HookEvent, row: SessionRow | None) -> SessionRow:
    """Return the event's session, creating it if it is new."""
    if row is None:
        from mulligan.workspace.sessions import sessions as keeping

        values = {
            "agent": told.agent, "model": told.model, "mode": told.mode,
            "directory": told.directory,
        }  # fmt: skip
        keeping.create(
            project, id=told.session, checkpoint=False, values=values, process=told.process or 0
        )
        return sessions.resolve(project.journal, told.session)
    new: dict[str, Any] = {}
    process = identity(told.process) if told.process else None
    if process is not None and process != row.process and told.kind != SESSION_ENDS:
        new["process"] = process
    for name in ("model", "mode"):
        value = getattr(told, name)
        if value and value != getattr(row, name):
            new[name] = value
    if told.kind == SESSION_STARTS and row.status == "stopped":
        new["status"] = "waiting_input"
    if new:
        with project.journal.writing() as db:
            sessions.update(db, row.number, new)
    return row


def _session_starts(project: OpenProject, session: SessionRow, told: HookEvent) -> HookReply:
    """Import what the agent logged without hooks, such as a compaction."""
    if session.leaf is not None and not _is_open(project, session) and not _is_long(told):
        _complete(project, told)
    return NOTHING


def _prompt(
    project: OpenProject, session: SessionRow, told: HookEvent, *, is_new: bool
) -> HookReply:
    if told.off_path:
        return NOTHING
    rejected = None
    if project.settings.tell_rejections:
        from mulligan.workspace.review.agent_feedback import rejections

        rejected = rejections(project, session)
    if _is_open(project, session):
        if _was_just_said(project, session, told.text or ""):
            # The hooks are installed twice, for the user and for the project.
            return NOTHING
        # The last turn never ended: its log has the rest.
        _complete(project, told)
    elif session.leaf is None and not (is_new and _fork(project, session, told)):
        # The session may have begun before the hooks: import its history first.
        _complete(project, told)
    _end_the_dead(project, session)
    turns.begin(project, session.id, told.text or "")
    return HookReply(to_agent=rejected)


def _fork(project: OpenProject, session: SessionRow, told: HookEvent) -> bool:
    """Copy the origin's conversation into a forked session; False if this is no fork.

    The agent is still writing that conversation into the fork's log, so the log is not read. The
    agent resumed the origin first, in the same process, and did not end it: that identifies the
    origin.
    """
    process = identity(told.process) if told.process else None
    left = [
        row
        for row in sessions.with_process(project.journal, STATUSES[:-1])
        if row.process == process and row.agent == session.agent and row.number != session.number
    ]
    if told.agent not in UNTOLD_FORKS or process is None or told.log is None:
        return False
    if len(left) != 1 or _is_open(project, left[0]):
        return False
    log = os.path.join(os.path.dirname(told.log), f"{left[0].id}.jsonl")
    _complete(project, told._replace(session=left[0].id, log=log))
    origin = sessions.resolve(project.journal, left[0].id)
    way = entries.path(project.journal, origin.number, _last_said(project, origin))
    with project.journal.writing() as db:
        leaf = append.copy(db, origin.number, session.number, way) or None
        values = {"leaf": leaf, "forked_from": origin.id, "title": origin.title}
        sessions.update(db, session.number, values)
        sessions.update(db, origin.number, {"status": "stopped", "process": None})
    return True


def _last_said(project: OpenProject, session: SessionRow) -> int | None:
    """Return the agent's last entry, wherever the user has moved the leaf."""
    moves = (BRANCH_SUMMARY, UNREVERT_POINT)
    return entries.last_seq(project.journal, session.number, but=moves)


def _was_just_said(project: OpenProject, session: SessionRow, text: str) -> bool:
    """True if the leaf is this prompt, recorded a few seconds ago."""
    leaf = entries.by_seq(project.journal, session.number, session.leaf or 0)
    if leaf is None or leaf.type != USER_INPUT or leaf.content != storable(text):
        return False
    return now_ns() - nanoseconds(leaf.created_at) < SAME_SECONDS * 1_000_000_000


def _end_the_dead(project: OpenProject, session: SessionRow) -> None:
    """End the turns of dead agents, so that later changes are not attributed to them."""
    for number in views.open_turns(project.journal):
        other = sessions.by_number(project.journal, number)
        if other is None or number == session.number:
            continue
        if current_status(other) == "stopped":
            turns.end(project, other.id, status="stopped", interrupted=True)


def _call_begins(project: OpenProject, session: SessionRow, told: HookEvent) -> HookReply:
    if not _is_open(project, session):
        turns.begin(project, session.id, NO_PROMPT)
    hidden = on_disk_not_in_tree(project, _inside(project, told), last_seen(project))
    if hidden:
        # A file out of scope is about to be written: take a checkpoint of it first.
        include_paths(project, hidden)
    elif len(views.open_turns(project.journal)) > 1:
        observe(project)
    if told.tool and not told.off_path:
        _note_call(project, session, told)
    return NOTHING


def _note_call(project: OpenProject, session: SessionRow, told: HookEvent) -> None:
    """Append the entry of a running call, after the log's entries before it.

    A long log is read at the end of the turn, and its calls are appended then: they must come after
    the text that led to them.
    """
    if told.log is not None and os.path.exists(told.log):
        if _is_long(told):
            return
        _complete(project, told)
    if _call(project, session, told) is None:
        data = {"name": told.tool, "input": told.input, "status": RUNNING}
        own = {"call": told.call} if told.call else {}
        recording.put(project, session.number, [NewEntry(TOOL_CALL, "", data | own)])


def _is_long(told: HookEvent) -> bool:
    """True if the agent's log is too long to be read before the end of a turn."""
    if told.log is None or told.part or not os.path.exists(told.log):
        return False
    return os.path.getsize(told.log) > SOON_READ


def _call(project: OpenProject, session: SessionRow, told: HookEvent) -> ToolCall | None:
    """Find a call by the agent's own id, else the oldest unfinished one with this input."""
    if told.call is not None:
        return tool_calls.by_call_id(project.journal, session.number, told.call)
    return tool_calls.unfinished(project.journal, session.number, told.tool or "", told.input)


def _call_ends(project: OpenProject, session: SessionRow, told: HookEvent) -> HookReply:
    paths = _inside(project, told)
    if paths:
        from mulligan.workspace.sessions import edits

        edits.record_tool_write(project, session, paths)
    found = _call(project, session, told)
    if found is not None and told.ok is not None:
        entry, begun = found
        took = told.duration
        if took is None and told.agent in MEASURED:
            took = round(max(0.0, (now_ns() - nanoseconds(begun)) / 1e6))
        with project.journal.writing() as db:
            append.end_call(
                db, session.number, entry, status=SUCCESS if told.ok else ERROR, duration=took
            )
    if len(views.open_turns(project.journal)) > 1:
        observe(project, acting=session.number)
    return NOTHING


def _turn_ends(project: OpenProject, session: SessionRow, told: HookEvent) -> HookReply:
    if told.off_path or not _is_open(project, session):
        return NOTHING
    took_in = _complete(project, told)
    if told.text and not took_in:
        recording.put(project, session.number, [NewEntry(ASSISTANT_OUTPUT, told.text)])
    return HookReply(to_user=_words(turns.end(project, session.id)))


def _session_ends(project: OpenProject, session: SessionRow, told: HookEvent) -> HookReply:
    """Mark the session as stopped; a turn in the middle of a call stays open.

    The command may run on, and its changes belong to the turn. The next prompt of any agent ends
    it.
    """
    if _is_open(project, session):
        _complete(project, told)
        if not tool_calls.has_unfinished(project.journal, session.number):
            _turn_ends(project, session, told)
    with project.journal.writing() as db:
        sessions.update(db, session.number, {"status": "stopped", "process": None})
    return NOTHING


def _is_open(project: OpenProject, session: SessionRow) -> bool:
    return views.has_open_turn(project.journal, session.number)


def _complete(project: OpenProject, told: HookEvent) -> bool:
    """Import the agent's own log; return False if there is none."""
    if told.log is None or not os.path.exists(told.log):
        return False
    from mulligan.workspace.transfer.import_logs import complete

    try:
        return complete(project, told.agent, told.log, told.part, told.session)
    except (MulliganError, OSError):
        # An unreadable log must not lose the turn.
        return False


def _inside(project: OpenProject, told: HookEvent) -> list[bytes]:
    """Return the paths of a call that are inside the project."""
    found = []
    for path in told.paths:
        try:
            inside = project.path(os.path.join(told.directory, path))
        except (UsageError, ValueError):
            continue
        # No file can have a longer name, so none was written.
        if inside and all(len(name) <= NAME_MAX_BYTES for name in inside.split(b"/")):
            found.append(inside)
    return found


def _words(step: Step) -> str | None:
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
