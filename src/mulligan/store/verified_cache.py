"""Remember which objects this process has verified, so that they are not read again.

An object that was read or written whole stays readable until its pack file changes. Our writers
only append, and report that by `extend`; any other change of the file's stat begins a new epoch,
which invalidates all records of earlier ones. Chunked objects are never recorded, because the
record says nothing about the chunks. The cache lives in memory only.
"""

from __future__ import annotations

import os

from mulligan.store.packs import Record

MAX_RECORDS = 1 << 14
"""Records in the current generation; the previous one is kept as well."""
Epoch = int
Stamp = tuple[int, int, int, int]


class VerifiedCache:
    """The objects that this process has read or written whole."""

    def __init__(self) -> None:
        self._epochs: dict[int, tuple[Stamp, Epoch]] = {}
        self._verified: dict[bytes, int] = {}
        self._previous: dict[bytes, int] = {}
        self._last_epoch = 0

    def epoch(self, pack: int, fd: int) -> Epoch:
        """Return the current epoch of an open pack."""
        stamp = _stamp(fd)
        known = self._epochs.get(pack)
        if known is not None and known[0] == stamp:
            return known[1]
        self._last_epoch += 1
        self._epochs[pack] = (stamp, self._last_epoch)
        return self._last_epoch

    def extend(self, pack: int, fd: int, epoch: Epoch) -> None:
        """Continue the epoch of a pack after our own append."""
        self._epochs[pack] = (_stamp(fd), epoch)

    def add(self, record: Record, epoch: Epoch) -> None:
        """Record an object as verified in this epoch of its pack."""
        if len(self._verified) >= MAX_RECORDS:
            self._previous, self._verified = self._verified, {}
        self._verified[record.id] = _location(record, epoch)

    def contains(self, record: Record, epoch: Epoch) -> bool:
        """True if the object was verified in this epoch, at this offset."""
        location = self._verified.get(record.id) or self._previous.get(record.id)
        return location == _location(record, epoch)


def _location(record: Record, epoch: Epoch) -> int:
    """Pack epoch and offset into an int, which Python's garbage collector does not track."""
    return epoch << 48 | record.offset


def _stamp(fd: int) -> Stamp:
    status = os.fstat(fd)
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
