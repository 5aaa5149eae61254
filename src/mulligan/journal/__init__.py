"""Keep checkpoints, operations, sessions and entries in SQLite.

This room touches only SQLite files. Always true: rows are added, and an operation moves from
`planned` to `applied` or `abandoned` once; a migration commits together with the new format
number; a file of a later format is refused, never changed.
"""
