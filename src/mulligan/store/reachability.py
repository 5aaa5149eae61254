"""What is reachable from some roots, and what of it is missing or damaged.

Reachability is the truth for garbage collection: there is no counter that could be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

from mulligan.core import tree
from mulligan.errors import Corrupt
from mulligan.store.objects import Store
from mulligan.store.packs import CHUNKS


class Root(NamedTuple):
    """Something outside the store that refers to an object; `name` is for messages."""

    name: str
    id: bytes
    is_tree: bool


class Problem(NamedTuple):
    """Something that is not as it must be."""

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
    """Every object that the roots refer to, directly or not, whether it is there or not.

    `seen` may hold what is known to be reachable already; it is added to, and given back. `bad`
    objects are known to be damaged: whatever refers to one is reported.
    """
    seen = set() if seen is None else seen
    for root in roots:
        pending = [(root.id, root.is_tree, b"")]
        while pending:
            id, is_tree, path = pending.pop()
            if id in seen:
                continue
            seen.add(id)
            if len(seen) % 4096 == 0:
                progress(len(seen))
            try:
                if id in bad:
                    raise Corrupt("its content is damaged")
                if is_tree:
                    for entry in tree.decode(store.get(id)):
                        if entry.id not in seen:
                            below = tree.join(path, entry.name)
                            pending.append((entry.id, entry.is_directory, below))
                    continue
                record = store.locate(id)
                if record.encoding == CHUNKS:
                    seen.add(store.chunk_list_id(record))
                    for chunk, _length in store.chunks(record):
                        if chunk not in seen:
                            seen.add(chunk)
                            store.locate(chunk)
            except Corrupt as damage:
                where = f"{root.name}:{path.decode(errors='backslashreplace')}"
                problem(Problem(where, str(damage)))
    return seen
