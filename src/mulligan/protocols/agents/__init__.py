"""Agents: how each of them is told to call Mulligan, and how that is taken back.

A file for each agent says where its configuration is and what has to stand there; the rest is
shared. What is written must be unable to fail: an agent whose hook is missing, slow or broken goes
on as if there were none. Files are merged into and never taken over: what others wrote stays as
they wrote it, and `uninstall` leaves what there was before.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from mulligan.errors import NotFound
from mulligan.protocols.agents.shape import Agent

AGENTS: Final = ("claude-code", "codex", "gemini", "opencode", "pi")


def agent(name: str) -> Agent:
    """An agent by name; raises `NotFound` for one that nobody has written."""
    if name not in AGENTS:
        raise NotFound(f"There is no agent {name!r} to install for; there are {', '.join(AGENTS)}.")
    found = import_module(f"mulligan.protocols.agents.{name.replace('-', '_')}").AGENT
    assert isinstance(found, Agent)
    return found
