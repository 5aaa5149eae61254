"""What was read or written whole is not read again, unless its pack was changed by somebody."""

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


class Reading(Store):
    """A store that tells what was read of it."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.read: list[bytes] = []

    def payload(self, record: Record) -> bytes:
        self.read.append(record.id)
        return super().payload(record)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Reading]:
    found = Reading(str(tmp_path / "objects"))
    yield found
    found.close()


def test_what_was_just_written_is_not_read_again(store: Reading) -> None:
    first = put(store, FIRST)
    second = put(store, SECOND, base=first)
    store.clear_cache()
    store.read.clear()
    assert damaged_among(store, first, second) == []
    assert store.read == []


def test_what_was_read_once_is_not_read_again(tmp_path: Path, store: Reading) -> None:
    first = put(store, FIRST)
    other = Reading(store.directory)
    assert damaged_among(other, first) == []
    assert other.read == [first]
    other.clear_cache()
    assert damaged_among(other, first) == []
    assert other.read == [first]
    other.close()


def test_damage_is_found_though_the_content_is_still_in_memory(store: Reading) -> None:
    first = put(store, FIRST)
    assert store.get(first) == FIRST
    damage(store, first)
    assert damaged_among(store, first) == [first]


def test_damage_of_what_an_object_builds_on_is_found(store: Reading) -> None:
    first = put(store, FIRST)
    second = put(store, SECOND, base=first)
    assert store.locate(second).base == first
    damage(store, first)
    assert damaged_among(store, second) == [second]


def test_a_pack_that_is_cut_short_or_gone_is_found(store: Reading) -> None:
    first = put(store, FIRST)
    path = os.path.join(store.directory, pack_name(store.locate(first).pack))
    os.truncate(path, 100)
    assert damaged_among(store, first) == [first]
    store.release(store.locate(first).pack)
    os.unlink(path)
    assert damaged_among(store, first) == [first]


def test_what_others_append_makes_us_read_again_and_finds_nothing(store: Reading) -> None:
    first = put(store, FIRST)
    other = Store(store.directory)
    put(other, SECOND)
    other.close()
    store.read.clear()
    assert damaged_among(store, first) == []
    assert store.read == [first]


def test_what_is_not_listed_is_damaged(store: Reading) -> None:
    missing = sha256(b"nowhere").digest()
    assert damaged_among(store, missing) == [missing]


def test_only_so_much_is_remembered(store: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mulligan.store.verified_cache.MAX_RECORDS", 2)
    ids = [put(store, os.urandom(200)) for _ in range(7)]
    store.clear_cache()
    store.read.clear()
    assert damaged_among(store, *ids) == []
    # Not all at once: the newest, and as many as are remembered of those before them.
    assert store.read == ids[:4]


def test_damage_while_somebody_is_about_to_write_is_found(store: Reading) -> None:
    first = put(store, FIRST)
    with Writer(store) as writer:
        second = writer.put(SECOND)
        damage(store, first)
        writer.commit()
        third = writer.put(SECOND + b" still")
        writer.commit()
    assert damaged_among(store, first, second, third) == [first]
