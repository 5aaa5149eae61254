"""What the verbs on turns answer with. By itself, because hooks need nothing else of its kind."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from typing import Any, NamedTuple


class Turn(NamedTuple):
    """A turn that has begun: the entry of the message, and the checkpoint from before it.

    `ended` says that an earlier one was still going on, and was ended for it.
    """

    session: str
    round: str
    entry: str
    checkpoint: str
    operation: int
    turn: int
    ended: bool = False

    def as_json(self) -> dict[str, Any]:
        from mulligan.workspace.results.files import plain

        return plain(self)


class Step(NamedTuple):
    """A turn that has ended, and what it changed. Without changes there is no checkpoint.

    `guarded` are ignored files that it changed: copies of what they held before are kept.
    """

    session: str
    round: str
    turn: int
    operation: int
    entry: str | None
    checkpoint: str | None
    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        from mulligan.workspace.results.files import plain

        return plain(self)
