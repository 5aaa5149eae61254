"""Group entries into the pieces that people read.

A call and its result become one piece. The end of a turn shows only the diffs that no edit of the
turn has shown, so changes by commands are visible and none is shown twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from mulligan.core import entries as types
from mulligan.core.entries import ERROR, TOOL_CALL, TOOL_RESULT
from mulligan.core.invisible import escape_invisible, is_hidden
from mulligan.exporters.records import ChangesOf, Entry, FileChange

SUBJECT_ARGUMENTS: Final = (
    *("command", "cmd", "file_path", "path", "notebook_path", "pattern", "query", "url"),
    *("description", "prompt", "input"),
)
"""Names of call arguments, the most telling first."""

CHANGE_STATUSES: Final = {
    "create": "created", "modify": "modified", "delete": "deleted", "rename": "renamed",
    "added": "created",
}  # fmt: skip


class Message(NamedTuple):
    """A text. `is_dialog` is False for reasoning and system messages."""

    entry: Entry
    speaker: str
    text: str
    is_dialog: bool = True


class Call(NamedTuple):
    """A tool call with its result. `state` is success, error, running or pending."""

    entry: Entry
    name: str
    subject: str
    state: str
    duration: str
    input: str
    output: str


class Edit(NamedTuple):
    """A file that a tool changed."""

    entry: Entry
    change: FileChange


class TurnEnd(NamedTuple):
    """The files that a turn changed; those without an `Edit` of their own have a `diff`."""

    entry: Entry
    changes: Sequence[FileChange]


class Note(NamedTuple):
    """A remark on the session, such as a compaction."""

    entry: Entry
    title: str
    text: str = ""


Piece = Message | Call | Edit | TurnEnd | Note


def to_pieces(entries: Sequence[Entry], changes_of: ChangesOf) -> Iterator[Piece]:
    """Convert the entries of one branch, in order; skip entries that only programs need."""
    results = {
        _call_id(each): each for each in entries if each.type == TOOL_RESULT and _call_id(each)
    }
    called = {_call_id(each) for each in entries if each.type == TOOL_CALL} - {""}
    edited_paths: set[str] = set()
    for entry in entries:
        data = entry.data or {}
        match entry.type:
            case types.USER_INPUT:
                edited_paths.clear()
                yield Message(entry, "You", entry.content)
            case types.ASSISTANT_OUTPUT if data.get("kind") == "reasoning":
                yield Message(entry, "Thoughts", entry.content, is_dialog=False)
            case types.ASSISTANT_OUTPUT:
                yield Message(entry, "Assistant", entry.content)
            case types.TOOL_CALL:
                yield _as_call(entry, data, results.get(_call_id(entry)))
            case types.TOOL_RESULT if _call_id(entry) not in called:
                yield _as_result(entry, data)
            case types.FILE_EDIT:
                edited_paths.add(str(data.get("path", "")))
                yield Edit(entry, edit_of(data))
            case types.STEP_SNAPSHOT:
                changes = changes_of(entry) or listed_changes(data)
                yield TurnEnd(entry, _without_shown(changes, edited_paths))
            case types.COMPACT_MARKER:
                count = data.get("compactedCount")
                title = f"{count:,} entries were compacted" if isinstance(count, int) else ""
                yield Note(entry, title or "Compacted", entry.content or _text(data.get("summary")))
            case types.BRANCH_SUMMARY:
                yield Note(entry, "Summary of another branch", entry.content)
            case types.SYSTEM_MESSAGE if entry.content.strip():
                yield Message(entry, "System", entry.content, is_dialog=False)
            case _:
                continue


def first_line(pieces: Sequence[Piece]) -> str:
    """Return the first line of a branch."""
    texts = (piece.text for piece in pieces if isinstance(piece, Message | Note))
    return title_of(next((text for text in texts if text.strip()), ""))


def listed_changes(data: dict[str, Any]) -> list[FileChange]:
    """Return the files that the end of a turn lists, without diffs."""
    return [
        FileChange(str(path), str(status))
        for status, paths in _mapping(data.get("diff")).items()
        if isinstance(paths, list)
        for path in paths
    ]


def edit_of(data: dict[str, Any]) -> FileChange:
    """Convert the data of a file edit."""
    operation = str(data.get("operation", "modify"))
    path = str(data.get("path", ""))
    if data.get("old_path"):
        path = f"{data['old_path']} → {path}"
    diff = data.get("diff")
    return FileChange(
        path,
        CHANGE_STATUSES.get(operation, operation),
        _count(data.get("additions")),
        _count(data.get("deletions")),
        diff if isinstance(diff, str) and diff else None,
    )


def subject_of(input: Any) -> str:
    """Describe a call in one line by its most telling argument."""
    subject = input
    if isinstance(input, dict):
        subject = next((input[name] for name in SUBJECT_ARGUMENTS if input.get(name)), None)
        if subject is None:
            subject = input or ""
    if isinstance(subject, list) and all(isinstance(word, str) for word in subject):
        subject = " ".join(subject)
    return " ".join(_text(subject).split())


def format_duration(duration_ms: Any) -> str:
    """Format milliseconds for people; return "" for an invalid value."""
    if isinstance(duration_ms, bool) or not isinstance(duration_ms, int | float):
        return ""
    if duration_ms < 0:
        return ""
    if duration_ms < 1000:
        return f"{duration_ms:.0f} ms"
    seconds = duration_ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def title_of(text: str, limit: int = 80) -> str:
    """Return the first non-blank line, cut to `limit` characters."""
    line = next((each.strip() for each in text.splitlines() if each.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def sanitize_text(text: str) -> str:
    """Replace control characters, and escape other invisible ones; keep newlines and tabs."""
    return escape_invisible(_replace_surrogates(text), _visible, prose=True)


def _visible(character: str) -> str:
    if character in "\n\t":
        return character
    if character == "\r":
        return ""
    if character < " " or "\x7f" <= character <= "\x9f":
        return "\ufffd"
    return f"\\u{ord(character):04x}" if is_hidden(character) else character


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates; write those that stand for raw bytes as `\\xff`."""
    return _SURROGATE.sub(lambda match: _escape_surrogate(match[0]), text)


def _escape_surrogate(code: str) -> str:
    return f"\\x{ord(code) - 0xDC00:02x}" if "\udc80" <= code <= "\udcff" else "\ufffd"


def _as_call(entry: Entry, data: dict[str, Any], result: Entry | None) -> Call:
    output = _text(data.get("output"))
    state = str(data.get("status", ""))
    if result is not None:
        output = result.content or output
        if (result.data or {}).get("is_error"):
            state = ERROR
    input = data.get("input")
    return Call(
        entry,
        str(data.get("name") or "tool"),
        subject_of(input),
        state,
        format_duration(data.get("duration")),
        _format_input(input),
        output,
    )


def _as_result(entry: Entry, data: dict[str, Any]) -> Call:
    """Convert a result whose call is not on this branch."""
    state = ERROR if data.get("is_error") else ""
    return Call(entry, str(data.get("name") or "result"), "", state, "", "", entry.content)


def _without_shown(changes: Sequence[FileChange], edited_paths: set[str]) -> list[FileChange]:
    return [each._replace(diff=None) if each.path in edited_paths else each for each in changes]


def _format_input(input: Any) -> str:
    """Write one argument per line; values of several lines below their names."""
    if not isinstance(input, dict):
        return _text(input)
    lines = []
    for name, value in input.items():
        text = _text(value)
        lines.append(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}")
    return "\n".join(lines)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _call_id(entry: Entry) -> str:
    return str((entry.data or {}).get("call") or "")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
