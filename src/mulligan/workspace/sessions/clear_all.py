"""Delete every session of a project, in two calls.

The first call deletes nothing and returns a word to confirm with. The word is a hash of the
sessions' ids, so it is valid only for the sessions that the caller was shown.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple

from mulligan.errors import MulliganError, WouldLoseWork
from mulligan.journal import sessions
from mulligan.journal.entries import count_all
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import plain
from mulligan.workspace.search.search import rebuild
from mulligan.workspace.sessions.sessions import delete_all

CONFIRM_CHARACTERS = 12


class Cleared(NamedTuple):
    """What was deleted if `cleared`; else what would be, and the word to confirm with."""

    cleared: bool
    sessions: int
    entries: int
    confirm: str | None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def clear(project: OpenProject, confirm: str | None) -> Cleared:
    """Delete all sessions if `confirm` is the word of an earlier call; else return the word."""
    with project.locked():
        ids = sorted(row.id for row in sessions.newest_first(project.journal))
        word = sha256("\n".join(ids).encode()).hexdigest()[:CONFIRM_CHARACTERS]
        entries = count_all(project.journal)
        if confirm is None:
            return Cleared(False, len(ids), entries, word)
        if confirm != word:
            raise WouldLoseWork(
                "The sessions have changed since the first call; nothing was deleted. Ask for a "
                "new word to confirm."
            )
        delete_all(project)
    # The index would catch up at the next search; until then it still holds deleted text.
    with suppress(MulliganError):
        rebuild(project)
    return Cleared(True, len(ids), entries, None)
