"""Convert pi's messages and its numbered diffs to entries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from mulligan.core.entries import (
    BRANCH_SUMMARY,
    ERROR,
    RUNNING,
    SUCCESS,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    NewEntry,
)
from mulligan.core.times import nanoseconds
from mulligan.importers import edit_data
from mulligan.importers.records import CallEnded, Record
from mulligan.importers.values import as_dict, as_list, as_str, without_empty


def user_command(id: str, message: dict[str, Any]) -> Iterator[Record]:
    """Convert a command that the user ran at the prompt; the message's id is the call's id."""
    output, code = as_str(message.get("output")), message.get("exitCode")
    input = {"command": as_str(message.get("command"))}
    is_error = message.get("cancelled") is True or code not in (0, None)
    data = {"name": "bash", "input": input, "status": RUNNING, "call": id, "by": "user"}
    yield NewEntry(TOOL_CALL, data=data)
    yield NewEntry(TOOL_RESULT, output, {"call": id, "name": "bash", "is_error": is_error})
    yield CallEnded(id, ERROR if is_error else SUCCESS, output)


def custom_message(message: dict[str, Any]) -> Iterator[Record]:
    """Convert a message of an extension."""
    data = without_empty(custom=as_str(message.get("customType")), details=message.get("details"))
    yield NewEntry(SYSTEM_MESSAGE, text_of(message.get("content")), data)


def branch_summary(line: dict[str, Any]) -> Iterator[Record]:
    """Convert the summary of a branch that the user left."""
    fields = {name: line.get(name) for name in ("fromId", "skipFiles", "details")}
    yield NewEntry(BRANCH_SUMMARY, as_str(line.get("summary")), without_empty(**fields))


def edit_of(path: str, input: dict[str, Any], numbered_diff: str) -> dict[str, Any]:
    """Describe an edit by the tool's diff, or else by the pieces in its input.

    Only the diff has line numbers and context.
    """
    diff = _to_unified(path, numbered_diff)
    if diff is not None:
        return edit_data.from_diff(path, "modify", diff)
    pieces = map(as_dict, as_list(input.get("edits")) or [input])
    return edit_data.replaced(
        path, ((as_str(piece.get("oldText")), as_str(piece.get("newText"))) for piece in pieces)
    )


_NUMBERED: Final = re.compile(r"([+ -]) *(\d{1,9}) (.*)", re.DOTALL)
_SKIPPED: Final = re.compile(r"  +\.\.\.")


def _to_unified(path: str, numbered_diff: str) -> str | None:
    """Convert pi's diff, which numbers each line, to a unified diff; None if it is none.

    Added lines have their new number, all others their old one.
    """
    hunks: list[str] = []
    lines: list[str] = []
    shift = old_start = new_start = 0

    def end_hunk() -> None:
        if not lines:
            return
        old = sum(line[0] != "+" for line in lines)
        new = sum(line[0] != "-" for line in lines)
        spans = f"-{old_start - (not old)},{old} +{new_start - (not new)},{new}"
        hunks.append(f"@@ {spans} @@\n" + "".join(lines))
        lines.clear()

    for line in numbered_diff.removesuffix("\n").split("\n"):
        if _SKIPPED.fullmatch(line):
            end_hunk()
            continue
        match = _NUMBERED.fullmatch(line)
        if match is None:
            return None
        mark, number, text = match[1], int(match[2]), match[3]
        if not lines:
            old_start = number - shift if mark == "+" else number
            new_start = number if mark == "+" else number + shift
        lines.append(f"{mark}{text}\n")
        shift += (mark == "+") - (mark == "-")
    end_hunk()
    return edit_data.diff_header(path, "modify") + "".join(hunks) if hunks else None


def text_of(content: object) -> str:
    """Join the text blocks of a message."""
    if isinstance(content, str):
        return content
    blocks = map(as_dict, as_list(content))
    return "\n".join(as_str(block.get("text")) for block in blocks if block.get("type") == "text")


def attachments(content: object) -> dict[str, Any] | None:
    """Return the media types of the images in a message."""
    blocks = map(as_dict, as_list(content))
    kinds = [as_str(block.get("mimeType")) for block in blocks if block.get("type") == "image"]
    return {"attachments": [{"mime": kind} for kind in kinds]} if kinds else None


def milliseconds_between(began_at: str | None, ended_at: str | None) -> float | None:
    if began_at is None or ended_at is None or ended_at < began_at:
        return None
    return (nanoseconds(ended_at) - nanoseconds(began_at)) / 1e6
