"""Aider: `.aider.chat.history.md`, one file a project, all of its sessions one after another.

It is a text for people. `# aider chat started at` begins a session, lines with `####` are what
the user typed, lines with `>` are what Aider said itself, and the rest is the model's. Aider ends
each line of the first two kinds with two blanks, which tells them from a heading or a quotation
of the model's, unless somebody's editor has taken them off.

There are no ids: they come from the content and its place in the session. The only time is the
one at which the session began.
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
from mulligan.importers import changes
from mulligan.importers.folders import given
from mulligan.importers.lines import LINE_LIMIT, moment, open_log
from mulligan.importers.records import Importer, Problem, Record, Session, Source

NAME: Final = ".aider.chat.history.md"
END: Final = "  "  # of a line that Aider wrote

_STARTED: Final = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d.*)")
_APPLIED: Final = re.compile(r"Applied edit to (.+)")
_MODEL: Final = re.compile(r"(?:Main model|Models?): (\S+) with ")
_SEARCH: Final = re.compile(r"<{5,9} SEARCH>?\s*")
_DIVIDER: Final = re.compile(r"={5,9}\s*")
_REPLACE: Final = re.compile(r">{5,9} REPLACE\s*")


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """The history of the project that PWD is in, since Aider keeps it there and nowhere else.

    It is looked for in PWD and above, up to the folder that holds a `.git`. Histories of other
    projects are not found: name them. AIDER_CHAT_HISTORY_FILE is honoured.
    """
    named = given(environment, "AIDER_CHAT_HISTORY_FILE", home)
    if named and os.path.isfile(named):
        yield Source(named)
        return
    folder = given(environment, "PWD", home)
    while folder:
        path = os.path.join(folder, NAME)
        if os.path.isfile(path) and not os.path.islink(path):
            yield Source(path)
            return
        above = os.path.dirname(folder)
        if above == folder or os.path.exists(os.path.join(folder, ".git")):
            return
        folder = above


def read(source: Source) -> Iterator[Record]:
    history = _History(os.path.dirname(os.path.abspath(source.path)))
    with open_log(source.path) as file:
        number = 0
        while line := file.readline(LINE_LIMIT + 1):
            number += 1
            if len(line) > LINE_LIMIT:
                yield Problem(source.path, number, f"The line is longer than {LINE_LIMIT} bytes.")
                while not line.endswith(b"\n") and (line := file.readline(LINE_LIMIT)):
                    pass
                continue
            try:
                text = line.decode()
            except UnicodeDecodeError:
                text = line.decode(errors="replace")
                yield Problem(source.path, number, "Not UTF-8; taken without what is not.")
            yield from history.take(text.rstrip("\r\n"))
    yield from history.flush()


IMPORTER: Final = Importer("aider", find, read, f"{NAME} in the project")


class _History:
    """One file as far as it was read."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._starts: Counter[str] = Counter()
        self._session = ""
        self._time: str | None = None
        self._count = 0
        self._last: str | None = None
        self._is_marked = True  # lines have their ends
        self._type: str | None = None  # of the lines that were gathered
        self._lines: list[str] = []
        self._size = 0
        self._is_in_block = False  # of a search and its replacement, which may hold anything
        self._edits: dict[str, list[tuple[str, str]]] = {}  # proposed and not applied yet

    def take(self, line: str) -> Iterator[Record]:
        if started := _STARTED.fullmatch(line):
            yield from self.flush()
            yield self._begin(line, started[1].strip())
            return
        if not self._session and line.strip():
            # What stands above the first beginning belongs to a session all the same.
            yield self._begin("", "")
        if self._is_open():
            # A message of several lines; only its first has the mark, only its last the end.
            yield from self._gather(SYSTEM_MESSAGE, line)
        elif line.startswith("#### ") and self._is_users(line):
            yield from self._gather(USER_INPUT, line[5:])
        elif line.startswith("> ") and not self._is_in_block and self._is_aiders(line):
            yield from self.flush()
            yield from self._gather(SYSTEM_MESSAGE, line[2:])
        elif line.strip() or self._type == ASSISTANT_OUTPUT:
            yield from self._gather(ASSISTANT_OUTPUT, line)
        else:
            yield from self.flush()

    def flush(self) -> Iterator[Record]:
        """What was gathered, as an entry."""
        type, lines = self._type, self._lines
        self._type, self._lines, self._size, self._is_in_block = None, [], 0, False
        if type is None:
            return
        if type == ASSISTANT_OUTPUT:
            content = "\n".join(lines).strip("\n")
            self._edits = _proposed(lines)
        else:
            content = "\n".join(line.rstrip() for line in lines)
        if type != SYSTEM_MESSAGE:
            yield self._entry(NewEntry(type, content))
            return
        if model := _MODEL.match(content):
            yield Session(self._session, model=model[1])
        if applied := _APPLIED.fullmatch(content):
            yield self._entry(self._applied(applied[1]))
        else:
            yield self._entry(NewEntry(SYSTEM_MESSAGE, content))

    def _begin(self, line: str, time: str) -> Session:
        self._starts[line] += 1
        self._session = "aider-" + _digest(line, str(self._starts[line]))
        self._time = _local(time)
        self._count, self._last, self._is_marked, self._edits = 0, None, True, {}
        return Session(self._session, directory=self._directory, created_at=self._time)

    def _is_users(self, line: str) -> bool:
        self._learn(line)
        return line.endswith(END) or not (self._is_marked or self._is_in_block)

    def _is_aiders(self, line: str) -> bool:
        self._learn(line)
        if not self._is_marked or line.endswith(END):
            return True
        # The first line of several, right below another that is not the model's.
        return self._type in (USER_INPUT, SYSTEM_MESSAGE)

    def _learn(self, line: str) -> None:
        """The first line of Aider's in a session shows whether lines have their ends."""
        if self._count == 0 and self._type is None:
            self._is_marked = line.endswith(END)

    def _is_open(self) -> bool:
        return (
            self._type == SYSTEM_MESSAGE
            and self._is_marked
            and not self._lines[-1].endswith(END)
            and self._lines[-1] != ""
        )

    def _gather(self, type: str, line: str) -> Iterator[Record]:
        if type != self._type or self._size > LINE_LIMIT:
            yield from self.flush()
        self._type = type
        self._lines.append(line)
        self._size += len(line) + 1
        if type == ASSISTANT_OUTPUT:
            if _SEARCH.fullmatch(line):
                self._is_in_block = True
            elif _REPLACE.fullmatch(line):
                self._is_in_block = False

    def _entry(self, entry: NewEntry) -> NewEntry:
        self._count += 1
        id = _digest(self._session, str(self._count), entry.type, entry.content)
        entry = entry._replace(id=id, parent=self._last, created_at=self._time)
        self._last = id
        return entry

    def _applied(self, path: str) -> NewEntry:
        pieces = self._edits.pop(path, [])
        data: dict[str, Any] = {"path": path, "operation": "modify"}
        if pieces and all(not old.strip() for old, _ in pieces):
            data = changes.created(path, "".join(new for _, new in pieces))
        elif pieces:
            data = changes.replaced(path, pieces)
        return NewEntry(FILE_EDIT, path, data)


def _proposed(lines: list[str]) -> dict[str, list[tuple[str, str]]]:
    """The search and replace blocks of an answer, by file: its name stands above the block."""
    edits: dict[str, list[tuple[str, str]]] = {}
    path = ""
    old: list[str] | None = None
    new: list[str] | None = None
    for number, line in enumerate(lines):
        if _SEARCH.fullmatch(line):
            path = _name_above(lines[max(0, number - 3) : number]) or path
            old, new = [], None
        elif old is not None and new is None and _DIVIDER.fullmatch(line):
            new = []
        elif old is not None and new is not None and _REPLACE.fullmatch(line):
            edits.setdefault(path, []).append((_joined(old), _joined(new)))
            old = new = None
        elif new is not None:
            new.append(line)
        elif old is not None:
            old.append(line)
    return edits


def _name_above(lines: list[str]) -> str | None:
    for line in reversed(lines):
        name = line.strip()
        if _REPLACE.fullmatch(name):
            return None
        if name and not name.startswith("```") and not name.startswith("~~~"):
            return name.lstrip("# ").rstrip(":").strip("`*") or None
    return None


def _joined(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _local(time: str) -> str | None:
    """Aider writes the time of the user's clock without saying where that is: here, we take it."""
    try:
        return moment(datetime.fromisoformat(time).astimezone().isoformat())
    except (ValueError, OverflowError, OSError):
        return None


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:24]
