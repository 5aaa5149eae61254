"""Import Aider's `.aider.chat.history.md`: one file per project, with all of its sessions.

The file is Markdown for people. `# aider chat started at` begins a session, lines that start with
`####` are the user's, lines that start with `>` are Aider's own, and all others are the model's.
Aider ends each line of the first two kinds with two spaces, which tells them from a heading or a
quotation of the model, unless the user's editor has stripped trailing spaces.

There are no ids: they are hashes of the content and its position in the session. The only time
is the start of the session.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    FILE_EDIT,
    SYSTEM_MESSAGE,
    USER_INPUT,
    NewEntry,
)
from mulligan.importers import edit_data
from mulligan.importers.folders import is_plain_file, path_from_env, project_folders
from mulligan.importers.json_log import MAX_RECORD_BYTES, read_lines
from mulligan.importers.records import Importer, Problem, Record, Session, Source
from mulligan.importers.values import as_timestamp

NAME: Final = ".aider.chat.history.md"
LINE_END: Final = "  "  # of lines by Aider and by the user

_STARTED: Final = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d.*)")
_APPLIED: Final = re.compile(r"Applied edit to (.+)")
_MODEL: Final = re.compile(r"(?:Main model|Models?): (\S+) with ")
_SEARCH: Final = re.compile(r"<{5,9} SEARCH>?\s*")
_DIVIDER: Final = re.compile(r"={5,9}\s*")
_REPLACE: Final = re.compile(r">{5,9} REPLACE\s*")


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """Find the history of the project around PWD: in PWD or above, up to a folder with `.git`.

    Aider keeps it only there, so the user must name the histories of other projects. Honours
    AIDER_CHAT_HISTORY_FILE.
    """
    named = path_from_env(environment, "AIDER_CHAT_HISTORY_FILE", home)
    if named and os.path.isfile(named):
        yield Source(named)
        return
    for folder in project_folders(environment, home):
        path = os.path.join(folder, NAME)
        if is_plain_file(path):
            yield Source(path)
            return


def read(source: Source) -> Iterator[Record]:
    """Read all sessions of a history."""
    history = _History(os.path.dirname(os.path.abspath(source.path)))
    for number, line in read_lines(source.path):
        if isinstance(line, str):
            yield Problem(source.path, number, line)
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode(errors="replace")
            yield Problem(source.path, number, "Not UTF-8; invalid bytes were replaced.")
        yield from history.add_line(text.rstrip("\r\n"))
    yield from history.flush()


IMPORTER: Final = Importer("aider", find, read)


class _History:
    """Convert the lines of one file to records."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._session_starts: Counter[str] = Counter()  # by the line that starts a session
        self._session = ""
        self._time: str | None = None
        self._entry_count = 0
        self._last_entry: str | None = None
        self._has_line_ends = True  # False if an editor has stripped trailing spaces
        self._type: str | None = None  # of the pending lines
        self._lines: list[str] = []  # pending: will become one entry
        self._size = 0
        self._is_in_block = False  # in a SEARCH/REPLACE block, which may hold any line
        self._edits: dict[str, list[tuple[str, str]]] = {}  # proposed and not applied yet

    def add_line(self, line: str) -> Iterator[Record]:
        """Add one line, and yield what it completes."""
        if started := _STARTED.fullmatch(line):
            yield from self.flush()
            yield self._begin_session(line, started[1].strip())
            return
        if not self._session and line.strip():
            # Lines above the first start line get a session of their own.
            yield self._begin_session("", "")
        if self._is_message_open():
            # Of a message of several lines, the first begins with `>`, the last has the line end.
            yield from self._append(SYSTEM_MESSAGE, line)
        elif line.startswith("#### ") and self._is_user_line(line):
            yield from self._append(USER_INPUT, line[5:])
        elif line.startswith("> ") and not self._is_in_block and self._is_aider_line(line):
            yield from self.flush()
            yield from self._append(SYSTEM_MESSAGE, line[2:])
        elif line.strip() or self._type == ASSISTANT_OUTPUT:
            yield from self._append(ASSISTANT_OUTPUT, line)
        else:
            yield from self.flush()

    def flush(self) -> Iterator[Record]:
        """Yield the pending lines as an entry."""
        type, lines = self._type, self._lines
        self._type, self._lines, self._size, self._is_in_block = None, [], 0, False
        if type is None:
            return
        if type == ASSISTANT_OUTPUT:
            content = "\n".join(lines).strip("\n")
            self._edits = _parse_blocks(lines)
        else:
            content = "\n".join(line.rstrip() for line in lines)
        if type != SYSTEM_MESSAGE:
            yield self._link_entry(NewEntry(type, content))
            return
        if model := _MODEL.match(content):
            yield Session(self._session, model=model[1])
        if applied := _APPLIED.fullmatch(content):
            yield self._link_entry(self._applied_edit(applied[1]))
        else:
            yield self._link_entry(NewEntry(SYSTEM_MESSAGE, content))

    def _begin_session(self, line: str, time: str) -> Session:
        self._session_starts[line] += 1
        self._session = "aider-" + _digest(line, str(self._session_starts[line]))
        self._time = _local_time(time)
        self._entry_count, self._last_entry, self._has_line_ends, self._edits = 0, None, True, {}
        return Session(self._session, directory=self._directory, created_at=self._time)

    def _is_user_line(self, line: str) -> bool:
        self._detect_line_ends(line)
        return line.endswith(LINE_END) or not (self._has_line_ends or self._is_in_block)

    def _is_aider_line(self, line: str) -> bool:
        self._detect_line_ends(line)
        if not self._has_line_ends or line.endswith(LINE_END):
            return True
        # The first of several lines, directly below a line that is not the model's.
        return self._type in (USER_INPUT, SYSTEM_MESSAGE)

    def _detect_line_ends(self, line: str) -> None:
        """Tell from the first line of a session whether lines keep their trailing spaces."""
        if self._entry_count == 0 and self._type is None:
            self._has_line_ends = line.endswith(LINE_END)

    def _is_message_open(self) -> bool:
        return (
            self._type == SYSTEM_MESSAGE
            and self._has_line_ends
            and not self._lines[-1].endswith(LINE_END)
            and self._lines[-1] != ""
        )

    def _append(self, type: str, line: str) -> Iterator[Record]:
        if type != self._type or self._size > MAX_RECORD_BYTES:
            yield from self.flush()
        self._type = type
        self._lines.append(line)
        self._size += len(line) + 1
        if type == ASSISTANT_OUTPUT:
            if _SEARCH.fullmatch(line):
                self._is_in_block = True
            elif _REPLACE.fullmatch(line):
                self._is_in_block = False

    def _link_entry(self, entry: NewEntry) -> NewEntry:
        self._entry_count += 1
        id = _digest(self._session, str(self._entry_count), entry.type, entry.content)
        entry = entry._replace(id=id, parent=self._last_entry, created_at=self._time)
        self._last_entry = id
        return entry

    def _applied_edit(self, path: str) -> NewEntry:
        pieces = self._edits.pop(path, [])
        data: dict[str, Any] = {"path": path, "operation": "modify"}
        if pieces and all(not old.strip() for old, _ in pieces):
            data = edit_data.created(path, "".join(new for _, new in pieces))
        elif pieces:
            data = edit_data.replaced(path, pieces)
        return NewEntry(FILE_EDIT, path, data)


def _parse_blocks(lines: list[str]) -> dict[str, list[tuple[str, str]]]:
    """Return the SEARCH/REPLACE blocks of an answer by file, whose name stands above the block."""
    edits: dict[str, list[tuple[str, str]]] = {}
    path = ""
    old: list[str] | None = None
    new: list[str] | None = None
    for number, line in enumerate(lines):
        if _SEARCH.fullmatch(line):
            path = _file_name(lines[max(0, number - 3) : number]) or path
            old, new = [], None
        elif old is not None and new is None and _DIVIDER.fullmatch(line):
            new = []
        elif old is not None and new is not None and _REPLACE.fullmatch(line):
            edits.setdefault(path, []).append((_join(old), _join(new)))
            old = new = None
        elif new is not None:
            new.append(line)
        elif old is not None:
            old.append(line)
    return edits


def _file_name(lines: list[str]) -> str | None:
    for line in reversed(lines):
        name = line.strip()
        if _REPLACE.fullmatch(name):
            return None
        if name and not name.startswith("```") and not name.startswith("~~~"):
            return name.lstrip("# ").rstrip(":").strip("`*") or None
    return None


def _join(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _local_time(time: str) -> str | None:
    """Convert a time without a zone, which Aider writes; assume this machine's time zone."""
    try:
        return as_timestamp(datetime.fromisoformat(time).astimezone().isoformat())
    except (ValueError, OverflowError, OSError):
        return None


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:24]
