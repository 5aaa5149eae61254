"""What the verbs on sessions answer with. Plain frozen values, as in `results`."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from typing import Any, NamedTuple

from mulligan.core.coverage import decode_lossy
from mulligan.workspace.results.files import RestoreResult, plain


class Session(NamedTuple):
    """One conversation with one agent. `leaf` is the entry where it stands."""

    id: str
    agent: str
    title: str
    model: str | None
    mode: str | None
    project: str
    directory: str | None
    status: str
    leaf: str | None
    memory: str
    auto_approve_commands: bool
    auto_approve_sensitive_edits: bool
    sensitive_file_patterns: dict[str, bool]
    forked_from: str | None
    source: str | None
    created_at: str
    updated_at: str

    def as_json(self) -> dict[str, Any]:
        found = plain(self)
        found["session"] = found.pop("id")
        return found


class SessionPage(NamedTuple):
    """Some sessions, newest first, and how to go on: by cursor, or by offset."""

    sessions: tuple[Session, ...]
    has_more: bool
    next_cursor: str | None
    next_offset: int | None

    def as_json(self) -> dict[str, Any]:
        return plain(self) | {"sessions": [each.as_json() for each in self.sessions]}


class Entry(NamedTuple):
    """One record of a session. `parent` is an entry's id; `branch` the seq its stretch began at."""

    id: str
    session: str
    seq: int
    parent: str | None
    type: str
    created_at: str
    content: str
    data: dict[str, Any] | None
    model: str | None
    checkpoint: str | None
    plan_item: str | None
    is_compacted: bool
    off_path: bool
    label: str | None
    branch: int

    def as_json(self) -> dict[str, Any]:
        found = plain(self)
        found["entry"] = found.pop("id")
        return found


class EntryPage(NamedTuple):
    """Some entries in order. `next_seq` is the cursor to go on from, where there is more."""

    entries: tuple[Entry, ...]
    has_more: bool
    next_seq: int | None

    def as_json(self) -> dict[str, Any]:
        return plain(self) | {"entries": [each.as_json() for each in self.entries]}


class Branch(NamedTuple):
    """An unforked stretch of a session's tree."""

    first: Entry
    last: Entry
    parent_entry: str | None
    entries: int
    active: bool

    def as_json(self) -> dict[str, Any]:
        return plain(self) | {"first": self.first.as_json(), "last": self.last.as_json()}


class Edit(NamedTuple):
    """Files that a tool is writing, and what they held before. Ids are SHA-256, in hex."""

    session: str
    paths: tuple[str, ...]
    before: tuple[tuple[str, str, str] | None, ...]
    """For each path its kind, its mode in octal and its content's id; `None` where none was."""

    def as_json(self) -> dict[str, Any]:
        return plain(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Edit":
        held = tuple(tuple(each) if each is not None else None for each in content["before"])
        return cls(content["session"], tuple(content["paths"]), held)


class Navigation(NamedTuple):
    """Where a session went, and what that did to the files.

    `text` is the user's message that was gone back before, for editing; `files` is the plan or
    the result, `None` where no file was to follow. `new_leaf` is `None` at the root, before the
    first entry. `operation` is what `undo(expect=…)` takes back, `None` where nothing moved.
    """

    session: str
    old_leaf: str | None
    new_leaf: str | None
    text: str | None
    summary_entry: str | None
    skip_files: bool
    preview: bool
    files: RestoreResult | None
    operation: int | None = None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class ModifiedFile(NamedTuple):
    """A file that differs between two entries, the turn that first touched it, and its entry."""

    path: str
    status: str
    turn: int | None
    entry: str | None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class FileDifference(NamedTuple):
    """One file at two entries. Contents are bytes; `unified` is the difference as text."""

    path: str
    old_content: bytes | None
    new_content: bytes | None
    old_hash: str | None
    new_hash: str | None
    unified: str

    def as_json(self) -> dict[str, Any]:
        found = plain(self)
        for name in ("old_content", "new_content"):
            content = getattr(self, name)
            found[name] = None if content is None else decode_lossy(content)
        return found
