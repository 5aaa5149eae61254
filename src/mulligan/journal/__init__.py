"""The journal: checkpoints and operations, in SQLite. Small, precious, never rewritten.

This room touches only SQLite files. What is always true: rows are added, and an operation moves
from `planned` to `applied` or `abandoned` once; a migration commits together with its record; a
file of a later format is refused, never changed.
"""
