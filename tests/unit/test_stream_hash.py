"""Test the hash of a stream that a worker thread computes."""

from __future__ import annotations

import os
import threading
from contextlib import closing
from hashlib import sha256
from io import BytesIO

import pytest

from mulligan.store.stream_hash import QUEUED_PIECES, HashingReader

CONTENT = os.urandom(300_000)


def read_all(source: HashingReader, size: int) -> bytes:
    pieces = []
    while piece := source.read(size):
        pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("size", [1_000, 70_000, 1 << 20])
def test_the_digest_covers_all_bytes_read(size: int) -> None:
    with closing(HashingReader(BytesIO(CONTENT).read)) as source:
        assert read_all(source, size) == CONTENT
    assert source.digest == sha256(CONTENT).digest()


def test_the_digest_of_an_empty_stream() -> None:
    with closing(HashingReader(BytesIO(b"").read)) as source:
        assert source.read(10) == b""
    assert source.digest == sha256(b"").digest()


def test_without_a_free_thread_the_digest_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with closing(HashingReader(BytesIO(CONTENT).read)) as source:
        read_all(source, 1_000)
    assert source.digest == sha256(CONTENT).digest()


def test_a_failed_read_leaves_no_thread_behind() -> None:
    before = threading.active_count()

    def fail() -> None:
        with closing(HashingReader(BytesIO(CONTENT).read)) as source:
            for _ in range(3 * QUEUED_PIECES):
                source.read(1_000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert threading.active_count() == before
