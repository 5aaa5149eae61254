"""Continue an agent's conversation: Mulligan rewinds the files, the agent its conversation."""

from __future__ import annotations

import shlex

from mulligan.protocols.agents import AGENTS, agent
from mulligan.workspace.results.sessions import Session


def resume_command(session: Session) -> str | None:
    """Return the command that continues a session; None for an agent that has none."""
    if session.agent not in AGENTS:
        return None
    return shlex.join(word.format(session.id) for word in agent(session.agent).resume.command)


def rewind_hint(session: Session) -> str | None:
    """Return how to go to an earlier entry once the agent runs."""
    return agent(session.agent).resume.rewind if session.agent in AGENTS else None
