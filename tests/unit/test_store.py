"""Test the object store: reading, deltas, crashes and garbage collection."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest

from mulligan.errors import Corrupt, MissingObject
from mulligan.store import index as indexing
from mulligan.store import writer as writing
from mulligan.store import zstd
from mulligan.store.gc import collect
from mulligan.store.objects import DELTA_DEPTH, Store
from mulligan.store.packs import CHUNKS, DELTA, RAW, frame_head
from mulligan.store.reachability import Root
from mulligan.store.verify import verify
from mulligan.store.writer import Writer

MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(str(tmp_path / "objects"))
    yield opened
    opened.close()


@pytest.fixture
def noise() -> random.Random:
    """Bytes that do not compress, the same at each run."""
    return random.Random(7)


def put(store: Store, *contents: bytes, base: bytes | None = None) -> list[bytes]:
    with Writer(store) as writer:
        ids = [writer.put(content, base=base) for content in contents]
        writer.commit()
    return ids


def put_stream(store: Store, content: bytes, base: bytes | None = None) -> bytes:
    with Writer(store) as writer:
        id, size = writer.put_stream(BytesIO(content).read, base=base)
        writer.commit()
    assert size == len(content)
    return id


def roots(*ids: bytes) -> list[Root]:
    return [Root("test", id, False) for id in ids]


def packs(store: Store) -> dict[str, int]:
    found = sorted(Path(store.directory).glob("*.pack"))
    return {pack.name: pack.stat().st_size for pack in found}


def assert_clean(store: Store, *ids: bytes) -> None:
    assert verify(store, roots(*ids)).problems == ()


SIZES = (0, 1, 63, 64, 65, 4096, MIB - 1, MIB, MIB + 1, 3 * MIB)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["noise", "text"])
def test_put_then_get_returns_the_content(
    store: Store, noise: random.Random, size: int, kind: str
) -> None:
    content = noise.randbytes(size) if kind == "noise" else (b"line of text\n" * size)[:size]
    [id] = put(store, content)
    assert id == sha256(content).digest()
    assert store.get(id) == content
    assert store.size(id) == size
    assert_clean(store, id)


@pytest.mark.parametrize("size", SIZES)
def test_a_streamed_content_can_be_read_whole_and_in_pieces(
    store: Store, noise: random.Random, size: int
) -> None:
    content = noise.randbytes(size)
    id = put_stream(store, content)
    assert id == sha256(content).digest()
    assert store.get(id) == content
    assert b"".join(store.stream(id)) == content
    assert_clean(store, id)


@pytest.mark.parametrize("before", [0, 1, 7, 8, 63, 64, 5000])
@pytest.mark.parametrize("after", [0, 7, 63, 64, 5000])
def test_any_earlier_version_may_be_the_base(
    store: Store, noise: random.Random, before: int, after: int
) -> None:
    old, new = noise.randbytes(before), noise.randbytes(after)
    [base] = put(store, old)
    [id] = put(store, new, base=base)
    assert store.get(base) == old
    assert store.get(id) == new


def test_a_missing_base_is_ignored(store: Store, noise: random.Random) -> None:
    content = noise.randbytes(5000)
    [id] = put(store, content, base=bytes(32))
    streamed = put_stream(store, content * 300, base=bytes(32))
    assert store.get(id) == content
    assert store.get(streamed) == content * 300


def test_the_same_content_is_stored_once(store: Store, noise: random.Random) -> None:
    content = noise.randbytes(100_000)
    put(store, content)
    before = packs(store)
    put(store, content, content)
    assert packs(store) == before


def test_a_stream_and_a_put_of_the_same_bytes_are_one_object(
    store: Store, noise: random.Random
) -> None:
    content = noise.randbytes(2 * MIB)
    assert put(store, content) == [put_stream(store, content)]
    assert_clean(store, sha256(content).digest())


def test_a_small_edit_of_a_small_file_costs_a_small_delta(
    store: Store, noise: random.Random
) -> None:
    content = noise.randbytes(200_000)
    [base] = put(store, content)
    before = sum(packs(store).values())
    [id] = put(store, content[:100_000] + b"!" + content[100_000:], base=base)
    assert store.locate(id).encoding == DELTA
    assert sum(packs(store).values()) - before < 1000


def test_chains_of_deltas_are_bounded(store: Store, noise: random.Random) -> None:
    content = noise.randbytes(20_000)
    [id] = put(store, content)
    versions = {id: content}
    for number in range(3 * DELTA_DEPTH):
        content = content + b"%d" % number
        [id] = put(store, content, base=id)
        versions[id] = content
    depths = [store.locate(each).depth for each in versions]
    assert max(depths) <= DELTA_DEPTH
    assert 0 in depths[DELTA_DEPTH:]
    for each, expected in versions.items():
        assert store.get(each) == expected


def test_a_byte_inserted_in_the_middle_of_a_large_file_costs_a_chunk(
    store: Store, noise: random.Random
) -> None:
    content = noise.randbytes(5_000_000)
    base = put_stream(store, content)
    before = sum(packs(store).values())
    edited = content[:2_500_000] + b"!" + content[2_500_000:]
    id = put_stream(store, edited, base)
    assert store.locate(id).encoding == CHUNKS
    assert store.get(id) == edited
    assert sum(packs(store).values()) - before < 300_000
    assert_clean(store, base, id)


def test_objects_do_not_exist_before_the_commit(store: Store) -> None:
    with Writer(store) as writer:
        id = writer.put(b"not yet")
        assert writer.has(id)
        assert not store.has(id)
    assert not store.has(id)
    with pytest.raises(MissingObject):
        store.get(id)


def test_a_rollback_truncates_the_packs(store: Store, noise: random.Random) -> None:
    [kept] = put(store, b"kept")
    before = packs(store)
    with Writer(store) as writer:
        for _ in range(3):
            writer.put(noise.randbytes(3 * MIB))
    assert packs(store) == before
    assert store.get(kept) == b"kept"
    put(store, b"more")
    assert_clean(store, kept)


def test_a_rollback_after_an_error_leaves_an_empty_store_empty(
    store: Store, noise: random.Random
) -> None:
    def put_and_fail() -> None:
        with Writer(store) as writer:
            writer.put(noise.randbytes(6 * MIB))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        put_and_fail()
    assert packs(store) == {}


def test_a_writer_starts_a_new_pack_when_one_is_full(
    store: Store, noise: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MAX_PACK_BYTES", 10_000)
    contents = [noise.randbytes(4000) for _ in range(9)]
    ids = put(store, *contents)
    assert len(packs(store)) > 2
    assert [store.get(id) for id in ids] == contents
    assert_clean(store, *ids)


KILLED_WRITER = """
import os, random, signal, sys
from mulligan.store.objects import Store
from mulligan.store.writer import Writer
noise = random.Random(3)
with Writer(Store(sys.argv[1])) as writer:
    for _ in range(5):
        writer.put(noise.randbytes(2 << 20))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_whole_records_of_a_killed_writer_are_indexed_and_used(store: Store) -> None:
    [kept] = put(store, b"kept")
    run = subprocess.run([sys.executable, "-c", KILLED_WRITER, store.directory], check=False)
    assert run.returncode == -9
    noise = random.Random(3)
    contents = [noise.randbytes(2 << 20) for _ in range(5)]
    left = sum(packs(store).values())
    ids = put(store, *contents)
    assert [store.get(id) for id in ids] == contents
    assert store.get(kept) == b"kept"
    assert sum(packs(store).values()) < left + sum(len(each) for each in contents[1:])
    assert_clean(store, kept, *ids)


@pytest.mark.parametrize("cut", [1, 20, 55, 56, 57, 2000, 4055])
def test_a_record_truncated_by_a_crash_is_stored_again(
    store: Store, noise: random.Random, cut: int
) -> None:
    [kept] = put(store, b"kept")
    content = noise.randbytes(4000)
    id = sha256(content).digest()
    torn = (frame_head(RAW, len(content), id, None, len(content)) + content)[:cut]
    [name] = packs(store)
    with open(os.path.join(store.directory, name), "ab") as pack:
        pack.write(torn)
    assert put(store, content) == [id]
    assert store.get(id) == content
    assert store.get(kept) == b"kept"
    assert_clean(store, kept, id)


def test_a_record_whose_bytes_never_reached_the_disk_is_stored_again(
    store: Store, noise: random.Random
) -> None:
    """After a power loss a file may have its length and header, and zeros for the rest."""
    put(store, b"kept")
    content = noise.randbytes(4000)
    id = sha256(content).digest()
    [name] = packs(store)
    with open(os.path.join(store.directory, name), "ab") as pack:
        pack.write(frame_head(RAW, len(content), id, None, 4000) + bytes(4000))
    put(store, content)
    assert store.get(id) == content
    assert_clean(store, id)


def test_a_lost_index_is_rebuilt(tmp_path: Path, noise: random.Random) -> None:
    directory = str(tmp_path / "objects")
    store = Store(directory)
    content = noise.randbytes(50_000)
    [base] = put(store, content)
    [delta] = put(store, content + b"!", base=base)
    large = put_stream(store, noise.randbytes(2 * MIB))
    expected = [store.get(id) for id in (base, delta, large)]
    store.close()
    for path in Path(directory).glob("index.sqlite*"):
        path.unlink()
    store = Store(directory)
    put(store, b"one more")
    assert [store.get(id) for id in (base, delta, large)] == expected
    assert_clean(store, base, delta, large)
    store.close()


@pytest.mark.parametrize("damage", ["not a database", "cut short", "empty"])
def test_a_damaged_index_is_rebuilt_from_the_packs(
    tmp_path: Path, noise: random.Random, damage: str
) -> None:
    directory = str(tmp_path / "objects")
    store = Store(directory)
    contents = [noise.randbytes(200) for _ in range(300)]
    ids = put(store, *contents)
    store.close()
    path = Path(directory) / "index.sqlite"
    good = path.read_bytes()
    path.write_bytes(
        {
            "not a database": b"x" * len(good),
            "cut short": good[:5000],
            "empty": b"",
        }[damage]
    )
    store = Store(directory)
    put(store, b"one more")
    assert [store.get(id) for id in ids] == contents
    store.close()


def test_gc_frees_unreachable_objects_and_keeps_the_rest(
    store: Store, noise: random.Random
) -> None:
    alive, dead = noise.randbytes(100_000), noise.randbytes(400_000)
    kept, gone = put(store, alive, dead)
    before = sum(packs(store).values())
    found = collect(store, roots(kept))
    assert found.removed == 1
    assert not store.has(gone)
    assert store.get(kept) == alive
    assert before - sum(packs(store).values()) == found.freed_bytes > 399_000
    assert_clean(store, kept)


def test_a_dry_run_frees_nothing(store: Store, noise: random.Random) -> None:
    kept, gone = put(store, b"kept", noise.randbytes(400_000))
    before = packs(store)
    found = collect(store, roots(kept), dry_run=True)
    assert (found.removed, found.freed_bytes > 399_000) == (1, True)
    assert packs(store) == before
    assert store.has(gone)


def test_gc_run_twice_changes_nothing_the_second_time(store: Store, noise: random.Random) -> None:
    kept, _gone = put(store, noise.randbytes(9000), noise.randbytes(9000))
    collect(store, roots(kept))
    before, generation = packs(store), store.index.summary().generation
    assert collect(store, roots(kept)).removed == 0
    assert (packs(store), store.index.summary().generation) == (before, generation)


def test_a_delta_can_be_read_after_its_base_was_collected(
    store: Store, noise: random.Random
) -> None:
    content = noise.randbytes(100_000)
    [base] = put(store, content)
    [delta] = put(store, content + b"!", base=base)
    [above] = put(store, content + b"!!", base=delta)
    assert store.locate(above).encoding == DELTA
    collect(store, roots(above))
    assert not store.has(base)
    assert not store.has(delta)
    assert store.get(above) == content + b"!!"
    assert_clean(store, above)


def test_a_delta_can_be_read_after_its_base_in_another_pack_was_collected(
    store: Store, noise: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MAX_PACK_BYTES", 1000)
    content = noise.randbytes(50_000)
    [base] = put(store, content)
    versions = [content + b"!" * number for number in range(1, 4)]
    ids = []
    for version in versions:
        ids += put(store, version, base=ids[-1] if ids else base)
    assert len({store.locate(id).pack for id in (base, *ids)}) > 1
    assert store.locate(ids[0]).encoding == DELTA
    collect(store, roots(*ids))
    assert [store.get(id) for id in ids] == versions
    assert_clean(store, *ids)


def test_deltas_survive_one_collection_after_another(
    store: Store, noise: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run drops the oldest versions, so bases move to newer packs than their deltas."""
    monkeypatch.setattr(writing, "MAX_PACK_BYTES", 30_000)
    content = noise.randbytes(20_000)
    versions: dict[bytes, bytes] = {}
    base: bytes | None = None
    for round in range(6):
        for number in range(4):
            content = content[:-10] + noise.randbytes(60)
            [base] = put(store, content, base=base)
            versions[base] = content
            other = noise.randbytes(3000 + number)
            versions[put(store, other)[0]] = other
        for id in noise.sample(list(versions), len(versions) // 2):
            del versions[id]
        collect(store, roots(*versions))
        assert {id: store.get(id) for id in versions} == versions, f"round {round}"
        assert_clean(store, *versions)


def test_chunks_shared_with_a_collected_version_stay(store: Store, noise: random.Random) -> None:
    content = noise.randbytes(3 * MIB)
    old = put_stream(store, content)
    edited = content[:MIB] + b"!" + content[MIB:]
    new = put_stream(store, edited, old)
    collect(store, roots(new))
    assert not store.has(old)
    assert store.get(new) == edited
    assert_clean(store, new)


def test_gc_frees_nothing_while_a_reachable_object_is_missing(
    store: Store, noise: random.Random
) -> None:
    kept, dead = put(store, b"kept", noise.randbytes(9000))
    before = packs(store)
    with pytest.raises(Corrupt, match="Nothing was freed"):
        collect(store, roots(kept, bytes(32)))
    assert packs(store) == before
    assert store.has(dead)


def test_the_generation_counts_removals_and_nothing_else(
    store: Store, noise: random.Random
) -> None:
    start = store.index.summary().generation
    kept, _gone = put(store, b"kept", noise.randbytes(9000))
    collect(store, roots(kept), dry_run=True)
    assert store.index.summary().generation == start
    collect(store, roots(kept))
    assert store.index.summary().generation > start


def test_a_killed_gc_has_changed_the_generation(
    store: Store, noise: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    [kept, gone] = put(store, noise.randbytes(3000), noise.randbytes(3000))
    start = store.index.summary().generation

    class Killed(BaseException):
        pass

    def killed() -> None:
        if store.index.summary().pending_delete:
            raise Killed

    monkeypatch.setattr(store.index, "purge", killed)
    with pytest.raises(Killed):
        collect(store, roots(kept))
    assert not store.has(gone)
    assert store.index.summary().generation != start


def test_a_killed_gc_leaves_no_unreadable_object_indexed(
    store: Store, noise: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer would count such an object as stored."""
    monkeypatch.setattr(writing, "MAX_PACK_BYTES", 30_000)
    version = noise.randbytes(20_000)
    [base] = put(store, version)
    [delta] = put(store, changed := b"!" + version[1:], base=base)
    [large] = put(store, noise.randbytes(28_000))
    put(store, b"?" + changed[1:], base=delta)
    streamed = put_stream(store, noise.randbytes(2 * MIB))
    real, left = writing.Writer.commit_moves, 0

    class Killed(BaseException):
        pass

    def commit_moves(writer: Writer, *given: int) -> None:
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        real(writer, *given)

    monkeypatch.setattr(writing.Writer, "commit_moves", commit_moves)
    for moves in range(3):
        left = moves
        with pytest.raises(Killed):
            collect(store, roots(large))
        assert verify(store, roots(large)).problems == ()
    monkeypatch.setattr(writing.Writer, "commit_moves", real)
    assert [store.has(id) for id in (base, delta, streamed)] == [False] * 3
    collect(store, roots(large))
    assert sum(packs(store).values()) < 30_000
    assert put(store, changed) == [delta]
    assert store.get(delta) == changed


def test_a_reader_with_a_stale_record_finds_a_delta_after_its_base_was_collected(
    store: Store, noise: random.Random
) -> None:
    versions = [noise.randbytes(100_000)]
    ids = put(store, versions[0])
    for number in range(4):
        versions.append(b"%d" % number + versions[-1][1:])
        ids += put(store, versions[-1], base=ids[-1])
    reader = Store(store.directory)
    reader.prefetch(ids[-1:])
    collect(store, roots(ids[-1]))
    assert reader.get(ids[-1]) == versions[-1]
    assert reader.damaged(ids[-1]) == []
    reader.close()


def test_a_process_with_a_deleted_index_open_opens_the_new_one(
    store: Store, noise: random.Random
) -> None:
    kept, content = noise.randbytes(3000), noise.randbytes(3000)
    ids = put(store, kept, content)
    generation = store.index.summary().generation
    for path in Path(store.directory).glob("index.sqlite*"):
        path.unlink()
    other = Store(store.directory)
    collect(other, roots(ids[0]))
    assert put(store, content) == ids[1:]
    assert store.index.summary().generation != generation
    other.repair()
    assert [other.get(id) for id in ids] == [kept, content]
    other.close()
    assert_clean(store, *ids)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc to see open files")
def test_a_pack_collected_by_another_process_is_closed(store: Store, noise: random.Random) -> None:
    kept, _gone = put(store, noise.randbytes(5_000), noise.randbytes(500_000))
    content = store.get(kept)
    other = Store(store.directory)
    collect(other, roots(kept))
    other.close()
    for _ in range(2):
        with Writer(store):
            pass
        assert store.get(kept) == content
    links = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    held = [os.readlink(link) for link in links if os.path.lexists(link)]
    assert not [each for each in held if each.startswith(store.directory) and "deleted" in each]


def test_readers_continue_during_gc(
    store: Store, noise: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MAX_PACK_BYTES", 200_000)
    contents = [noise.randbytes(5000) for _ in range(60)]
    large = noise.randbytes(2 * MIB)
    ids = put(store, *contents)
    streamed = put_stream(store, large)
    wrong: list[str] = []
    rounds = [0, 0]
    stop = threading.Event()

    def read(number: int, reader: Store) -> None:
        try:
            while not stop.is_set() or not rounds[number]:
                if [reader.get(id) for id in ids] != contents or reader.get(streamed) != large:
                    wrong.append("other bytes")
                rounds[number] += 1
        except Exception as problem:
            wrong.append(repr(problem))

    other = Store(store.directory)
    threads = [
        threading.Thread(target=read, args=(number, reader))
        for number, reader in enumerate((store, other))
    ]
    for thread in threads:
        thread.start()
    for _ in range(8):
        put(store, *[noise.randbytes(5000) for _ in range(30)])
        collect(store, roots(*ids, streamed))
    stop.set()
    for thread in threads:
        thread.join()
    other.close()
    assert wrong == []
    assert min(rounds) > 0
    assert_clean(store, *ids, streamed)


def test_a_reader_in_another_process_is_right_after_the_last_pack_was_collected(
    store: Store, noise: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold deleted packs open; new packs must not be mistaken for them."""
    monkeypatch.setattr(writing, "MAX_PACK_BYTES", 3000)
    reader = Store(store.directory)
    first, second, third = (noise.randbytes(4000) for _ in range(3))
    [kept] = put(store, first)
    [gone] = put(store, second)
    assert (reader.get(kept), reader.get(gone)) == (first, second)
    collect(store, roots(kept))
    [new] = put(store, third)
    assert (reader.get(kept), reader.get(new)) == (first, third)
    with pytest.raises(MissingObject):
        reader.get(gone)
    reader.close()


def test_threads_may_share_a_writer(store: Store, noise: random.Random) -> None:
    contents = [noise.randbytes(20_000) for _ in range(80)]
    with Writer(store) as writer:
        threads = [
            threading.Thread(target=lambda part: [writer.put(each) for each in part], args=(part,))
            for part in (contents, contents[::-1], contents[::2])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert writer.commit() == len(contents)
    ids = [sha256(each).digest() for each in contents]
    assert [store.get(id) for id in ids] == contents
    assert_clean(store, *ids)


@pytest.mark.parametrize("at", ["header", "identity", "payload"])
def test_verify_names_a_damaged_object_and_reading_it_raises(
    store: Store, noise: random.Random, at: str
) -> None:
    contents = [noise.randbytes(3000) for _ in range(3)]
    ids = put(store, *contents)
    record = store.locate(ids[1])
    [name] = packs(store)
    place = {"header": record.start, "identity": record.start + 30, "payload": record.offset + 50}
    with open(os.path.join(store.directory, name), "r+b") as pack:
        pack.seek(place[at])
        byte = pack.read(1)
        pack.seek(place[at])
        pack.write(bytes([byte[0] ^ 1]))
    found = verify(store, roots(*ids))
    assert ids[1].hex() in " ".join(problem.where for problem in found.problems)
    assert ids[1] in found.damaged
    assert ids[0] not in found.damaged
    if at == "payload":
        with pytest.raises(Corrupt):
            store.get(ids[1])
    assert [store.get(ids[0]), store.get(ids[2])] == [contents[0], contents[2]]


def test_an_intact_delta_of_a_damaged_base_is_not_dropped_with_it(
    store: Store, noise: random.Random
) -> None:
    """It can be read again once its base is stored again."""
    content = noise.randbytes(50_000)
    [base] = put(store, content)
    [delta] = put(store, content + b"!", base=base)
    assert store.locate(delta).encoding == DELTA
    [name] = packs(store)
    with open(os.path.join(store.directory, name), "r+b") as pack:
        pack.seek(store.locate(base).offset + 50)
        pack.write(b"damaged!")
    found = verify(store, roots(base, delta))
    assert found.problems
    store.index.drop(found.damaged)
    put(store, content)
    assert store.get(delta) == content + b"!"
    assert_clean(store, base, delta)


# The index caches the records of the last queries


def known(store: Store, *ids: bytes) -> set[bytes]:
    return set(store.index.find_many(ids))


def test_cached_records_are_dropped_when_another_process_collects_them(
    store: Store, noise: random.Random
) -> None:
    kept, gone = put(store, noise.randbytes(500), old := noise.randbytes(500))
    assert known(store, kept, gone) == {kept, gone}
    other = Store(store.directory)
    collect(other, roots(kept))
    other.close()
    assert known(store, kept, gone) == {kept}
    assert store.get(kept)
    assert put(store, old) == [gone]
    assert store.get(gone) == old


def test_cached_records_of_dropped_and_replaced_objects_are_dropped(
    store: Store, noise: random.Random
) -> None:
    (id,) = put(store, content := noise.randbytes(500))
    found = store.index.find_many([id])[id]
    store.index.drop([id])
    assert known(store, id) == set()
    put(store, content)
    anew = store.index.find_many([id])[id]
    assert anew.offset > found.offset
    with Writer(store) as writer:
        writer.copy(anew)
        writer.commit(replacing=True)
    assert store.index.find_many([id])[id].offset > anew.offset


def test_the_cache_keeps_the_row_that_was_indexed_first(store: Store, noise: random.Random) -> None:
    (id,) = put(store, noise.randbytes(500))
    first = store.index.find(id)
    assert first is not None
    store.index.find_many([id])
    (other,) = put(store, noise.randbytes(500))
    store.index.add([first._replace(offset=first.offset + 1)], {})
    assert store.index.find_many([id, other])[id] == first


def test_the_cache_of_records_is_bounded(
    store: Store, noise: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "MAX_CACHED_RECORDS", 10)
    ids = [id for _ in range(5) for id in put(store, *[noise.randbytes(90) for _ in range(7)])]
    for _ in range(2):
        assert known(store, *ids) == set(ids)
    assert all(len(store.get(id)) == 90 for id in ids)


LITTLE_MEMORY = """
import resource
from mulligan.store import zstd

frame = zstd.Compressor(19).compress(bytes(range(256)) * 40_000)
compressors = [zstd.Compressor(19) for _ in range(4)]
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (1 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for work in (lambda: zstd.decompress(frame), *(
    lambda each=each: each.compress(b"x" * 500_000) for each in compressors
)):
    try:
        work()
    except MemoryError:
        print("no memory")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")
def test_a_failed_allocation_is_not_reported_as_damage() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_MEMORY], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["no memory"] * 5


def test_verify_raises_memory_error_instead_of_reporting_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, b"a line\n" * 1000)

    class NoMemory:
        def __init__(self, **_given: object) -> None: ...

        def decompress(self, _frame: bytes) -> bytes:
            raise zstd.ZstdError("Unable to decompress: Allocation error : not enough memory")

    monkeypatch.setattr(zstd, "ZstdDecompressor", NoMemory)
    with pytest.raises(MemoryError):
        verify(store, [])
