"""The agents' own tools: how each of them writes, edits and reads a file, runs a command, and
leaves some of its work to another of its kind.

A toolbox turns a script's call into the name and arguments that its agent expects. Paths in a
script are relative to the project; most agents want them whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from script import Call

Arguments = Mapping[str, Any]
Tool = tuple[str, Arguments | str]
Toolbox = Callable[[Call, Path], Tool]


def claude(call: Call, root: Path) -> Tool:
    match call.role, call.arguments:
        case "write", {"path": path, "content": content}:
            return "Write", {"file_path": str(root / path), "content": content}
        case "edit", {"path": path, "old": old, "new": new}:
            replaced = {"old_string": old, "new_string": new}
            return "Edit", {"file_path": str(root / path), **replaced}
        case "read", {"path": path}:
            return "Read", {"file_path": str(root / path)}
        case "shell", {"command": command}:
            return "Bash", {"command": command, "description": "Runs a command"}
        case "delegate", {"prompt": prompt}:
            return "Agent", {"description": "Helps", "prompt": prompt, **_kind("general-purpose")}
    return call


def codex(call: Call, root: Path) -> Tool:
    """Codex has no tool to read with, and one patch format for writing and editing."""
    match call.role, call.arguments:
        case "write", {"path": path, "content": content}:
            return "apply_patch", _patch(f"*** Add File: {path}", _marked("+", content))
        case "edit", {"path": path, "old": old, "new": new}:
            change = ["@@", *_marked("-", old), *_marked("+", new)]
            return "apply_patch", _patch(f"*** Update File: {path}", change)
        case "read", {"path": path}:
            return "exec_command", {"cmd": f"cat '{path}'"}
        case "shell", {"command": command}:
            return "exec_command", {"cmd": command}
    return call


def codex_code_mode(call: Call, root: Path) -> Tool:
    """With its newer models Codex has one tool, a piece of JavaScript that calls the others.

    But for sub-agents, which it does not wait for.
    """
    if call.role == "delegate":
        alone = {"task_name": "helper", "fork_turns": "none"}
        return "collaboration.spawn_agent", {"message": call.arguments["prompt"], **alone}
    name, arguments = codex(call, root)
    return "exec", f"text(await tools.{name}({json.dumps(arguments)}));"


def gemini(call: Call, root: Path) -> Tool:
    match call.role, call.arguments:
        case "write", {"path": path, "content": content}:
            return "write_file", {"file_path": str(root / path), "content": content}
        case "edit", {"path": path, "old": old, "new": new}:
            replaced = {"old_string": old, "new_string": new}
            why = {"instruction": f"Replace {old!r} with {new!r}."}
            return "replace", {"file_path": str(root / path), **why, **replaced}
        case "read", {"path": path}:
            return "read_file", {"file_path": str(root / path)}
        case "shell", {"command": command}:
            return "run_shell_command", {"command": command, "description": "Runs a command"}
        case "delegate", {"prompt": prompt}:
            return "invoke_agent", {"agent_name": "generalist", "prompt": prompt}
    return call


def opencode(call: Call, root: Path) -> Tool:
    match call.role, call.arguments:
        case "write", {"path": path, "content": content}:
            return "write", {"filePath": str(root / path), "content": content}
        case "edit", {"path": path, "old": old, "new": new}:
            return "edit", {"filePath": str(root / path), "oldString": old, "newString": new}
        case "read", {"path": path}:
            return "read", {"filePath": str(root / path)}
        case "shell", {"command": command}:
            return "bash", {"command": command, "description": "Runs a command"}
        case "delegate", {"prompt": prompt}:
            return "task", {"description": "Helps", "prompt": prompt, **_kind("general")}
    return call


def pi(call: Call, root: Path) -> Tool:
    match call.role, call.arguments:
        case "edit", {"path": path, "old": old, "new": new}:
            return "edit", {"path": path, "edits": [{"oldText": old, "newText": new}]}
        case "shell", {"command": command}:
            return "bash", {"command": command}
    return call


def _kind(name: str) -> Arguments:
    return {"subagent_type": name}


def _patch(head: str, lines: list[str]) -> str:
    return "\n".join(["*** Begin Patch", head, *lines, "*** End Patch", ""])


def _marked(mark: str, text: str) -> list[str]:
    return [mark + line for line in text.splitlines()]
