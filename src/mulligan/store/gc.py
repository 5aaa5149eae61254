"""Garbage collection: frees what nothing reaches.

First, living deltas are written out whole where their base is dead, and one transaction of the
index forgets the dead. Then, pack by pack: what is alive is copied to a new pack, which is synced;
another transaction lets the copies take the place of the originals; then the old pack is deleted.
A kill between any two steps leaves every living object readable, and nothing listed that is not.
The caller holds the project's lock; readers go on, and look again when a pack has moved under them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mulligan.errors import Corrupt
from mulligan.store.fsync import sync_directory
from mulligan.store.objects import Store
from mulligan.store.packs import Record, pack_name
from mulligan.store.reachability import Problem, Root, reachable
from mulligan.store.writer import Writer


class Collected(NamedTuple):
    """What was removed, or would be."""

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
    """Frees every object that no root reaches.

    Refuses with `Corrupt` while anything reachable is missing or damaged: then the picture of
    what is alive is not complete, and nothing may be freed on the strength of it.
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
    by_pack: dict[int, list[Record]] = {number: [] for number in store.index.summary().packs}
    dead: set[bytes] = set()
    for record in store.index.all():
        by_pack.setdefault(record.pack, []).append(record)
        if record.id not in live:
            dead.add(record.id)
    size = _sizes(store, by_pack)
    affected = [
        number
        for number, found in by_pack.items()
        if not found
        or sum(record.length for record in found) + 16 < size.get(number, 0)
        or any(record.id in dead or record.base in dead for record in found)
    ]
    if dry_run:
        freed = sum(
            size.get(number, 0)
            - sum(record.length for record in by_pack[number] if record.id not in dead)
            for number in affected
        )
        return Collected(len(dead), max(0, freed), len(live))
    before = sum(size.values())
    with store.index.synced():
        _write_out(store, [each for found in by_pack.values() for each in found], dead)
        if dead:
            # All at once: what is listed must not build on something that went before it.
            store.index.drop(dead)
        by_pack = {}
        for record in store.index.all():
            by_pack.setdefault(record.pack, []).append(record)
        for number in affected:
            _rewrite(store, number, by_pack.get(number, []))
    return Collected(len(dead), max(0, before - sum(_sizes(store, None).values())), len(live))


def _write_out(store: Store, records: list[Record], dead: set[bytes]) -> None:
    """Writes living deltas out whole while the dead bases that they need are still there."""
    orphans = [each for each in records if each.base in dead and each.id not in dead]
    with Writer(store, fresh=True) as writer:
        for record in orphans:
            writer.copy(record, whole=True)
        writer.commit(replacing=True)


def _rewrite(store: Store, number: int, living: list[Record]) -> None:
    with Writer(store, fresh=True) as writer:
        for record in living:
            writer.copy(record)
        writer.commit_moves(number)
    store.release(number)
    store.index.purge()
    sync_directory(store.directory)


def _sizes(store: Store, packs: Iterable[int] | None) -> dict[int, int]:
    sizes = {}
    for number in store.index.summary().packs if packs is None else packs:
        try:
            sizes[number] = os.path.getsize(os.path.join(store.directory, pack_name(number)))
        except FileNotFoundError:
            sizes[number] = 0
    return sizes
