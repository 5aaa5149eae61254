"""Checkpoints of the past, inserted in any order, stand where their time belongs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.times import rfc3339
from mulligan.journal import checkpoints
from mulligan.journal.checkpoints import IMPORTED, CheckpointRow
from mulligan.journal.db import Database
from mulligan.journal.migrations import JOURNAL

MINUTE = 60 * 10**9


def row(id: str, minute: int, kind: str) -> CheckpointRow:
    return CheckpointRow(id, b"", b"", b"", True, kind, "", rfc3339(minute * MINUTE), 0, 0)


@given(st.lists(st.integers(1, 40), max_size=30), st.data())
def test_those_taken_here_keep_their_order_and_the_others_come_between(
    minutes: list[int], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        journal = Database(str(Path(folder, "journal.sqlite")), JOURNAL)
        taken: list[str] = []
        with journal.writing() as db:
            for number, minute in enumerate(minutes):
                if data.draw(st.booleans()):
                    taken.append(f"taken {number}")
                    checkpoints.insert(db, row(taken[-1], 10 * len(taken), "manual"))
                else:
                    made = row(f"imported {number}", minute, IMPORTED)
                    checkpoints.insert_at_its_time(db, made)
                    order = [each.id for each in reversed(checkpoints.newest_first(journal))]
                    known = {each.id: each for each in checkpoints.newest_first(journal)}
                    place = order.index(made.id)
                    assert all(known[id].created_at <= made.created_at for id in order[:place])
                    after = known.get(order[place + 1]) if place + 1 < len(order) else None
                    assert after is None or after.created_at > made.created_at
        found = [each.id for each in reversed(checkpoints.newest_first(journal))]
        assert [id for id in found if id in taken] == taken
        assert len(found) == len(minutes)
        latest = checkpoints.latest(journal)
        assert (latest.id if latest else None) == (taken[-1] if taken else None)
        journal.close()
