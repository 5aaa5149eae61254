"""Find the operation that the next undo or redo reverts.

Operations are only appended. An undo or redo is an operation that names the one it reverts, and no
operation is marked as undone. The next one follows from reading the log backwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Step(NamedTuple):
    """The fields of a changing operation that undo and redo need."""

    number: int
    kind: str
    undoes: int | None


Newest = Callable[[int | None], Step | None]
"""Returns the newest operation that changed something, up to a number or of all."""


def next_undo(newest: Newest) -> Step | None:
    """Return the operation that an undo now reverts: one further back each time."""
    step = newest(None)
    while step is not None and step.kind == "undo":
        if step.undoes is None:
            return None
        step = newest(step.undoes - 1)
    return step


def next_redo(newest: Newest) -> Step | None:
    """Return the undo that a redo now reverts; None after any other operation."""
    step = newest(None)
    while step is not None and step.kind == "redo":
        if step.undoes is None:
            return None
        step = newest(step.undoes - 1)
    return step if step is not None and step.kind == "undo" else None
