"""Claude Code: hooks in its settings, without any question of trust.

For a project they go to `settings.local.json`, which is the user's own there and not shared: the
command names a path on this machine.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Final

from mulligan.protocols.agents import command_hooks
from mulligan.protocols.agents.shape import Agent, Place, folder_of

NAME: Final = "claude-code"
EVENTS: Final = {
    "SessionStart": 60,
    "UserPromptSubmit": 120,
    "PreToolUse": 60,
    "PostToolUse": 60,
    "PostToolUseFailure": 60,
    "Stop": 120,
    "SessionEnd": 60,
}
"""In seconds."""


def folder(place: Place) -> str:
    return folder_of(place, "CLAUDE_CONFIG_DIR", ".claude")


def file(place: Place) -> str:
    if place.project is not None:
        return os.path.join(place.project, ".claude", "settings.local.json")
    return os.path.join(folder(place), "settings.json")


def rehearsal(directory: str) -> dict[str, object]:
    return {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "rehearsal",
        "cwd": directory,
        "prompt": "A rehearsal.",
    }


AGENT: Final = Agent(
    name=NAME,
    title="Claude Code",
    program="claude",
    folder=folder,
    file=file,
    written=partial(command_hooks.written, agent=NAME, events=EVENTS, prompt="UserPromptSubmit"),
    removed=partial(command_hooks.removed, agent=NAME),
    commands=partial(command_hooks.commands, agent=NAME),
    rehearsal=rehearsal,
)
