"""What an agent's hooks tell of becomes turns, edits and ends of turns, like anything else.

The hooks are the clock, the agent's own log is the account: a checkpoint before each prompt and a
step after each turn are made here as they happen; what was said and which tools were called is
taken from the log when a turn ends. An end that never comes is made up by the next beginning.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mulligan.core.entries import ASSISTANT_OUTPUT, NewEntry
from mulligan.core.happenings import (
    CALL_BEGINS,
    CALL_ENDS,
    PROMPT,
    SESSION_ENDS,
    SESSION_STARTS,
    TURN_ENDS,
    Happening,
    Told,
)
from mulligan.core.tree import find
from mulligan.errors import MulliganError, UsageError
from mulligan.journal import append, operations, sessions, views
from mulligan.journal.sessions import SessionRow
from mulligan.workspace import edits, turns
from mulligan.workspace import sessions as keeping
from mulligan.workspace.process import identity
from mulligan.workspace.standing import last_seen

if TYPE_CHECKING:
    from mulligan.workspace.session_results import Step
    from mulligan.workspace.workspace import Workspace

NO_PROMPT = "(no prompt was seen)"
NOTHING = Told()


def happened(workspace: Workspace, told: Happening) -> Told:
    """Records one happening; gives what there is to say about it."""
    session = _session(workspace, told)
    if told.kind == SESSION_STARTS:
        return NOTHING
    if told.kind == PROMPT:
        return _prompt(workspace, session, told)
    if told.kind == CALL_BEGINS:
        return _call_begins(workspace, session, told)
    if told.kind == CALL_ENDS:
        return _call_ends(workspace, session, told)
    if told.kind == TURN_ENDS:
        return _turn_ends(workspace, session, told)
    assert told.kind == SESSION_ENDS
    if _is_open(workspace, session):
        _turn_ends(workspace, session, told)
    with workspace.journal.writing() as db:
        sessions.update(db, session.number, {"status": "stopped", "process": None})
    return NOTHING


def _session(workspace: Workspace, told: Happening) -> SessionRow:
    """The session, made if this is the first that is heard of it."""
    row = sessions.by_id(workspace.journal, told.session)
    if row is None:
        values = {
            "agent": told.agent, "model": told.model, "mode": told.mode,
            "directory": told.directory,
        }  # fmt: skip
        keeping.create(
            workspace, id=told.session, checkpoint=True, values=values, process=told.process or 0
        )
        return sessions.resolve(workspace.journal, told.session)
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
        with workspace.journal.writing() as db:
            sessions.update(db, row.number, new)
    return row


def _prompt(workspace: Workspace, session: SessionRow, told: Happening) -> Told:
    rejected = _rejections(workspace, session) if workspace.settings.tell_rejections else None
    if _is_open(workspace, session):
        # The turn before never ended: its log has what there is to know of it.
        _complete(workspace, told)
    turns.begin(workspace, session.id, told.text or "")
    return Told(to_agent=rejected)


def _call_begins(workspace: Workspace, session: SessionRow, told: Happening) -> Told:
    if not _is_open(workspace, session):
        turns.begin(workspace, session.id, NO_PROMPT)
    with workspace.locked():
        paths = _inside(workspace, told)
        known = last_seen(workspace)
        hidden = [
            path
            for path in paths
            if os.path.lexists(os.path.join(workspace.project.root, path))
            and (known is None or find(known, path, workspace.load) is None)
        ]
        if hidden:
            # Out of scope, and about to be written: what it holds must be in a checkpoint first.
            turns.bring_into_view(workspace, hidden)
        elif len(turns.open_turns(workspace)) > 1:
            turns.observe(workspace)
    return NOTHING


def _call_ends(workspace: Workspace, session: SessionRow, told: Happening) -> Told:
    paths = _inside(workspace, told)
    if paths:
        edits.wrote(workspace, session, paths)
    if told.call is not None and told.ok is not None:
        with workspace.journal.writing() as db:
            append.end_call(
                db, session.number, told.call, status="success" if told.ok else "error",
                duration=told.duration,
            )  # fmt: skip
    if len(turns.open_turns(workspace)) > 1:
        turns.observe(workspace)
    return NOTHING


def _turn_ends(workspace: Workspace, session: SessionRow, told: Happening) -> Told:
    if not _is_open(workspace, session):
        return NOTHING
    took_in = _complete(workspace, told)
    if told.text and not took_in:
        keeping.add(workspace, session.id, [NewEntry(ASSISTANT_OUTPUT, told.text)])
    step = turns.end(workspace, session.id)
    return Told(to_user=_words(step))


def _is_open(workspace: Workspace, session: SessionRow) -> bool:
    view = views.of_session(workspace.journal, session.number)
    return view is not None and view.base is not None


def _complete(workspace: Workspace, told: Happening) -> bool:
    """Takes in what the agent's own log says; gives whether there was one."""
    from mulligan.workspace.importing import complete

    if told.log is None:
        return False
    try:
        return complete(workspace, told.agent, told.log, told.part, told.session)
    except (MulliganError, OSError):
        # The log is the agent's: that it cannot be read is no reason to lose the turn.
        return False


def _inside(workspace: Workspace, told: Happening) -> list[bytes]:
    """The paths of a call that lie in the project."""
    found = []
    for path in told.paths:
        try:
            inside = workspace.path(os.path.join(told.directory, path))
        except UsageError:
            continue
        if inside:
            found.append(inside)
    return found


def _rejections(workspace: Workspace, session: SessionRow) -> str | None:
    """What the user has undone since the agent's last turn, for the agent to know."""
    paths: dict[str, None] = {}
    for operation in reversed(
        operations.of_session(workspace.journal, session.id, ("turn", "discard", "reset"))
    ):
        if operation.kind == "turn":
            break
        for name in ("restored", "deleted"):
            paths |= dict.fromkeys(operation.summary.get(name, ()))
    if not paths:
        return None
    few = ", ".join(sorted(paths)[:20])
    return (
        "The user has looked at your last changes and undone some of them, in: "
        f"{few}. Do not make those changes again unless asked to; read the files again first."
    )


def _words(step: Step) -> str | None:
    """One quiet line of what a turn has left to decide."""
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
