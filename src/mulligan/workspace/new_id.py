"""Make the ids of checkpoints, sessions and entries."""

from __future__ import annotations

import os

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
ID_LENGTH = 16


def new_id() -> str:
    """Return a new random id of a checkpoint, session or entry."""
    return "".join(ALPHABET[byte & 31] for byte in os.urandom(ID_LENGTH))
