"""Read and make trees and contents, before they are committed."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core import tree
from mulligan.core.ids import ObjectId
from mulligan.core.tree import Change, Entry, Tree
from mulligan.store.writer import Writer
from mulligan.workspace.open_project import OpenProject

Id = bytes


class Trees:
    """The objects of the store, and those that a writer is about to add."""

    def __init__(self, project: OpenProject, writer: Writer) -> None:
        self._project = project
        self._writer = writer
        self._made: dict[Id, Tree] = {}
        self._contents: dict[Id, bytes] = {}

    def commit(self) -> None:
        """Make all objects written so far readable from the store."""
        self._writer.commit()

    def load(self, id: Id) -> Tree:
        made = self._made.get(id)
        return made if made is not None else self._project.load(id)

    def find(self, root: Id, path: bytes) -> Entry | None:
        return tree.find(root, path, self.load)

    def read(self, entry: Entry) -> bytes:
        content = self._contents.get(entry.id)
        return content if content is not None else self._project.store.get(entry.id)

    def with_content(self, entry: Entry, content: bytes) -> Entry:
        """Store a new content, and return the file's entry with it."""
        id = self._writer.put(content, base=entry.id)
        self._contents[id] = content
        return entry._replace(id=id, size=len(content))

    def edit(self, root: Id, changes: Mapping[bytes, Entry | None]) -> Id:
        return tree.edit(ObjectId(root), changes, self.load, self._save) if changes else root

    def differences(self, before: Id, after: Id) -> list[Change]:
        return self._project.differences(before, after, self.load)

    def _save(self, data: bytes, old: Id | None, entries: Tree) -> ObjectId:
        id = self._writer.put(data, base=old)
        self._made[id] = entries
        return id
