"""pi's messages, and its own kind of diff, in our words."""

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


def bash_of_the_user(id: str, message: dict[str, Any]) -> Iterator[Record]:
    """A command that the user ran from the prompt; it has no id of its own."""
    output, code = as_str(message.get("output")), message.get("exitCode")
    input = {"command": as_str(message.get("command"))}
    is_error = message.get("cancelled") is True or code not in (0, None)
    data = {"name": "bash", "input": input, "status": RUNNING, "call": id, "by": "user"}
    yield NewEntry(TOOL_CALL, data=data)
    yield NewEntry(TOOL_RESULT, output, {"call": id, "name": "bash", "is_error": is_error})
    yield CallEnded(id, ERROR if is_error else SUCCESS, output)


def custom_message(message: dict[str, Any]) -> Iterator[Record]:
    data = without_empty(custom=as_str(message.get("customType")), details=message.get("details"))
    yield NewEntry(SYSTEM_MESSAGE, words(message.get("content")), data)


def branch_summary(line: dict[str, Any]) -> Iterator[Record]:
    named = {name: line.get(name) for name in ("fromId", "skipFiles", "details")}
    yield NewEntry(BRANCH_SUMMARY, as_str(line.get("summary")), without_empty(**named))


def edited(path: str, input: dict[str, Any], numbered: str) -> dict[str, Any]:
    """Prefers what the tool showed afterwards: it knows the lines and what stands around them."""
    diff = _unified(path, numbered)
    if diff is not None:
        return edit_data.from_diff(path, "modify", diff)
    pieces = map(as_dict, as_list(input.get("edits")) or [input])
    return edit_data.replaced(
        path, ((as_str(piece.get("oldText")), as_str(piece.get("newText"))) for piece in pieces)
    )


_NUMBERED: Final = re.compile(r"([+ -]) *(\d{1,9}) (.*)", re.DOTALL)
_SKIPPED: Final = re.compile(r"  +\.\.\.")


def _unified(path: str, numbered: str) -> str | None:
    """pi's own kind of diff, with a number in each line, as a unified one; None if it is not that.

    Added lines bear their new number, the others their old one.
    """
    hunks: list[str] = []
    hunk: list[str] = []
    shift = old_start = new_start = 0

    def close() -> None:
        if not hunk:
            return
        old = sum(line[0] != "+" for line in hunk)
        new = sum(line[0] != "-" for line in hunk)
        spans = f"-{old_start - (not old)},{old} +{new_start - (not new)},{new}"
        hunks.append(f"@@ {spans} @@\n" + "".join(hunk))
        hunk.clear()

    for line in numbered.removesuffix("\n").split("\n"):
        if _SKIPPED.fullmatch(line):
            close()
            continue
        match = _NUMBERED.fullmatch(line)
        if match is None:
            return None
        mark, count, words = match[1], int(match[2]), match[3]
        if not hunk:
            old_start = count - shift if mark == "+" else count
            new_start = count if mark == "+" else count + shift
        hunk.append(f"{mark}{words}\n")
        shift += (mark == "+") - (mark == "-")
    close()
    return edit_data.diff_header(path, "modify") + "".join(hunks) if hunks else None


def words(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = map(as_dict, as_list(content))
    return "\n".join(as_str(block.get("text")) for block in blocks if block.get("type") == "text")


def attachments(content: object) -> dict[str, Any] | None:
    blocks = map(as_dict, as_list(content))
    kinds = [as_str(block.get("mimeType")) for block in blocks if block.get("type") == "image"]
    return {"attachments": [{"mime": kind} for kind in kinds]} if kinds else None


def milliseconds(began_at: str | None, ended_at: str | None) -> float | None:
    if began_at is None or ended_at is None or ended_at < began_at:
        return None
    return (nanoseconds(ended_at) - nanoseconds(began_at)) / 1e6
