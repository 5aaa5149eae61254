"""AgentSmithy: `.agentsmithy/dialogs/<id>` in the project, each a database and a git repository.

`journal.sqlite` holds the messages as LangChain writes them, and beside them, by the number of a
message, what the model thought and which files were edited. `checkpoints/.git` holds a commit
before each message; a message names its own. The first versions knew no approval and had one
branch; later ones have `main`, for what was approved, and one a round. All commits of all branches
are taken, so nothing that could be returned to is lost by where a branch stands.

Messages have no times: one of the user's has that of its commit, and those after it follow it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import apsw

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
from mulligan.importers import changes
from mulligan.importers.claude_code.lines import text_of
from mulligan.importers.database import Unreadable, Value, decoded, opened, rows
from mulligan.importers.folders import folders_in, given
from mulligan.importers.git_objects import Commit, Repository
from mulligan.importers.lines import LINE_LIMIT, json_file, mapping, moment, parse, sequence, string
from mulligan.importers.records import (
    Content,
    Ended,
    Held,
    Importer,
    Problem,
    Record,
    Session,
    Snapshot,
    Source,
)
from mulligan.importers.shapes import Untakeable, chained, filled, present

STATE: Final = ".agentsmithy"
DIALOGS: Final = "dialogs"
JOURNAL: Final = "journal.sqlite"
REPOSITORY: Final = os.path.join("checkpoints", ".git")
HEAD: Final = os.path.join(REPOSITORY, "HEAD")


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """The dialogs of the project that PWD is in, since AgentSmithy keeps them there.

    They are looked for in PWD and above, up to the folder that holds a `.git`. What is found is
    the database of a dialog, or the HEAD of its repository where there is none.
    """
    folder = given(environment, "PWD", home)
    while folder:
        found = [
            path
            for each in folders_in(os.path.join(folder, STATE, DIALOGS))
            for path in _logs(each)
        ]
        if found:
            yield from map(Source, found)
            return
        above = os.path.dirname(folder)
        if above == folder or os.path.exists(os.path.join(folder, ".git")):
            return
        folder = above


def read(source: Source) -> Iterator[Record]:
    """One dialog: what was said, then the commits."""
    folder = _folder(source)
    id = os.path.basename(folder)
    about = _about(folder, id)
    if isinstance(about, Problem):
        yield about
        about = {}
    dialog = _Dialog(source.path, moment(about.get("created_at")))
    yield Session(
        id,
        directory=_project(folder),
        title=filled(about.get("title")),
        created_at=moment(about.get("created_at")),
        updated_at=moment(about.get("updated_at")),
    )
    repository = Repository(os.path.join(folder, REPOSITORY))
    commits: list[Commit] = []
    for found in _commits(repository):
        if isinstance(found, Commit):
            commits.append(found)
        else:
            yield Problem(os.path.join(folder, HEAD), 0, found)
    dialog.times = {each.name: moment(each.time) for each in commits}
    journal = os.path.join(folder, JOURNAL)
    if os.path.exists(journal):
        try:
            with opened(journal) as connection:
                yield from dialog.messages(connection, id)
        except Unreadable as reason:
            yield Problem(journal, 0, str(reason))
    for commit in commits:
        yield from _snapshot(repository, commit, dialog, os.path.join(folder, HEAD))


def contents(source: Source) -> Content:
    """The files of commits, by the names that git has for them."""
    return Repository(os.path.join(_folder(source), REPOSITORY)).blob


IMPORTER: Final = Importer("agentsmithy", find, read, f"{STATE}/ in the project", contents)


class _Dialog:
    """One dialog as far as it was read."""

    def __init__(self, path: str, begun: str | None) -> None:
        self._path = path
        self._time = begun
        self._last: str | None = None
        self.times: dict[str, str | None] = {}  # of the commits
        self.entries: dict[str, str] = {}  # the messages that the commits were made before

    def messages(self, connection: apsw.Connection, id: str) -> Iterator[Record]:
        columns, condition = ("id", "message"), "session_id = CAST(? AS TEXT) ORDER BY id"
        thoughts = _beside(connection, "dialog_reasoning", id)
        edits = _beside(connection, "dialog_file_edits", id)
        for count, row in enumerate(rows(connection, "message_store", columns, condition, id)):
            number = row.get("id")
            name = f"message-{number if isinstance(number, int) else count}"
            said: list[NewEntry | str] = [_thought(each) for each in thoughts.pop(count, ())]
            try:
                said += self._said(connection, name, row.get("message"))
            except Untakeable as reason:
                said.append(str(reason))
            said += map(_edit, edits.pop(count, ()))
            yield from self._placed(name, said)
        # Of these nobody knows any more where they belong.
        late = [_thought(each) for left in thoughts.values() for each in left]
        yield from self._placed("late-thoughts", late)
        yield from self._placed(
            "late-edits", [_edit(each) for left in edits.values() for each in left]
        )

    def _placed(self, name: str, said: Iterable[NewEntry | str]) -> Iterator[Record]:
        """Entries one below the other; a text among them is why there is none."""
        said = list(said)
        for reason in said:
            if isinstance(reason, str):
                yield Problem(self._path, 0, f"{name}: {reason}")
        entries = (each for each in said if isinstance(each, NewEntry))
        for entry in chained(name, self._last, entries):
            self._last = entry.id
            yield entry._replace(created_at=self._time)
            data = entry.data or {}
            if entry.type == TOOL_RESULT and data.get("call"):
                yield Ended(data["call"], ERROR if data["is_error"] else SUCCESS, entry.content)

    def _said(self, connection: apsw.Connection, name: str, message: Value) -> list[NewEntry]:
        found = parse(message) if isinstance(message, bytes) else "It has no text, or too much."
        if isinstance(found, str):
            raise Untakeable(found)
        data = mapping(found.get("data"))
        content = text_of(data.get("content"))
        match found.get("type"):
            case "human":
                about = mapping(data.get("additional_kwargs"))
                commit = string(about.get("checkpoint"))
                self._time = self.times.get(commit) or self._time
                self.entries.setdefault(commit, name)
                return [NewEntry(USER_INPUT, content, present(round=about.get("session")) or None)]
            case "ai":
                calls = map(mapping, sequence(data.get("tool_calls")))
                said = [NewEntry(ASSISTANT_OUTPUT, content)] if content.strip() else []
                return said + [_call(call) for call in calls]
            case "tool":
                call = string(data.get("tool_call_id"))
                about = present(call=call, name=string(data.get("name")))
                about["is_error"] = data.get("status") == ERROR
                return [NewEntry(TOOL_RESULT, _result(connection, call) or content, about)]
            case "system":
                return [NewEntry(SYSTEM_MESSAGE, content)]
        raise Untakeable(f"Messages of the type {found.get('type')!r} are not known.")


def _call(call: dict[str, Any]) -> NewEntry:
    data = {"name": string(call.get("name")), "input": mapping(call.get("args"))}
    return NewEntry(TOOL_CALL, "", {**data, "status": PENDING, "call": string(call.get("id"))})


def _result(connection: apsw.Connection, call: str) -> str:
    """What a tool gave back, where the message only says that it is kept elsewhere."""
    try:
        condition = "tool_call_id = CAST(? AS TEXT) LIMIT 1"
        found = next(rows(connection, "tool_results", ("result_json",), condition, call), {})
    except Unreadable:
        return ""
    return _unpacked(found.get("result_json"))


def _beside(connection: apsw.Connection, table: str, id: str) -> dict[int, list[dict[str, Value]]]:
    """The rows of a table by the message that they belong to; none of a table that is not there."""
    names = ("content", "file", "diff", "message_index")
    found: dict[int, list[dict[str, Value]]] = {}
    try:
        for row in rows(connection, table, names, "dialog_id = CAST(? AS TEXT) ORDER BY id", id):
            number = row.get("message_index")
            found.setdefault(number if isinstance(number, int) else -1, []).append(row)
    except Unreadable:
        return {}
    return found


def _thought(row: dict[str, Value]) -> NewEntry:
    return NewEntry(ASSISTANT_OUTPUT, _unpacked(row.get("content")), {"kind": "reasoning"})


def _edit(row: dict[str, Value]) -> NewEntry | str:
    path, diff = decoded(row.get("file")), _unpacked(row.get("diff"))
    if not path:
        return "The edit names no file."
    operation = "modify"
    if "\n+++ /dev/null" in diff:
        operation = "delete"
    elif diff.startswith("--- /dev/null"):
        operation = "create"
    data = (
        changes.unified(path, operation, diff) if diff else {"path": path, "operation": operation}
    )
    return NewEntry(FILE_EDIT, "", data)


def _unpacked(value: Value) -> str:
    """A text that was compressed, or was not, in older versions."""
    if not isinstance(value, bytes):
        return ""
    try:
        return zlib.decompressobj().decompress(value, LINE_LIMIT).decode(errors="replace")
    except zlib.error:
        return value.decode(errors="replace")


def _snapshot(
    repository: Repository, commit: Commit, dialog: _Dialog, place: str
) -> Iterator[Record]:
    files: list[Held] = []
    try:
        for found in repository.files(commit.tree):
            if isinstance(found, Held):
                files.append(found)
            else:
                reason = f"Commit {commit.name}: {found} is neither a file nor a link."
                yield Problem(place, 0, reason)
    except (Untakeable, OSError) as problem:
        yield Problem(place, 0, f"Commit {commit.name}: {problem}")
        return
    yield Snapshot(
        commit.name,
        commit.message,
        dialog.times[commit.name],
        dialog.entries.get(commit.name),
        tuple(files),
        place,
    )


def _commits(repository: Repository) -> Iterator[Commit | str]:
    """All commits of all branches, parents before children; instead of one that is not, why."""
    known: dict[str, Commit] = {}
    seen: set[str] = set()
    ordered: list[Commit] = []
    pending = [(name, False) for name in reversed(repository.heads())]
    while pending:
        name, has_parents = pending.pop()
        if has_parents:
            ordered.append(known[name])
        elif name not in seen:
            seen.add(name)
            try:
                known[name] = repository.commit(name)
            except (Untakeable, OSError) as problem:
                yield str(problem)
                continue
            pending.append((name, True))
            pending += [(parent, False) for parent in reversed(known[name].parents)]
    yield from sorted(ordered, key=lambda commit: commit.time)


def _logs(folder: str) -> Iterator[str]:
    for name in (JOURNAL, HEAD):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and not os.path.islink(path):
            yield path
            return


def _folder(source: Source) -> str:
    """The dialog's folder, from its database or from the HEAD of its repository."""
    folder = os.path.dirname(os.path.abspath(source.path))
    is_repository = folder.endswith(os.sep + REPOSITORY)
    return folder.removesuffix(os.sep + REPOSITORY) if is_repository else folder


def _project(folder: str) -> str | None:
    """The project that a dialog is about: the one that its folder lies in."""
    state = os.path.dirname(os.path.dirname(folder))
    return os.path.dirname(state) if os.path.basename(state) == STATE else None


def _about(folder: str, id: str) -> dict[str, Any] | Problem:
    """What the list of dialogs says of one; nothing if there is no list."""
    path = os.path.join(os.path.dirname(folder), "index.json")
    try:
        index = json_file(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        return Problem(path, 1, f"The file cannot be read: {error.strerror}.")
    if isinstance(index, Problem):
        return index
    dialogs = map(mapping, sequence(index.get("dialogs")))
    return next((each for each in dialogs if each.get("id") == id), {})
