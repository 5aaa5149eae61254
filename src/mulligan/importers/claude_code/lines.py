"""Convert single lines of a Claude Code log to entries without ids and parents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    ERROR,
    FILE_EDIT,
    PENDING,
    SUCCESS,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    USER_INPUT,
    NewEntry,
)
from mulligan.importers import edit_data
from mulligan.importers.records import CallEnded
from mulligan.importers.values import as_dict, as_list, as_number, as_str, without_empty


class Call(NamedTuple):
    """A tool call: the id of its entry, its name and its input."""

    entry: str
    name: str
    input: dict[str, Any]


class Unknown(NamedTuple):
    """A part of a line of an unknown type."""

    reason: str


Draft = NewEntry | CallEnded | Unknown


def drafts(line: dict[str, Any], calls: Mapping[str, Call]) -> Iterator[Draft]:
    """Yield the entries of a line; nothing for a line outside of the conversation."""
    kind = line.get("type")
    content = as_dict(line.get("message")).get("content")
    if kind == "assistant":
        yield from _assistant_message(line, content)
    elif kind == "user":
        yield from _results(line, content, calls)
        yield from _user_message(line, text_of(content))
    elif kind == "system":
        yield from _system_message(line)
    elif kind == "attachment":
        attachment = as_dict(line.get("attachment"))
        is_prompt = attachment.get("commandMode", "prompt") == "prompt"
        # Prompts typed while the agent works are logged as attachments.
        if is_prompt and attachment.get("type") == "queued_command":
            yield from _user_message({}, text_of(attachment.get("prompt")))


def text_of(content: object) -> str:
    """Join the texts of a message or a result; name other blocks in brackets."""
    if isinstance(content, str):
        return content
    return "\n\n".join(filter(None, (_block_text(block) for block in as_list(content))))


def _block_text(block: object) -> str:
    if isinstance(block, str):
        return block
    block = as_dict(block)
    match block.get("type"):
        case "text":
            return as_str(block.get("text"))
        case "image" | "document":
            media = as_str(as_dict(block.get("source")).get("media_type"))
            return f"[{block['type']} {media}]" if media else f"[{block['type']}]"
        case "tool_reference":
            return f"[tool {as_str(block.get('tool_name'))}]"
        case _:
            return ""


def _assistant_message(line: dict[str, Any], content: object) -> Iterator[Draft]:
    model = as_str(as_dict(line.get("message")).get("model")) or None
    is_synthetic = model == "<synthetic>"  # written by Claude Code itself
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        yield Unknown("The assistant's message has no content.")
        return
    for block in map(as_dict, content):
        match as_str(block.get("type")):
            case "text":
                text = as_str(block.get("text"))
                if line.get("isApiErrorMessage") is True:
                    yield NewEntry(SYSTEM_MESSAGE, text, {"kind": "error"})
                elif text and is_synthetic:
                    yield NewEntry(SYSTEM_MESSAGE, text, {"kind": "synthetic"})
                elif text:
                    yield NewEntry(ASSISTANT_OUTPUT, text, model=model)
            case "thinking":
                # A block without text holds only a signature for the model.
                if text := as_str(block.get("thinking")):
                    yield NewEntry(ASSISTANT_OUTPUT, text, {"kind": "reasoning"}, model=model)
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                data = {
                    "name": as_str(block.get("name")),
                    "input": block.get("input"),
                    "status": PENDING,
                    "call": as_str(block.get("id")),
                }
                yield NewEntry(TOOL_CALL, "", data, model=model)
            case "redacted_thinking" | "fallback":
                pass
            case kind if kind.endswith("_tool_result"):
                yield from _result(block | {"content": _server_results(block)}, {}, {})
            case kind:
                yield Unknown(f"Unknown type of content: {kind[:40] or 'none'}.")


def _server_results(block: dict[str, Any]) -> str:
    """Join the titles and URLs that a server-side tool returned."""
    results = map(as_dict, as_list(block.get("content")))
    lines = (f"{as_str(one.get('title'))} {as_str(one.get('url'))}".strip() for one in results)
    return "\n".join(filter(None, lines))


def _user_message(line: dict[str, Any], text: str) -> Iterator[Draft]:
    if not text.strip():
        return
    if command := _COMMAND.search(text):
        arguments = _ARGUMENTS.search(text)
        words = [command[1].strip(), arguments[1].strip() if arguments else ""]
        yield NewEntry(USER_INPUT, " ".join(words).strip(), {"kind": "command"})
    elif shell := _SHELL.fullmatch(text):
        yield NewEntry(USER_INPUT, "!" + shell[1].strip(), {"kind": "command"})
    elif text.startswith("[Request interrupted by user"):
        yield NewEntry(SYSTEM_MESSAGE, text, {"kind": "interrupted"})
    elif notice := _NOTICE.match(text):
        stripped = _TAGS.sub("", text).strip()
        # The caveat repeats the same instructions to the model at every local command.
        if stripped and notice[1] != "local-command-caveat":
            yield NewEntry(SYSTEM_MESSAGE, stripped, {"kind": notice[1]})
    elif line.get("isMeta") is True:
        yield NewEntry(SYSTEM_MESSAGE, text, {"kind": "meta"})
    else:
        yield NewEntry(USER_INPUT, text)


def _system_message(line: dict[str, Any]) -> Iterator[Draft]:
    text = as_str(line.get("content"))
    subtype = as_str(line.get("subtype")) or "system"
    if subtype == "local_command":
        yield from _user_message({}, text)
    elif text.strip():
        yield NewEntry(SYSTEM_MESSAGE, text, {"kind": subtype})


def _results(line: dict[str, Any], content: object, calls: Mapping[str, Call]) -> Iterator[Draft]:
    results = [
        block for block in map(as_dict, as_list(content)) if block.get("type") == "tool_result"
    ]
    # A line has details of one result; among several results their owner is unknown.
    details = as_dict(line.get("toolUseResult")) if len(results) == 1 else {}
    for block in results:
        yield from _result(block, details, calls)


def _result(
    block: dict[str, Any], details: dict[str, Any], calls: Mapping[str, Call]
) -> Iterator[Draft]:
    id = as_str(block.get("tool_use_id"))
    failed = block.get("is_error") is True
    call = calls.get(id)
    duration = as_number(details.get("durationMs", details.get("totalDurationMs")))
    yield CallEnded(id, ERROR if failed else SUCCESS, duration=duration)
    text = text_of(block.get("content"))
    data = without_empty(call=id, name=call.name if call else None, is_error=failed)
    yield NewEntry(TOOL_RESULT, text, data)
    if not failed and (edit := _edit(details, call, text)):
        yield NewEntry(FILE_EDIT, "", edit)


def _edit(details: dict[str, Any], call: Call | None, text: str) -> dict[str, Any] | None:
    """Describe the file edit in a result, if there is one."""
    path = as_str(details.get("filePath"))
    if path and isinstance(details.get("structuredPatch"), list):
        # Only the type tells a new file from an edit of an empty one.
        is_new = details.get("type") == "create" or details.get("originalFile", "") is None
        if is_new and isinstance(details.get("content"), str):
            return edit_data.created(path, details["content"])
        operation = "create" if is_new else "modify"
        diff = _to_unified(details["structuredPatch"])
        if not diff:
            return {"path": path, "operation": operation}
        return edit_data.from_diff(path, operation, edit_data.diff_header(path, operation) + diff)
    if call is None or details:
        return None
    # Without details only the input of the call is known.
    path = as_str(call.input.get("file_path"))
    if path and call.name == "Write":
        content = as_str(call.input.get("content"))
        describe = edit_data.created if "created" in text else edit_data.overwritten
        return describe(path, content)
    if path and call.name == "Edit":
        old, new = as_str(call.input.get("old_string")), as_str(call.input.get("new_string"))
        return edit_data.replaced(path, [(old, new)])
    return None


def _to_unified(hunks: list[Any]) -> str:
    """Format hunks as a unified diff; skip malformed ones."""
    text: list[str] = []
    for hunk in map(as_dict, hunks):
        spans = [hunk.get(name) for name in ("oldStart", "oldLines", "newStart", "newLines")]
        if all(isinstance(span, int) for span in spans):
            text.append("@@ -{},{} +{},{} @@\n".format(*spans))
            text += [f"{line}\n" for line in as_list(hunk.get("lines")) if isinstance(line, str)]
    return "".join(text)


_COMMAND: Final = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS: Final = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_SHELL: Final = re.compile(r"\s*<bash-input>(.*?)</bash-input>\s*", re.DOTALL)
_NOTICE: Final = re.compile(
    r"\s*<(local-command-\w+|bash-std\w+|task-notification|system-reminder)>"
)
_TAGS: Final = re.compile(r"</?(?:local-command-\w+|bash-std\w+|task-notification)>")
