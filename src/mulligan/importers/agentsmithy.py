"""Import AgentSmithy's `.agentsmithy/dialogs/<id>`: a database and a git repository each.

`journal.sqlite` holds the messages in LangChain's format and, by message index, the model's
reasoning and the edited files. `checkpoints/.git` holds a commit before each user message, which
names its commit. The first versions knew no approval and had one branch; later versions have
`main` for approved work and one branch per round. The commits of all branches are imported.

Messages have no times: a user message has the time of its commit, and those after it too.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
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
from mulligan.importers import edit_data
from mulligan.importers.claude_code.lines import text_of
from mulligan.importers.database import (
    Cell,
    UnreadableDatabase,
    decode_text,
    open_readonly,
    read_rows,
)
from mulligan.importers.folders import folders_in, is_plain_file, project_folders
from mulligan.importers.git_objects import Commit, Repository
from mulligan.importers.json_log import MAX_RECORD_BYTES, parse_object, read_json_file
from mulligan.importers.records import (
    CallEnded,
    Importer,
    InvalidRecord,
    Problem,
    ReadContent,
    Record,
    Session,
    Snapshot,
    SnapshotFile,
    Source,
    chain_entries,
)
from mulligan.importers.values import (
    as_dict,
    as_list,
    as_nonblank,
    as_str,
    as_timestamp,
    without_empty,
)

STATE: Final = ".agentsmithy"
DIALOGS: Final = "dialogs"
JOURNAL: Final = "journal.sqlite"
REPOSITORY: Final = os.path.join("checkpoints", ".git")
HEAD: Final = os.path.join(REPOSITORY, "HEAD")


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """Find the dialogs of the project around PWD: in PWD or above, up to a folder with `.git`.

    A source is the database of a dialog, or the HEAD of its repository if there is no database.
    """
    for folder in project_folders(environment, home):
        logs = [
            path
            for dialog in folders_in(os.path.join(folder, STATE, DIALOGS))
            if (path := _log_in(dialog)) is not None
        ]
        if logs:
            yield from map(Source, logs)
            return


def read(source: Source) -> Iterator[Record]:
    """Read one dialog: its messages, then its commits as snapshots."""
    folder = _dialog_folder(source)
    id = os.path.basename(folder)
    info = _dialog_info(folder, id)
    if isinstance(info, Problem):
        yield info
        info = {}
    created_at = as_timestamp(info.get("created_at"))
    yield Session(
        id,
        directory=_project(folder),
        title=as_nonblank(info.get("title")),
        created_at=created_at,
        updated_at=as_timestamp(info.get("updated_at")),
    )
    head = os.path.join(folder, HEAD)
    repository = Repository(os.path.join(folder, REPOSITORY))
    commits: list[Commit] = []
    for commit in _read_commits(repository):
        if isinstance(commit, Commit):
            commits.append(commit)
        else:
            yield Problem(head, 0, commit)
    dialog = _Dialog(source.path, created_at, commits)
    journal = os.path.join(folder, JOURNAL)
    if os.path.exists(journal):
        try:
            with open_readonly(journal) as connection:
                yield from dialog.messages(connection, id)
        except UnreadableDatabase as reason:
            yield Problem(journal, 0, str(reason))
    for commit in commits:
        yield from _snapshot(repository, commit, dialog, head)


def contents(source: Source) -> ReadContent:
    """Open the blobs of the dialog's repository."""
    return Repository(os.path.join(_dialog_folder(source), REPOSITORY)).blob


IMPORTER: Final = Importer("agentsmithy", find, read, contents)


class _Dialog:
    """Convert the messages of one dialog to entries."""

    def __init__(self, path: str, created_at: str | None, commits: Iterable[Commit]) -> None:
        self._path = path
        self._time = created_at
        self._last_entry: str | None = None
        self.commit_times = {commit.id: as_timestamp(commit.time) for commit in commits}
        self.commit_entries: dict[str, str] = {}  # the user message that follows each commit

    def messages(self, connection: apsw.Connection, id: str) -> Iterator[Record]:
        """Yield the entries of all messages, with reasoning before and edits after each."""
        columns, condition = ("id", "message"), "session_id = CAST(? AS TEXT) ORDER BY id"
        reasoning = _rows_by_message(connection, "dialog_reasoning", id)
        edits = _rows_by_message(connection, "dialog_file_edits", id)
        for index, row in enumerate(read_rows(connection, "message_store", columns, condition, id)):
            number = row.get("id")
            name = f"message-{number if isinstance(number, int) else index}"
            drafts: list[NewEntry | str] = list(map(_reasoning, reasoning.pop(index, ())))
            try:
                drafts += self._message(connection, name, row.get("message"))
            except InvalidRecord as reason:
                drafts.append(str(reason))
            drafts += map(_edit, edits.pop(index, ()))
            yield from self._link(name, drafts)
        # Rows whose message index does not exist.
        yield from self._link("late-thoughts", map(_reasoning, chain(*reasoning.values())))
        yield from self._link("late-edits", map(_edit, chain(*edits.values())))

    def _link(self, name: str, drafts: Iterable[NewEntry | str]) -> Iterator[Record]:
        """Yield drafts as a chain of entries; a text among them becomes a problem."""
        drafts = list(drafts)
        for reason in drafts:
            if isinstance(reason, str):
                yield Problem(self._path, 0, f"{name}: {reason}")
        entries = (draft for draft in drafts if isinstance(draft, NewEntry))
        for entry in chain_entries(name, self._last_entry, entries):
            self._last_entry = entry.id
            yield entry._replace(created_at=self._time)
            data = entry.data or {}
            if entry.type == TOOL_RESULT and data.get("call"):
                yield CallEnded(data["call"], ERROR if data["is_error"] else SUCCESS, entry.content)

    def _message(self, connection: apsw.Connection, name: str, message: Cell) -> list[NewEntry]:
        if not isinstance(message, bytes):
            raise InvalidRecord("The message is not text, or is too large.")
        value = parse_object(message)
        if isinstance(value, str):
            raise InvalidRecord(value)
        data = as_dict(value.get("data"))
        content = text_of(data.get("content"))
        match value.get("type"):
            case "human":
                info = as_dict(data.get("additional_kwargs"))
                commit = as_str(info.get("checkpoint"))
                self._time = self.commit_times.get(commit) or self._time
                self.commit_entries.setdefault(commit, name)
                round = without_empty(round=info.get("session"))
                return [NewEntry(USER_INPUT, content, round or None)]
            case "ai":
                calls = map(as_dict, as_list(data.get("tool_calls")))
                texts = [NewEntry(ASSISTANT_OUTPUT, content)] if content.strip() else []
                return texts + [_call(call) for call in calls]
            case "tool":
                call = as_str(data.get("tool_call_id"))
                result = without_empty(call=call, name=as_str(data.get("name")))
                result["is_error"] = data.get("status") == ERROR
                return [NewEntry(TOOL_RESULT, _stored_result(connection, call) or content, result)]
            case "system":
                return [NewEntry(SYSTEM_MESSAGE, content)]
        raise InvalidRecord(f"Unknown type of message: {value.get('type')!r}.")


def _call(call: dict[str, Any]) -> NewEntry:
    data = {"name": as_str(call.get("name")), "input": as_dict(call.get("args"))}
    return NewEntry(TOOL_CALL, "", {**data, "status": PENDING, "call": as_str(call.get("id"))})


def _stored_result(connection: apsw.Connection, call: str) -> str:
    """Return a tool's output, if the message only refers to the table of results."""
    try:
        condition = "tool_call_id = CAST(? AS TEXT) LIMIT 1"
        row = next(read_rows(connection, "tool_results", ("result_json",), condition, call), {})
    except UnreadableDatabase:
        return ""
    return _decompress(row.get("result_json"))


def _rows_by_message(
    connection: apsw.Connection, table: str, id: str
) -> dict[int, list[dict[str, Cell]]]:
    """Return the rows of a table by message index; empty if there is no such table."""
    names = ("content", "file", "diff", "message_index")
    condition = "dialog_id = CAST(? AS TEXT) ORDER BY id"
    by_message: dict[int, list[dict[str, Cell]]] = {}
    try:
        for row in read_rows(connection, table, names, condition, id):
            index = row.get("message_index")
            by_message.setdefault(index if isinstance(index, int) else -1, []).append(row)
    except UnreadableDatabase:
        return {}
    return by_message


def _reasoning(row: dict[str, Cell]) -> NewEntry:
    return NewEntry(ASSISTANT_OUTPUT, _decompress(row.get("content")), {"kind": "reasoning"})


def _edit(row: dict[str, Cell]) -> NewEntry | str:
    path, diff = decode_text(row.get("file")), _decompress(row.get("diff"))
    if not path:
        return "The edit names no file."
    operation = "modify"
    if "\n+++ /dev/null" in diff:
        operation = "delete"
    elif diff.startswith("--- /dev/null"):
        operation = "create"
    data = (
        edit_data.from_diff(path, operation, diff)
        if diff
        else {"path": path, "operation": operation}
    )
    return NewEntry(FILE_EDIT, "", data)


def _decompress(value: Cell) -> str:
    """Decode text that newer versions compress and older ones do not."""
    if not isinstance(value, bytes):
        return ""
    try:
        return zlib.decompressobj().decompress(value, MAX_RECORD_BYTES).decode(errors="replace")
    except zlib.error:
        return value.decode(errors="replace")


def _snapshot(
    repository: Repository, commit: Commit, dialog: _Dialog, log_path: str
) -> Iterator[Record]:
    files: list[SnapshotFile] = []
    try:
        for file in repository.files(commit.tree):
            if isinstance(file, SnapshotFile):
                files.append(file)
            else:
                reason = f"Commit {commit.id}: {file} is neither a file nor a symlink."
                yield Problem(log_path, 0, reason)
    except (InvalidRecord, OSError) as problem:
        yield Problem(log_path, 0, f"Commit {commit.id}: {problem}")
        return
    yield Snapshot(
        commit.id,
        commit.message,
        dialog.commit_times[commit.id],
        dialog.commit_entries.get(commit.id),
        tuple(files),
        log_path,
    )


def _read_commits(repository: Repository) -> Iterator[Commit | str]:
    """Yield all commits of all branches by time; an error text for an unreadable one.

    Parents come before children of the same time, by a depth-first walk with its own stack.
    """
    commits: dict[str, Commit] = {}
    seen: set[str] = set()
    parents_first: list[Commit] = []
    pending = [(id, False) for id in reversed(repository.heads())]
    while pending:
        id, are_parents_done = pending.pop()
        if are_parents_done:
            parents_first.append(commits[id])
        elif id not in seen:
            seen.add(id)
            try:
                commits[id] = repository.commit(id)
            except (InvalidRecord, OSError) as problem:
                yield str(problem)
                continue
            pending.append((id, True))
            pending += [(parent, False) for parent in reversed(commits[id].parents)]
    yield from sorted(parents_first, key=lambda commit: commit.time)


def _log_in(folder: str) -> str | None:
    paths = (os.path.join(folder, name) for name in (JOURNAL, HEAD))
    return next(filter(is_plain_file, paths), None)


def _dialog_folder(source: Source) -> str:
    """Return the dialog's folder, given its database or the HEAD of its repository."""
    return os.path.dirname(os.path.abspath(source.path)).removesuffix(os.sep + REPOSITORY)


def _project(folder: str) -> str | None:
    """Return the project whose `.agentsmithy` holds the dialog's folder."""
    state = os.path.dirname(os.path.dirname(folder))
    return os.path.dirname(state) if os.path.basename(state) == STATE else None


def _dialog_info(folder: str, id: str) -> dict[str, Any] | Problem:
    """Read a dialog's title and times from `index.json`; empty if there is none."""
    path = os.path.join(os.path.dirname(folder), "index.json")
    try:
        index = read_json_file(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        return Problem(path, 1, f"The file cannot be read: {error.strerror}.")
    if isinstance(index, Problem):
        return index
    dialogs = map(as_dict, as_list(index.get("dialogs")))
    return next((dialog for dialog in dialogs if dialog.get("id") == id), {})
