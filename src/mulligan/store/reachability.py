"""Find the objects that roots reach, and report missing and damaged ones.

Garbage collection relies on reachability alone: there are no reference counts that could be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

from mulligan.core import tree
from mulligan.errors import Corrupt
from mulligan.store.objects import Store
from mulligan.store.packs import CHUNKS

PROGRESS_OBJECTS = 4096


class Root(NamedTuple):
    """A reference from outside the store; `name` is for messages."""

    name: str
    id: bytes
    is_tree: bool


class Problem(NamedTuple):
    """A missing or damaged object, and the path that refers to it."""

    where: str
    detail: str


def reachable(
    store: Store,
    roots: Iterable[Root],
    problem: Callable[[Problem], None],
    progress: Callable[[int], None] = lambda count: None,
    seen: set[bytes] | None = None,
    bad: Container[bytes] = (),
) -> set[bytes]:
    """Return the ids of all objects that the roots reach, present or not.

    `seen` holds ids known to be reachable; it is extended and returned. A reference to an object in
    `bad`, known to be damaged, is reported to `problem`.
    """
    seen = set() if seen is None else seen
    for root in roots:
        pending = [(root.id, root.is_tree, b"")]
        while pending:
            id, is_tree, path = pending.pop()
            if id in seen:
                continue
            seen.add(id)
            if len(seen) % PROGRESS_OBJECTS == 0:
                progress(len(seen))
            try:
                if id in bad:
                    raise Corrupt("its content is damaged")
                if is_tree:
                    pending += [
                        (entry.id, entry.is_directory, tree.join(path, entry.name))
                        for entry in tree.decode(store.get(id))
                        if entry.id not in seen
                    ]
                else:
                    _add_chunks(store, id, seen)
            except Corrupt as damage:
                where = f"{root.name}:{path.decode(errors='backslashreplace')}"
                problem(Problem(where, str(damage)))
    return seen


def _add_chunks(store: Store, id: bytes, seen: set[bytes]) -> None:
    """Add the chunks of a file to `seen`; raise `MissingObject` if not all exist."""
    record = store.locate(id)
    if record.encoding == CHUNKS:
        seen.add(store.chunk_list_id(record))
        for chunk, _length in store.chunks(record):
            if chunk not in seen:
                seen.add(chunk)
                store.locate(chunk)
