"""Going on with a conversation: the files are Mulligan's to rewind, the conversation the agent's.

Each agent resumes where its session ended, some in a copy of it, and can be led back from there by
its own means. What none of them can is to be started at an earlier point from outside.
"""

from __future__ import annotations

import shlex
from typing import Final, NamedTuple

from mulligan.workspace.results.sessions import Session


class Way(NamedTuple):
    """How an agent goes on: the words of its command, and how it is led back once it runs."""

    words: tuple[str, ...]
    back: str


WAYS: Final = {
    "claude-code": Way(
        ("claude", "--resume", "{}", "--fork-session"), "Esc Esc there goes back to a message"
    ),
    "codex": Way(("codex", "fork", "{}"), "Esc Esc there goes back to a message"),
    "gemini": Way(("gemini", "--resume", "{}"), "/rewind there goes back to a message"),
    "opencode": Way(
        ("opencode", "--session", "{}", "--fork"), "/undo there goes back by a message"
    ),
    "pi": Way(("pi", "--session", "{}"), "/tree there goes to any entry"),
}


def resume_command(session: Session, entry: str | None = None) -> str | None:
    """The command that goes on with a session; `None` for an agent that has none.

    `entry` is where the session is to go on, if not at its end. No agent can be told so on its
    command line: `way_back` says what to do once it runs.
    """
    way = WAYS.get(session.agent)
    if way is None:
        return None
    return shlex.join(word.format(session.id) for word in way.words)


def way_back(session: Session) -> str | None:
    """How the agent is led to an earlier point, once it runs."""
    way = WAYS.get(session.agent)
    return way.back if way is not None else None
