"""Delete objects that no root reaches.

1. Rewrite live deltas whose base is dead as full objects.
2. Drop the dead objects from the index, in one transaction.
3. For each affected pack: copy its live objects to a new pack and sync it; point the index to the
   copies, in one transaction; delete the old pack.

A kill between any two steps leaves every live object readable, and no unreadable one indexed. The
caller holds the project's lock; readers go on, and retry when a pack has moved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mulligan.errors import Corrupt
from mulligan.store.fsync import sync_directory
from mulligan.store.objects import Store
from mulligan.store.packs import MAGIC, Record, pack_name
from mulligan.store.reachability import Problem, Root, reachable
from mulligan.store.writer import Writer


class Collected(NamedTuple):
    """Counts of what was removed, or would be in a dry run."""

    removed: int
    freed_bytes: int
    kept: int


def collect(
    store: Store,
    roots: Iterable[Root],
    *,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda count: None,
) -> Collected:
    """Delete every object that no root reaches.

    Raises `Corrupt` if a reachable object is missing or damaged, because what it refers to is then
    unknown.
    """
    problems: list[Problem] = []
    if not dry_run:
        store.repair()
    live = reachable(store, roots, problems.append, progress)
    if problems:
        raise Corrupt(
            f"Nothing was freed: {problems[0].where} refers to an object that cannot be read "
            f"({problems[0].detail}). `mulligan verify` lists all such places."
        )
    empty: dict[int, list[Record]] = {number: [] for number in store.index.summary().packs}
    by_pack = empty | _records_by_pack(store)
    dead: set[bytes] = {
        record.id for records in by_pack.values() for record in records if record.id not in live
    }
    sizes = _pack_sizes(store, by_pack)
    affected = [
        number
        for number, records in by_pack.items()
        if not records
        or sum(record.length for record in records) + len(MAGIC) < sizes[number]
        or any(record.id in dead or record.base in dead for record in records)
    ]
    if dry_run:
        freed = sum(
            sizes[number]
            - sum(record.length for record in by_pack[number] if record.id not in dead)
            for number in affected
        )
        return Collected(len(dead), max(0, freed), len(live))
    with store.index.synced():
        _rewrite_orphaned_deltas(store, by_pack, dead)
        if dead:
            # In one transaction, so that no indexed delta lacks its base.
            store.index.drop(dead)
        by_pack = _records_by_pack(store)
        for number in affected:
            _rewrite_pack(store, number, by_pack.get(number, []))
    size_after = sum(_pack_sizes(store, store.index.summary().packs).values())
    return Collected(len(dead), max(0, sum(sizes.values()) - size_after), len(live))


def _records_by_pack(store: Store) -> dict[int, list[Record]]:
    by_pack: dict[int, list[Record]] = {}
    for record in store.index.all():
        by_pack.setdefault(record.pack, []).append(record)
    return by_pack


def _rewrite_orphaned_deltas(
    store: Store, by_pack: dict[int, list[Record]], dead: set[bytes]
) -> None:
    """Rewrite live deltas as full objects while their dead bases can still be read."""
    with Writer(store, fresh=True) as writer:
        for records in by_pack.values():
            for record in records:
                if record.base in dead and record.id not in dead:
                    writer.copy(record, whole=True)
        writer.commit(replacing=True)


def _rewrite_pack(store: Store, number: int, live: list[Record]) -> None:
    """Copy the live objects of a pack to a new one, and delete it."""
    with Writer(store, fresh=True) as writer:
        for record in live:
            writer.copy(record)
        writer.commit_moves(number)
    store.release(number)
    store.index.purge()
    sync_directory(store.directory)


def _pack_sizes(store: Store, packs: Iterable[int]) -> dict[int, int]:
    sizes = {}
    for number in packs:
        try:
            sizes[number] = os.path.getsize(os.path.join(store.directory, pack_name(number)))
        except FileNotFoundError:
            sizes[number] = 0
    return sizes
