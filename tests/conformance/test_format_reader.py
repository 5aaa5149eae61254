"""The format can be read by somebody who has its description and nothing of Mulligan.

What follows is such a reader: it finds the latest checkpoint in the journal, scans the packs
without their index, and writes the whole tree into a directory.
"""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
import struct
import sys
from pathlib import Path

from acts import picture, run, write

import mulligan

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


class Reader:
    def __init__(self, data: Path) -> None:
        self.journal = sqlite3.connect(f"file:{data / 'journal.sqlite'}?mode=ro", uri=True)
        self.records: dict[bytes, tuple[int, int, bytes | None, bytes]] = {}
        for pack in sorted((data / "objects").glob("*.pack")):
            self._scan(pack.read_bytes())

    def _scan(self, pack: bytes) -> None:
        assert pack.startswith(b"MULLIGAN PACK 1\n")
        at = 16
        while at + 56 <= len(pack):
            magic, encoding, size, stored, id = struct.unpack_from("<4sB3xQQ32s", pack, at)
            assert magic == b"MulO"
            at += 56
            base = None
            if encoding == 2:
                base, at = pack[at : at + 32], at + 32
            self.records[id] = (encoding, size, base, pack[at : at + stored])
            at += stored
        assert at == len(pack)

    def content(self, id: bytes) -> bytes:
        encoding, size, base, payload = self.records[id]
        if encoding == 0:
            found = payload
        elif encoding == 1:
            found = zstd.decompress(payload)
        elif encoding == 2:
            assert base is not None
            prefix = zstd.ZstdDict(self.content(base), is_raw=True).as_prefix
            found = zstd.decompress(payload, zstd_dict=prefix)
        else:
            chunks = list(struct.iter_unpack("<32sI", self.content(payload)))
            found = b"".join(self.content(chunk) for chunk, _length in chunks)
            assert [len(self.content(chunk)) for chunk, _ in chunks] == [n for _, n in chunks]
        assert len(found) == size and hashlib.sha256(found).digest() == id
        return found

    def latest(self) -> bytes:
        row = self.journal.execute("SELECT tree FROM checkpoints ORDER BY seq DESC LIMIT 1")
        return bytes(row.fetchone()[0])

    def extract(self, tree: bytes, into: bytes) -> None:
        os.makedirs(into, exist_ok=True)
        for record in self.content(tree).split(b"\0")[:-1]:
            kind, mode, _files, _bytes, id, name = record.split(b" ", 5)
            path, digest = os.path.join(into, name), bytes.fromhex(id.decode())
            if kind == b"d":
                self.extract(digest, path)
            elif kind == b"l":
                os.symlink(self.content(digest), path)
                continue
            else:
                with open(path, "wb") as file:
                    file.write(self.content(digest))
            os.chmod(path, int(mode, 8))


def test_an_independent_reader_extracts_the_latest_checkpoint_from_the_packs(
    project: Path, mulligan_home: Path, tmp_path: Path
) -> None:
    chance = random.Random(7)
    large = bytearray(chance.randbytes(3 << 20))
    with mulligan.open(project) as workspace:
        for number in range(12):
            large[chance.randrange(len(large))] ^= 1
            text = "".join(f"line {line} of {number if line == 40 else 0}\n" for line in range(400))
            write(project, {"edited.py": text, "large": bytes(large), "d/e/f": f"{number}"})
            write(project, {f"many/{each}": f"{each}\n" for each in range(number * 5)})
            workspace.checkpoint()
        write(project, {"random": chance.randbytes(2000), os.fsdecode(b"odd\xff\n"): "x"})
        (project / "link").symlink_to("d/e")
        (project / "empty").mkdir()
        (project / "d/e/f").chmod(0o750)
        workspace.checkpoint()
        (data,) = mulligan_home.glob("projects/*")
        reader = Reader(data)
        assert {record[0] for record in reader.records.values()} == {0, 1, 2, 3}
        reader.extract(reader.latest(), os.fsencode(tmp_path / "extracted"))
    assert picture(tmp_path / "extracted") == picture(project)


def test_an_independent_reader_follows_what_the_garbage_collector_moved(
    project: Path, mulligan_home: Path, tmp_path: Path
) -> None:
    with mulligan.open(project) as workspace:
        for number in range(12):
            write(project, {"edited": "same line\n" * 500 + f"{number}\n", "own": f"{number}" * 90})
            workspace.checkpoint()
        run(project, "rm own")
        workspace.checkpoint()
        workspace.maintenance.forget(keep_last=1)
        assert workspace.maintenance.gc().removed > 0
    (data,) = mulligan_home.glob("projects/*")
    reader = Reader(data)
    reader.extract(reader.latest(), os.fsencode(tmp_path / "extracted"))
    assert picture(tmp_path / "extracted") == picture(project)
