"""Name the kinds of ids, so that mypy tells them apart.

A value becomes typed where it is born: read from SQLite, hashed, or made up anew.
"""

# Annotations are not postponed here: hooks import this module at every start.

from typing import NewType

SessionId = NewType("SessionId", str)
"""The id of a session, as users and agents write it."""

SessionNumber = NewType("SessionNumber", int)
"""The row number of a session in its project's journal."""

EntryId = NewType("EntryId", str)
"""The id of an entry, unique within its session."""

CheckpointId = NewType("CheckpointId", str)
"""The id of a checkpoint, as users write it."""

ObjectId = NewType("ObjectId", bytes)
"""The SHA-256 of an object in the store."""

TreeId = NewType("TreeId", ObjectId)
"""The `ObjectId` of a directory's tree."""
