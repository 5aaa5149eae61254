"""Reading: entries as the pieces that people read.

A call and its result become one piece. The end of a turn shows the differences that no edit of
the turn has shown already, so that what commands changed is seen, and nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from mulligan.core import entries as types
from mulligan.core.entries import ERROR, TOOL_CALL, TOOL_RESULT
from mulligan.core.invisible import escape_invisible, is_hidden
from mulligan.exporters.records import ChangesOf, Entry, FileChange

SUBJECTS: Final = (
    *("command", "cmd", "file_path", "path", "notebook_path", "pattern", "query", "url"),
    *("description", "prompt", "input"),
)
"""What tells most about a call, by the names that agents give it."""

DONE: Final = {
    "create": "created", "modify": "modified", "delete": "deleted", "rename": "renamed",
    "added": "created",
}  # fmt: skip


class Message(NamedTuple):
    """Somebody said something; `aloud` is false for thoughts."""

    entry: Entry
    who: str
    text: str
    aloud: bool = True


class Call(NamedTuple):
    """A tool was called. `state` is success, error, running or pending."""

    entry: Entry
    name: str
    subject: str
    state: str
    took: str
    input: str
    output: str


class Edit(NamedTuple):
    """A tool changed a file."""

    entry: Entry
    change: FileChange


class TurnEnd(NamedTuple):
    """A turn ended with files changed; those with a `diff` were not shown as edits."""

    entry: Entry
    changes: Sequence[FileChange]


class Note(NamedTuple):
    """Something that the session itself has to say."""

    entry: Entry
    title: str
    text: str = ""


Piece = Message | Call | Edit | TurnEnd | Note


def pieces(entries: Sequence[Entry], changes_of: ChangesOf) -> Iterator[Piece]:
    """The entries of one way, in order. Marks that only machines need are left out."""
    results = {_call(each): each for each in entries if each.type == TOOL_RESULT and _call(each)}
    called = {_call(each) for each in entries if each.type == TOOL_CALL} - {""}
    edited: set[str] = set()
    for entry in entries:
        data = entry.data or {}
        match entry.type:
            case types.USER_INPUT:
                edited.clear()
                yield Message(entry, "You", entry.content)
            case types.ASSISTANT_OUTPUT if data.get("kind") == "reasoning":
                yield Message(entry, "Thoughts", entry.content, aloud=False)
            case types.ASSISTANT_OUTPUT:
                yield Message(entry, "Assistant", entry.content)
            case types.TOOL_CALL:
                yield _as_call(entry, data, results.get(_call(entry)))
            case types.TOOL_RESULT if _call(entry) not in called:
                yield _as_result(entry, data)
            case types.FILE_EDIT:
                edited.add(str(data.get("path", "")))
                yield Edit(entry, edit_of(data))
            case types.STEP_SNAPSHOT:
                yield TurnEnd(entry, _unseen(changes_of(entry) or listed(data), edited))
            case types.COMPACT_MARKER:
                count = data.get("compactedCount")
                title = f"{count:,} entries were compacted" if isinstance(count, int) else ""
                yield Note(entry, title or "Compacted", entry.content or _text(data.get("summary")))
            case types.BRANCH_SUMMARY:
                yield Note(entry, "Another way was left", entry.content)
            case types.SYSTEM_MESSAGE if entry.content.strip():
                yield Message(entry, "System", entry.content, aloud=False)
            case _:
                continue


def opening(told: Sequence[Piece]) -> str:
    """What a stretch of a session began with."""
    said = (each.text for each in told if isinstance(each, Message | Note))
    return title_of(next((each for each in said if each.strip()), ""))


def listed(data: dict[str, Any]) -> list[FileChange]:
    """The files that the end of a turn names, without their differences."""
    return [
        FileChange(str(path), str(status))
        for status, paths in _mapping(data.get("diff")).items()
        if isinstance(paths, list)
        for path in paths
    ]


def edit_of(data: dict[str, Any]) -> FileChange:
    operation = str(data.get("operation", "modify"))
    path = str(data.get("path", ""))
    if data.get("old_path"):
        path = f"{data['old_path']} → {path}"
    diff = data.get("diff")
    return FileChange(
        path,
        DONE.get(operation, operation),
        _count(data.get("additions")),
        _count(data.get("deletions")),
        diff if isinstance(diff, str) and diff else None,
    )


def subject_of(input: Any) -> str:
    """What a call is about, in a line."""
    found = input
    if isinstance(input, dict):
        found = next((input[name] for name in SUBJECTS if input.get(name)), None)
        if found is None:
            found = input or ""
    if isinstance(found, list) and all(isinstance(each, str) for each in found):
        found = " ".join(found)
    return " ".join(_text(found).split())


def took(duration: Any) -> str:
    """Milliseconds as people say them."""
    if isinstance(duration, bool) or not isinstance(duration, int | float) or duration < 0:
        return ""
    if duration < 1000:
        return f"{duration:.0f} ms"
    seconds = duration / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def title_of(text: str, limit: int = 80) -> str:
    """The first line that says something, cut where it is long."""
    line = next((each.strip() for each in text.splitlines() if each.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def harmless(text: str) -> str:
    """Replace control characters, escape other invisible ones; keep newlines, tabs, emoji."""
    return escape_invisible(writable(text), _visible, prose=True)


def _visible(character: str) -> str:
    if character in "\n\t":
        return character
    if character == "\r":
        return ""
    if character < " " or "\x7f" <= character <= "\x9f":
        return "\ufffd"
    return f"\\u{ord(character):04x}" if is_hidden(character) else character


def writable(text: str) -> str:
    """Text that any file takes: bytes that were no UTF-8 are written as `\\xff`."""
    if text.isascii():
        return text
    return "".join(each if not "\ud800" <= each <= "\udfff" else _escaped(each) for each in text)


def _escaped(half: str) -> str:
    return f"\\x{ord(half) - 0xDC00:02x}" if "\udc80" <= half <= "\udcff" else "\ufffd"


def _as_call(entry: Entry, data: dict[str, Any], result: Entry | None) -> Call:
    output = _text(data.get("output"))
    state = str(data.get("status", ""))
    if result is not None:
        output = result.content or output
        if (result.data or {}).get("is_error"):
            state = ERROR
    given = data.get("input")
    return Call(
        entry,
        str(data.get("name") or "tool"),
        subject_of(given),
        state,
        took(data.get("duration")),
        _spread(given),
        output,
    )


def _as_result(entry: Entry, data: dict[str, Any]) -> Call:
    """A result whose call is nowhere to be seen."""
    state = ERROR if data.get("is_error") else ""
    return Call(entry, str(data.get("name") or "result"), "", state, "", "", entry.content)


def _unseen(changes: Sequence[FileChange], edited: set[str]) -> list[FileChange]:
    return [each._replace(diff=None) if each.path in edited else each for each in changes]


def _spread(given: Any) -> str:
    """The input of a call, a name a line; longer values below their names."""
    if not isinstance(given, dict):
        return _text(given)
    lines = []
    for name, value in given.items():
        text = _text(value)
        lines.append(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}")
    return "\n".join(lines)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _call(entry: Entry) -> str:
    return str((entry.data or {}).get("call") or "")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
