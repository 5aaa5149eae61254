"""Parse the parts of a Codex log: types, texts, tool outputs, patches."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mulligan.core.diff import compare
from mulligan.importers import edit_data
from mulligan.importers.json_log import parse_object
from mulligan.importers.values import as_dict, as_list, as_number, as_str

# Types about the program itself, or repeated by lines of other types.
IGNORED_LINES: Final = frozenset(
    {"world_state", "token_usage_record", "state", "inter_agent_communication_metadata"}
)
IGNORED_EVENTS: Final = frozenset(
    {
        *("task_started", "task_complete", "turn_started", "turn_complete", "token_count"),
        *("session_configured", "thread_settings_applied", "thread_goal_updated"),
        *("context_compacted", "item_started", "patch_apply_updated", "exec_command_begin"),
        *("exec_command_output_delta", "mcp_tool_call_begin", "web_search_begin", "web_search_end"),
        *("view_image_tool_call", "image_generation_begin", "image_generation_end", "turn_diff"),
        *("agent_reasoning_section_break", "agent_message_delta", "agent_reasoning_delta"),
        *("entered_review_mode", "exited_review_mode", "plan_update", "background_event"),
        *("guardian_assessment", "undo_started", "undo_completed", "shutdown_complete"),
        *("hook_started", "hook_completed", "deprecation_notice", "mcp_startup_complete"),
        *("collab_agent_spawn_begin", "collab_waiting_end"),
        *("collab_agent_interaction_end", "collab_close_end", "collab_resume_end"),
        *("dynamic_tool_call_request", "dynamic_tool_call_response", "sub_agent_activity"),
    }
)
IGNORED_ITEMS: Final = frozenset(
    {
        *("WebSearch", "ImageView", "ImageGeneration", "ContextCompaction", "HookPrompt"),
        *("EnteredReviewMode", "ExitedReviewMode", "CollabAgentToolCall"),
        *("DynamicToolCall", "Sleep"),
    }
)
IGNORED_RESPONSES: Final = frozenset(
    {
        *("ghost_snapshot", "compaction", "compaction_summary", "context_compaction"),
        *("additional_tools", "other"),
    }
)
CALLS: Final = frozenset(
    {
        *("function_call", "custom_tool_call", "local_shell_call", "tool_search_call"),
        *("web_search_call", "image_generation_call"),
    }
)
OUTPUTS: Final = frozenset(
    {
        *("function_call_output", "custom_tool_call_output", "tool_search_output"),
        "mcp_tool_call_output",
    }
)


class Output(NamedTuple):
    """The output of a tool. `failed` is None if unknown; `duration` is in milliseconds."""

    text: str
    failed: bool | None = None
    duration: float | None = None


def text_of(content: object) -> str:
    """Join the texts of a message or an output."""
    if isinstance(content, str):
        return content
    parts = (part if isinstance(part, str) else _part_text(part) for part in as_list(content))
    return "\n".join(filter(None, parts))


def typed_text(content: object) -> str:
    """Return what the user typed, without parts that Codex injected, such as image tags."""
    texts = [content] if isinstance(content, str) else map(_part_text, as_list(content))
    return "\n".join(text for text in texts if text and not _INJECTED.match(text))


def working_directory(content: object) -> str | None:
    """Return the working directory that Codex told the model, if the message holds it."""
    match = _DIRECTORY.search(text_of(content))
    return (match[1] or match[2] or "").strip() if match else None


def parse_output(value: object) -> Output:
    """Parse a tool output: plain text, text with an exit code, an object, or a list."""
    if isinstance(value, dict):
        success = value.get("success")
        plain = parse_output(value.get("content"))
        return plain._replace(failed=not success) if isinstance(success, bool) else plain
    text = text_of(value)
    if (
        text.startswith("{")
        and isinstance(wrapped := parse_object(text), dict)
        and "output" in wrapped
    ):
        metadata = as_dict(wrapped.get("metadata"))
        code, seconds = metadata.get("exit_code"), as_number(metadata.get("duration_seconds"))
        return Output(
            as_str(wrapped["output"]),
            code != 0 if isinstance(code, int) else None,
            seconds * 1000 if seconds is not None else None,
        )
    head = text[:300]
    exit_code, wall_time = _EXIT_CODE.search(head), _WALL_TIME.search(head)
    return Output(
        text,
        int(exit_code[1]) != 0 if exit_code else True if head.startswith("Script failed") else None,
        float(wall_time[1]) * 1000 if wall_time else None,
    )


def milliseconds(value: object) -> float | None:
    """Convert a duration of `secs` and `nanos`."""
    parts = as_dict(value)
    seconds, nanoseconds = as_number(parts.get("secs")), as_number(parts.get("nanos"))
    return None if seconds is None else seconds * 1000 + (nanoseconds or 0) / 1e6


def command_line(value: object) -> str:
    """Return the shell command, or the words of a command joined."""
    words = [word for word in as_list(value) if isinstance(word, str)]
    if len(words) == 3 and words[1] in ("-c", "-lc"):
        return words[2]
    return " ".join(words) or as_str(value)


def find_patch(arguments: object) -> str | None:
    """Find a patch anywhere in the arguments of a call."""
    if isinstance(arguments, str):
        start = arguments.find("*** Begin Patch")
        return arguments[start:] if start >= 0 else None
    values = as_dict(arguments)
    texts = [*values.values(), *as_list(values.get("command"))]
    return next(filter(None, (find_patch(text) for text in texts if isinstance(text, str))), None)


def edits_in_changes(changes: object) -> Iterator[dict[str, Any]]:
    """Describe the edits in an object that maps paths to changes."""
    for path, change in as_dict(changes).items():
        change = as_dict(change)
        kind = change.get("type")
        if kind is None and len(change) == 1:  # older form: {"add": {"content": …}}
            kind, change = next(iter(change.items()))
            change = as_dict(change)
        content = as_str(change.get("content"))
        if kind == "add":
            yield edit_data.created(path, content)
        elif kind == "delete":
            yield _deleted(path, content)
        elif kind == "update":
            yield _updated(path, change)


def edits_in_patch(patch: str, directory: str | None) -> Iterator[dict[str, Any]]:
    """Describe the edits in a patch by the model, which has no line numbers."""
    for part in re.split(r"^(?=\*\*\* (?:Add|Update|Delete) File: )", patch, flags=re.MULTILINE):
        header, _, body = part.partition("\n")
        match = _PATCH_HEADER.fullmatch(header)
        if match is None:
            continue
        body = body.partition("*** End Patch")[0]
        path = _absolute(match[2].strip(), directory)
        lines = body.split("\n")
        if match[1] == "Add":
            content = "".join(f"{line[1:]}\n" for line in lines if line.startswith("+"))
            yield edit_data.created(path, content)
        elif match[1] == "Delete":
            yield _deleted(path, "")
        else:
            moved = _PATCH_MOVE.search(body)
            edit: dict[str, Any] = {"path": path, "operation": "modify"}
            if moved:
                new = _absolute(moved[1].strip(), directory)
                edit = {"path": new, "operation": "rename", "old_path": path}
            edit["additions"] = sum(line.startswith("+") for line in lines)
            edit["deletions"] = sum(line.startswith("-") for line in lines)
            yield edit


_EXIT_CODE: Final = re.compile(r"(?:Exit code: |Process exited with code )(-?\d{1,9})\b")
_WALL_TIME: Final = re.compile(r"Wall time:? (\d{1,9}(?:\.\d{1,9})?) seconds")
_DIRECTORY: Final = re.compile(r"<cwd>(.*?)</cwd>|Current working directory: (.*)")
_PATCH_HEADER: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.*)")
_PATCH_MOVE: Final = re.compile(r"^\*\*\* Move to: (.*)$", re.MULTILINE)
_INJECTED: Final = re.compile(
    r"\s*(?:# AGENTS\.md instructions|</?image\b[^>]*>\s*$|<(?:environment_context|"
    r"user_instructions|INSTRUCTIONS|permissions instructions|turn_aborted|skill|"
    r"user_shell_command|subagent_notification|hook_prompt|apps_instructions|"
    r"skills_instructions|plugins_instructions|collaboration_mode|personality_spec|"
    r"model_switch|token_budget|user_action|recommended_plugins)\b)"
)


def _part_text(part: object) -> str:
    part = as_dict(part)
    if part.get("type") in ("input_image", "image", "local_image"):
        return "[image]"
    return as_str(part.get("text"))


def _updated(path: str, change: dict[str, Any]) -> dict[str, Any]:
    hunks, moved = as_str(change.get("unified_diff")), as_str(change.get("move_path"))
    operation = {"operation": "rename", "old_path": path} if moved else {"operation": "modify"}
    if not hunks:
        return {"path": moved or path, **operation, "additions": 0, "deletions": 0}
    old, new = edit_data.diff_header(path, "modify"), edit_data.diff_header(moved or path, "modify")
    header = old.partition("\n")[0] + "\n" + new.partition("\n")[2]
    return edit_data.from_diff(moved or path, "modify", header + hunks) | operation


def _deleted(path: str, content: str) -> dict[str, Any]:
    if not content:
        return {"path": path, "operation": "delete"}
    name = b"a/" + path.lstrip("/").encode()
    diff, additions, deletions = compare(
        content.encode(), b"", old_name=name, new_name=b"/dev/null"
    )
    counts = {"additions": additions, "deletions": deletions}
    return {"path": path, "operation": "delete", "diff": diff.decode(), **counts}


def _absolute(path: str, directory: str | None) -> str:
    return os.path.normpath(os.path.join(directory, path)) if directory else path
