"""Translate an agent's event to a hook event, and a hook reply to the agent's answer.

Hook events are the plain JSON of `core.hook_events` here, as the server takes it: a hook that
sends to a server does not wait for classes to be imported.
"""

from __future__ import annotations

import json
import os

from mulligan.core.hook_kinds import CALL_ENDS, KINDS, PROMPT, TURN_ENDS
from mulligan.protocols.agents import PLUGIN_AGENTS, agent_module

TYPE_CHECKING = False  # `typing` itself is too slow to import in a hook
if TYPE_CHECKING:
    from typing import Any

    Payload = dict[str, Any]

PATH_FIELDS = ("file_path", "notebook_path", "path", "filePath", "absolute_path")
PATCH_FIELDS = ("command", "patch", "patchText", "input")
PATCH_HEADERS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def translate(agent: str, payload: Payload, process: int | None) -> Payload | None:
    """Return the hook event; None if the agent's event is not ours to record."""
    if agent in PLUGIN_AGENTS:
        event = _from_plugin(payload)
    else:
        event = _from_command_hook(agent, payload)
    if event is None:
        return None
    event["agent"] = agent
    event["process"] = process
    event["paths"] = written_paths(agent, event.get("tool"), event.get("input"))
    return {name: _storable(name, value) for name, value in event.items() if value is not None}


def written_paths(agent: str, tool: str | None, arguments: Any) -> tuple[str, ...]:
    """List the files that a tool call writes, as far as its arguments tell."""
    if tool not in agent_module(agent).WRITING_TOOLS or not isinstance(arguments, dict):
        return ()
    paths = [arguments[name] for name in PATH_FIELDS if isinstance(arguments.get(name), str)]
    for name in PATCH_FIELDS:
        patch = arguments.get(name)
        if isinstance(patch, str):
            paths += [
                line[len(start) :].strip()
                for line in patch.splitlines()
                for start in PATCH_HEADERS
                if line.startswith(start)
            ]
    return tuple(dict.fromkeys(path for path in paths if path and "\0" not in path))


def answer(agent: str, event_name: str, reply: Payload) -> str:
    """Return the text to print for the agent; empty if there is nothing to say."""
    if agent in PLUGIN_AGENTS:
        return json.dumps(reply)
    content: Payload = {}
    if reply.get("to_agent"):
        content["hookSpecificOutput"] = {
            "hookEventName": event_name,
            "additionalContext": reply["to_agent"],
        }
    if reply.get("to_user"):
        content["systemMessage"] = reply["to_user"]
    return json.dumps(content) if content else ""


def refusal(agent: str, reason: str) -> str:
    """Return the text to print so that the agent stops a prompt."""
    if agent in PLUGIN_AGENTS:
        return json.dumps({"stop": reason})
    return json.dumps({"decision": agent_module(agent).REFUSAL, "reason": reason})


def _from_command_hook(agent: str, payload: Payload) -> Payload | None:
    kind = agent_module(agent).EVENT_KINDS.get(_text(payload, "hook_event_name") or "")
    session = _text(payload, "session_id")
    if kind is None or session is None:
        return None
    return {
        "kind": kind,
        "session": session,
        "directory": _directory(payload, "cwd"),
        "text": _message(kind, payload),
        "call": _text(payload, "tool_use_id"),
        "tool": _text(payload, "tool_name"),
        "ok": _succeeded(agent, payload) if kind == CALL_ENDS else None,
        "duration": _number(payload, "duration_ms"),
        "model": _text(payload, "model"),
        "mode": _text(payload, "permission_mode"),
        "source": _text(payload, "source"),
        "log": _text(payload, "transcript_path"),
        "input": payload.get("tool_input"),
        "off_path": _text(payload, "agent_id") is not None,
    }


def _from_plugin(payload: Payload) -> Payload | None:
    if payload.get("kind") not in KINDS or _text(payload, "session") is None:
        return None
    return {**payload, "directory": _directory(payload, "directory")}


def _message(kind: str, payload: Payload) -> str | None:
    if kind == PROMPT:
        return _text(payload, "prompt") or ""
    if kind == TURN_ENDS:
        return _text(payload, "last_assistant_message") or _text(payload, "prompt_response")
    return None


def _succeeded(agent: str, payload: Payload) -> bool:
    """Return whether a tool call succeeded; without any sign of failure it did."""
    if agent_module(agent).call_failed(payload):
        return False
    response = payload.get("tool_response")
    if not isinstance(response, dict):
        return True
    if response.get("error") or response.get("is_error") or response.get("isError"):
        return False
    return response.get("exit_code", response.get("exitCode", 0)) in (0, None)


def _storable(name: str, value: Any) -> Any:
    """Replace lone surrogates, which SQLite refuses; paths keep theirs."""
    if not isinstance(value, str) or value.isascii() or name in ("directory", "log"):
        return value
    return value.encode("utf-8", "replace").decode()


def _directory(payload: Payload, name: str) -> str:
    """Return the agent's directory, absolute: the server has another one than the hook."""
    return os.path.abspath(_text(payload, name) or os.getcwd())


def _text(payload: Payload, name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) and value else None


def _number(payload: Payload, name: str) -> float | None:
    value = payload.get(name)
    return float(value) if isinstance(value, int | float) else None
