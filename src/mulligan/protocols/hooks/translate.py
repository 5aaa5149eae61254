"""From an agent's own event to a happening, and from what there is to say to its own answer.

A happening is the plain JSON of `core.happenings` here, as a server takes it: with a server
running, no hook waits for classes to be made.
"""

from __future__ import annotations

import json
import os

from mulligan.core.hook_kinds import (
    CALL_BEGINS,
    CALL_ENDS,
    KINDS,
    PROMPT,
    SESSION_ENDS,
    SESSION_STARTS,
    TURN_ENDS,
)

TYPE_CHECKING = False  # as in `mulligan`: hooks that tell a server need nothing of `typing`
if TYPE_CHECKING:
    from typing import Any

    Payload = dict[str, Any]

COMMAND_HOOKS = {
    "claude-code": {
        "SessionStart": SESSION_STARTS,
        "UserPromptSubmit": PROMPT,
        "PreToolUse": CALL_BEGINS,
        "PostToolUse": CALL_ENDS,
        "PostToolUseFailure": CALL_ENDS,
        "Stop": TURN_ENDS,
        "StopFailure": TURN_ENDS,
        "SessionEnd": SESSION_ENDS,
    },
    "codex": {
        "SessionStart": SESSION_STARTS,
        "UserPromptSubmit": PROMPT,
        "PreToolUse": CALL_BEGINS,
        "PostToolUse": CALL_ENDS,
        "Stop": TURN_ENDS,
        "Interrupt": TURN_ENDS,
        "SessionEnd": SESSION_ENDS,
    },
    "gemini": {
        "SessionStart": SESSION_STARTS,
        "BeforeAgent": PROMPT,
        "BeforeTool": CALL_BEGINS,
        "AfterTool": CALL_ENDS,
        "AfterAgent": TURN_ENDS,
        "SessionEnd": SESSION_ENDS,
    },
}
"""By agent, what the names of its events mean; others are nothing to us."""

PLUGINS = ("opencode", "pi")
"""Agents whose plugin is ours, and speaks of happenings already."""

AGENTS = (*COMMAND_HOOKS, *PLUGINS)
WRITING = {
    "claude-code": ("Write", "Edit", "MultiEdit", "NotebookEdit"),
    "codex": ("apply_patch",),
    "gemini": ("write_file", "replace"),
    "opencode": ("write", "edit", "patch", "multiedit", "apply_patch"),
    "pi": ("write", "edit"),
}
PATHS = ("file_path", "notebook_path", "path", "filePath", "absolute_path")
PATCH = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def translated(agent: str, payload: Payload, process: int | None) -> Payload | None:
    """What an event means; `None` for one that means nothing to us, or is nobody's."""
    if agent in PLUGINS:
        found = _from_plugin(payload)
    else:
        found = _from_command_hook(agent, payload)
    if found is None:
        return None
    found["agent"] = agent
    found["process"] = process
    found["paths"] = written_paths(agent, found.get("tool"), found.get("input"))
    return {name: _storable(name, value) for name, value in found.items() if value is not None}


def written_paths(agent: str, tool: str | None, given: Any) -> tuple[str, ...]:
    """The files that a call of a tool writes, as far as its arguments tell."""
    if tool not in WRITING[agent] or not isinstance(given, dict):
        return ()
    found = [given[name] for name in PATHS if isinstance(given.get(name), str)]
    for name in ("command", "patch", "patchText", "input"):
        patch = given.get(name)
        if isinstance(patch, str):
            found += [
                line[len(start) :].strip()
                for line in patch.splitlines()
                for start in PATCH
                if line.startswith(start)
            ]
    return tuple(dict.fromkeys(path for path in found if path and "\0" not in path))


def answer(agent: str, event: str, told: Payload) -> str:
    """What to print for the agent, in its own format; empty if there is nothing to say."""
    if agent in PLUGINS:
        return json.dumps(told)
    found: Payload = {}
    if told.get("to_agent"):
        found["hookSpecificOutput"] = {
            "hookEventName": event,
            "additionalContext": told["to_agent"],
        }
    if told.get("to_user"):
        found["systemMessage"] = told["to_user"]
    return json.dumps(found) if found else ""


def refusal(agent: str, reason: str) -> str:
    """What to print so that a prompt goes no further."""
    if agent in PLUGINS:
        return json.dumps({"stop": reason})
    return json.dumps({"decision": "deny" if agent == "gemini" else "block", "reason": reason})


def _from_command_hook(agent: str, payload: Payload) -> Payload | None:
    kind = COMMAND_HOOKS[agent].get(_text(payload, "hook_event_name") or "")
    session = _text(payload, "session_id")
    if kind is None or session is None:
        return None
    return {
        "kind": kind,
        "session": session,
        "directory": _directory(payload, "cwd"),
        "text": _said(kind, payload),
        "call": _text(payload, "tool_use_id"),
        "tool": _text(payload, "tool_name"),
        "ok": _went_well(payload) if kind == CALL_ENDS else None,
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


def _said(kind: str, payload: Payload) -> str | None:
    if kind == PROMPT:
        return _text(payload, "prompt") or ""
    if kind == TURN_ENDS:
        return _text(payload, "last_assistant_message") or _text(payload, "prompt_response")
    return None


def _went_well(payload: Payload) -> bool:
    """Whether a call succeeded, by what each agent says of it."""
    if payload.get("hook_event_name") == "PostToolUseFailure":
        return False
    response = payload.get("tool_response")
    if isinstance(response, dict):
        if response.get("error") or response.get("is_error") or response.get("isError"):
            return False
        code = response.get("exit_code", response.get("exitCode", 0))
        return code in (0, None) and not _says_a_code(response.get("llmContent"))
    return True


def _says_a_code(content: Any) -> bool:
    """Gemini's shell succeeds with commands that fail, and says so in words."""
    return isinstance(content, str) and any(
        line.startswith("Exit Code: ") and line != "Exit Code: 0" for line in content.splitlines()
    )


def _storable(name: str, value: Any) -> Any:
    """A field without half characters, which no database takes; paths keep theirs."""
    if not isinstance(value, str) or value.isascii() or name in ("directory", "log"):
        return value
    return value.encode("utf-8", "replace").decode()


def _directory(payload: Payload, name: str) -> str:
    """Where the agent works, absolute: a server has another current directory than the hook."""
    return os.path.abspath(_text(payload, name) or os.getcwd())


def _text(payload: Payload, name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) and value else None


def _number(payload: Payload, name: str) -> float | None:
    value = payload.get(name)
    return float(value) if isinstance(value, int | float) else None
