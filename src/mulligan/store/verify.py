"""Re-reads and re-hashes everything, and checks every reference."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import NamedTuple

from mulligan.errors import Corrupt
from mulligan.store.objects import Store
from mulligan.store.packs import CHUNKS, MAGIC, RECORD_MAGIC, Record, pack_name
from mulligan.store.reachability import Problem, Root, reachable

Id = bytes


class Verified(NamedTuple):
    """What was looked at, and everything that was wrong."""

    objects: int
    bytes: int
    problems: tuple[Problem, ...]
    damaged: tuple[Id, ...]
    unreadable_dependents: tuple[Record, ...]
    """Objects that cannot be read only because one that they build on cannot."""

    @property
    def clean(self) -> bool:
        return not self.problems


def verify(
    store: Store,
    roots: Iterable[Root],
    progress: Callable[[int], None] = lambda count: None,
) -> Verified:
    """Reads every object of the store from the disk, then follows every reference to it."""
    store.clear_cache()
    problems: list[Problem] = []
    damaged: list[bytes] = []
    let_down: list[Record] = []
    count = total = 0
    used = {record.pack for record in store.index.all()}
    for number in sorted(used):
        path = os.path.join(store.directory, pack_name(number))
        try:
            with open(path, "rb") as pack:
                if pack.read(len(MAGIC)) != MAGIC:
                    problems.append(Problem(pack_name(number), "does not begin as a pack does"))
        except FileNotFoundError:
            problems.append(Problem(pack_name(number), "is missing"))
    bad: set[bytes] = set()
    for record in store.index.all():
        count += 1
        total += record.size
        if count % 512 == 0:
            progress(count)
        try:
            _examine(store, record)
        except Corrupt as problem:
            problems.append(Problem(f"object {record.id.hex()}", str(problem)))
            bad.add(record.id)
            if _depends_on_damaged(store, record):
                let_down.append(record)
            else:
                damaged.append(record.id)
    reachable(store, roots, problems.append, bad=bad)
    return Verified(count, total, tuple(problems), tuple(damaged), tuple(let_down))


def _examine(store: Store, record: Record) -> None:
    """Reads an object whole; raises `Corrupt` with what is wrong."""
    if store.head_of(record) != (
        RECORD_MAGIC, record.encoding, record.size, record.stored, record.id,
    ):  # fmt: skip
        raise Corrupt("the index and the pack disagree about it")
    digest, length = sha256(), 0
    for piece in store.stream(record.id):
        digest.update(piece)
        length += len(piece)
    if digest.digest() != record.id or length != record.size:
        raise Corrupt("its content does not match its identity")
    if record.encoding == CHUNKS:
        for chunk, chunk_length in store.chunks(record):
            if store.size(chunk) != chunk_length:
                raise Corrupt("a chunk is not as long as the list says")


def _depends_on_damaged(store: Store, record: Record) -> bool:
    """Whether an object cannot be read only because one that it builds on cannot.

    Such a one is kept: it will be whole again when the other is stored anew.
    """
    try:
        store.head_of(record)
        if record.encoding == CHUNKS:
            return bool(store.chunk_list_id(record))
        return record.base is not None and bool(store.damaged(record.base))
    except Corrupt:
        return False
