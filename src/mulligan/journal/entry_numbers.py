"""Compute the numbers of entries.

A number holds the session's number in its upper bits and the entry's `seq` in the lower 32, so the
entries of a session are one range of the table's key. SQL in this room computes the same.
"""

# Annotations are not postponed here: hooks import this module at every start.

from mulligan.core.ids import SessionNumber

SEQ_BITS = 32
MAX_SEQ = (1 << SEQ_BITS) - 1


def entry_number(session: int, seq: int) -> int:
    """Return the number of an entry; `seq` is clamped to its 32 bits."""
    return session << SEQ_BITS | max(0, min(seq, MAX_SEQ))


def session_of(number: int) -> SessionNumber:
    """Return the session that an entry's number belongs to."""
    return SessionNumber(number >> SEQ_BITS)


def seq_of(number: int) -> int:
    """Return the `seq` in an entry's number."""
    return number & MAX_SEQ


def session_range(session: int) -> tuple[int, int]:
    """Return the half-open range of a session's entry numbers."""
    return session << SEQ_BITS, (session + 1) << SEQ_BITS
