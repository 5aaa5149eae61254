"""Which operation an undo takes back, and which a redo brings forward again.

Operations are only ever appended. An undo is an operation that says which one it takes back, and
so is a redo; nothing is marked as undone. What to do next follows from reading the log backwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Step(NamedTuple):
    """What undo and redo need to know of an operation that changed something."""

    number: int
    kind: str
    undoes: int | None


Newest = Callable[[int | None], Step | None]
"""Gives the newest operation that changed something, up to this number, or of all."""


def next_undo(newest: Newest) -> Step | None:
    """The operation that an undo now takes back: one further back after each undo."""
    step = newest(None)
    while step is not None and step.kind == "undo":
        if step.undoes is None:
            return None
        step = newest(step.undoes - 1)
    return step


def next_redo(newest: Newest) -> Step | None:
    """The undo that a redo now takes back; none once something else has been done since."""
    step = newest(None)
    while step is not None and step.kind == "redo":
        if step.undoes is None:
            return None
        step = newest(step.undoes - 1)
    return step if step is not None and step.kind == "undo" else None
