"""Re-reads and re-hashes everything, and checks every reference."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import NamedTuple

from mulligan.errors import Corrupt, MissingObject
from mulligan.store.objects import Store
from mulligan.store.packs import CHUNKS, MAGIC, RECORD, RECORD_MAGIC, Record, pack_name
from mulligan.store.reach import Problem, Root, reachable

Id = bytes


class Verified(NamedTuple):
    """What was looked at, and everything that was wrong."""

    objects: int
    bytes: int
    problems: tuple[Problem, ...]
    damaged: tuple[Id, ...]

    @property
    def clean(self) -> bool:
        return not self.problems


def verify(
    store: Store,
    roots: Iterable[Root],
    progress: Callable[[int], None] = lambda count: None,
) -> Verified:
    """Reads every object of the store from the disk, then follows every reference to it."""
    problems: list[Problem] = []
    damaged: list[bytes] = []
    count = total = 0
    for number in store.index.packs():
        path = os.path.join(store.directory, pack_name(number))
        try:
            with open(path, "rb") as pack:
                if pack.read(len(MAGIC)) != MAGIC:
                    problems.append(Problem(pack_name(number), "does not begin as a pack does"))
        except FileNotFoundError:
            problems.append(Problem(pack_name(number), "is missing"))
    for record in store.index.all():
        count += 1
        total += record.size
        if count % 512 == 0:
            progress(count)
        detail = _examine(store, record)
        if detail is not None:
            problems.append(Problem(f"object {record.id.hex()}", detail))
            damaged.append(record.id)
    reachable(store, roots, problems.append)
    return Verified(count, total, tuple(problems), tuple(damaged))


def _examine(store: Store, record: Record) -> str | None:
    try:
        head = os.pread(store._pack(record.pack), RECORD.size, record.start)
        expected = (RECORD_MAGIC, record.encoding, record.size, record.stored, record.id)
        if len(head) < RECORD.size or RECORD.unpack(head) != expected:
            return "the index and the pack disagree about it"
        digest, length = sha256(), 0
        for piece in store.stream(record.id):
            digest.update(piece)
            length += len(piece)
        if digest.digest() != record.id or length != record.size:
            return "its content does not match its identity"
        if record.encoding == CHUNKS:
            for chunk, chunk_length in store.chunks(record):
                if store.size(chunk) != chunk_length:
                    return "a chunk is not as long as the list says"
    except (Corrupt, MissingObject) as problem:
        return str(problem)
    except FileNotFoundError:
        return f"its pack {pack_name(record.pack)} is missing"
    return None
