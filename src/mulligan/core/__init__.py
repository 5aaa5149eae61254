"""Decide with pure values: trees, diffs, hunks, merges, and the order of undo.

Nothing here reads a file, a clock or a random number, so all of it is tested with plain data.
Callers pass in functions for what must be loaded.
"""
