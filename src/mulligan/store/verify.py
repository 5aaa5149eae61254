"""Verify the store: re-hash every object and check every reference."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from mulligan.core.ids import ObjectId
from mulligan.errors import Corrupt
from mulligan.store.objects import Store
from mulligan.store.packs import CHUNKS, MAGIC, RECORD_MAGIC, Record, pack_name
from mulligan.store.reachability import Problem, Root, reachable

PROGRESS_OBJECTS = 512


class Verified(NamedTuple):
    """Counts of what was read, and all problems."""

    objects: int
    bytes: int
    problems: tuple[Problem, ...]
    damaged: tuple[ObjectId, ...]
    unreadable_dependents: tuple[Record, ...]
    """Intact records whose delta base or chunk is damaged."""

    @property
    def clean(self) -> bool:
        return not self.problems


def verify(
    store: Store,
    roots: Iterable[Root],
    progress: Callable[[int], None] = lambda count: None,
) -> Verified:
    """Read every object from the disk, then follow every reference from the roots."""
    store.clear_cache()
    problems = list(_pack_problems(store))
    damaged: list[ObjectId] = []
    dependents: list[Record] = []
    count = total = 0
    bad: set[ObjectId] = set()
    for record in store.index.all():
        count += 1
        total += record.size
        if count % PROGRESS_OBJECTS == 0:
            progress(count)
        try:
            _verify_object(store, record)
        except Corrupt as problem:
            problems.append(Problem(f"object {record.id.hex()}", str(problem)))
            bad.add(record.id)
            if _depends_on_damaged(store, record):
                dependents.append(record)
            else:
                damaged.append(record.id)
    reachable(store, roots, problems.append, bad=bad)
    return Verified(count, total, tuple(problems), tuple(damaged), tuple(dependents))


def _pack_problems(store: Store) -> Iterator[Problem]:
    """Yield the packs in use that are missing or lack the header."""
    for number in sorted({record.pack for record in store.index.all()}):
        try:
            with open(os.path.join(store.directory, pack_name(number)), "rb") as pack:
                if pack.read(len(MAGIC)) != MAGIC:
                    yield Problem(pack_name(number), "has no pack header")
        except FileNotFoundError:
            yield Problem(pack_name(number), "is missing")


def _verify_object(store: Store, record: Record) -> None:
    """Read an object whole; raise `Corrupt` with the reason if it is damaged."""
    if store.head_of(record) != (
        RECORD_MAGIC, record.encoding, record.size, record.stored, record.id,
    ):  # fmt: skip
        raise Corrupt("index and pack disagree about it")
    digest, length = sha256(), 0
    for piece in store.stream(record.id):
        digest.update(piece)
        length += len(piece)
    if digest.digest() != record.id or length != record.size:
        raise Corrupt("its content does not match its id")
    if record.encoding == CHUNKS:
        for chunk, chunk_length in store.chunks(record):
            if store.size(chunk) != chunk_length:
                raise Corrupt("a chunk has another length than its list says")


def _depends_on_damaged(store: Store, record: Record) -> bool:
    """True if the record is intact, but its base or a chunk is damaged.

    Such an object is kept: it becomes readable when the other one is stored again.
    """
    try:
        store.head_of(record)
        if record.encoding == CHUNKS:
            return bool(store.chunk_list_id(record))
        return record.base is not None and bool(store.damaged(record.base))
    except Corrupt:
        return False
