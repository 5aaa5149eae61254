"""Hold the result of a scan: the project's tree and its coverage."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from typing import NamedTuple

from mulligan.core.coverage import Coverage

Id = bytes


class Snapshot(NamedTuple):
    """A scanned project. `tree`, `guarded` and `covered` (the coverage) are object ids."""

    tree: Id
    guarded: Id
    coverage: Coverage
    files: int
    bytes: int
    covered: Id
    max_file_size: int = 0
