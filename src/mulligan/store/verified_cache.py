"""Which objects can surely be read, without reading them again.

An object that was read or written whole can be had back for as long as nobody changes its pack.
Packs only grow, and only by our own writers, who say so here; any other change of a pack's file
begins a new era of it, and what is known of earlier eras counts no more. Of a large object, which
is a list of others, nothing follows from this. Nothing of it outlives the process.
"""

from __future__ import annotations

import os

from mulligan.store.packs import Record

MAX_RECORDS = 1 << 14
"""So many are remembered, and as many of those noted before them."""
Epoch = int
Stamp = tuple[int, int, int, int]


class VerifiedCache:
    """What one process knows of the objects that it has read and written."""

    def __init__(self) -> None:
        self._eras: dict[int, tuple[Stamp, Epoch]] = {}
        self._sound: dict[bytes, int] = {}
        self._noted_before: dict[bytes, int] = {}
        self._last = 0

    def epoch(self, pack: int, fd: int) -> Epoch:
        """The present era of a pack, whose file is open."""
        stamp = _stamp(fd)
        known = self._eras.get(pack)
        if known is not None and known[0] == stamp:
            return known[1]
        self._last += 1
        self._eras[pack] = (stamp, self._last)
        return self._last

    def extend(self, pack: int, fd: int, era: Epoch) -> None:
        """We have appended to a pack, and only that: its era goes on."""
        self._eras[pack] = (_stamp(fd), era)

    def add(self, record: Record, era: Epoch) -> None:
        """An object was read or written whole, in this era of its pack."""
        if len(self._sound) >= MAX_RECORDS:
            self._noted_before, self._sound = self._sound, {}
        self._sound[record.id] = _location(record, era)

    def contains(self, record: Record, era: Epoch) -> bool:
        """Whether an object is as it was when it was last noted."""
        noted = self._sound.get(record.id) or self._noted_before.get(record.id)
        return noted == _location(record, era)


def _location(record: Record, era: Epoch) -> int:
    """Where an object lies, and since when. As a mere number: there are many of these, and they
    are not to be looked through whenever Python looks for garbage."""
    return era << 48 | record.offset


def _stamp(fd: int) -> Stamp:
    status = os.fstat(fd)
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
