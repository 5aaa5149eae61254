"""Agents: how each of them is configured to call Mulligan, and what its events mean.

Each agent's file holds all that is peculiar to it; the rest is shared. An installed hook must be
unable to fail: if Mulligan is missing, slow or broken, the agent goes on as if there were no hook.
Configuration files are merged into, never replaced, and `uninstall` restores what was there.

On the hook path only this module and the tables of one agent's file are imported: whatever needs
more imports it in its functions.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # `typing` itself is too slow to import in a hook
if TYPE_CHECKING:
    from types import ModuleType

    from mulligan.protocols.agents.shape import Agent

COMMAND_HOOK_AGENTS = ("claude-code", "codex", "gemini")
"""Agents that run a shell command for each event."""
PLUGIN_AGENTS = ("opencode", "pi")
"""Agents that load a plugin of ours, which sends events in our own format."""
AGENTS = (*COMMAND_HOOK_AGENTS, *PLUGIN_AGENTS)


def agent_module(name: str) -> ModuleType:
    """Import the file of an agent, with the tables of its events and tools."""
    return import_module(f"mulligan.protocols.agents.{name.replace('-', '_')}")


def agent(name: str) -> Agent:
    """Return an agent by name; raise `NotFound` for an unknown one."""
    # Imported here: not needed on the hook path.
    from mulligan.errors import NotFound
    from mulligan.protocols.agents.shape import Agent

    if name not in AGENTS:
        raise NotFound(f"Unknown agent {name!r}; known agents: {', '.join(AGENTS)}.")
    described = agent_module(name).agent()
    assert isinstance(described, Agent)
    return described
