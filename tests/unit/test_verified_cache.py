"""Test that verified objects are not read again until their pack changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from mulligan.store.objects import Store
from mulligan.store.packs import Record, pack_name
from mulligan.store.writer import Writer

FIRST = os.urandom(3000)
SECOND = FIRST + b" and more"


def put(store: Store, content: bytes, base: bytes | None = None) -> bytes:
    with Writer(store) as writer:
        id = writer.put(content, base=base)
        writer.commit()
    return id


def damage(store: Store, id: bytes) -> None:
    record = store.locate(id)
    with open(os.path.join(store.directory, pack_name(record.pack)), "r+b") as pack:
        pack.seek(record.offset + record.stored // 2)
        pack.write(b"damaged")


def damaged_among(store: Store, *ids: bytes) -> list[bytes]:
    return store.damaged_among(ids, store.prefetch(ids))


class RecordingStore(Store):
    """A store that records which objects are read."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.read: list[bytes] = []

    def payload(self, record: Record) -> bytes:
        self.read.append(record.id)
        return super().payload(record)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordingStore]:
    opened = RecordingStore(str(tmp_path / "objects"))
    yield opened
    opened.close()


def test_a_written_object_is_not_read_again(store: RecordingStore) -> None:
    first = put(store, FIRST)
    second = put(store, SECOND, base=first)
    store.clear_cache()
    store.read.clear()
    assert damaged_among(store, first, second) == []
    assert store.read == []


def test_an_object_is_read_once(tmp_path: Path, store: RecordingStore) -> None:
    first = put(store, FIRST)
    other = RecordingStore(store.directory)
    assert damaged_among(other, first) == []
    assert other.read == [first]
    other.clear_cache()
    assert damaged_among(other, first) == []
    assert other.read == [first]
    other.close()


def test_damage_is_found_while_the_content_is_cached(store: RecordingStore) -> None:
    first = put(store, FIRST)
    assert store.get(first) == FIRST
    damage(store, first)
    assert damaged_among(store, first) == [first]


def test_damage_of_a_delta_base_is_found(store: RecordingStore) -> None:
    first = put(store, FIRST)
    second = put(store, SECOND, base=first)
    assert store.locate(second).base == first
    damage(store, first)
    assert damaged_among(store, second) == [second]


def test_a_truncated_or_deleted_pack_is_found(store: RecordingStore) -> None:
    first = put(store, FIRST)
    path = os.path.join(store.directory, pack_name(store.locate(first).pack))
    os.truncate(path, 100)
    assert damaged_among(store, first) == [first]
    store.release(store.locate(first).pack)
    os.unlink(path)
    assert damaged_among(store, first) == [first]


def test_an_append_by_another_process_begins_a_new_epoch(store: RecordingStore) -> None:
    first = put(store, FIRST)
    other = Store(store.directory)
    put(other, SECOND)
    other.close()
    store.read.clear()
    assert damaged_among(store, first) == []
    assert store.read == [first]


def test_an_object_that_is_not_indexed_is_damaged(store: RecordingStore) -> None:
    missing = sha256(b"nowhere").digest()
    assert damaged_among(store, missing) == [missing]


def test_the_cache_is_bounded_to_two_generations(
    store: RecordingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mulligan.store.verified_cache.MAX_RECORDS", 2)
    ids = [put(store, os.urandom(200)) for _ in range(7)]
    store.clear_cache()
    store.read.clear()
    assert damaged_among(store, *ids) == []
    # The current generation and the previous one are kept.
    assert store.read == ids[:4]


def test_damage_while_a_writer_is_open_is_found(store: RecordingStore) -> None:
    first = put(store, FIRST)
    with Writer(store) as writer:
        second = writer.put(SECOND)
        damage(store, first)
        writer.commit()
        third = writer.put(SECOND + b" still")
        writer.commit()
    assert damaged_among(store, first, second, third) == [first]
