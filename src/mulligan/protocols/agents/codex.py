"""Codex: hooks in `hooks.json`, each of which must be trusted before it runs.

Trust is kept in the user's `config.toml` by the file, the event and the hook's position, with a
hash of the hook: see `codex_trust`. An untrusted hook is skipped without a word.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Final

from mulligan.protocols.agents import command_hooks
from mulligan.protocols.agents.shape import Agent, Place, folder_of

NAME: Final = "codex"
EVENTS: Final = {
    "SessionStart": 60,
    "UserPromptSubmit": 120,
    "PreToolUse": 60,
    "PostToolUse": 60,
    "Stop": 120,
    "Interrupt": 3,
    "SessionEnd": 3,
}
"""In seconds; the last two may not take longer."""


def folder(place: Place) -> str:
    return folder_of(place, "CODEX_HOME", ".codex")


def file(place: Place) -> str:
    if place.project is not None:
        return os.path.join(place.project, ".codex", "hooks.json")
    return os.path.join(folder(place), "hooks.json")


def rehearsal(directory: str) -> dict[str, object]:
    return {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "rehearsal",
        "turn_id": "1",
        "cwd": directory,
        "prompt": "A rehearsal.",
    }


AGENT: Final = Agent(
    name=NAME,
    title="Codex",
    program="codex",
    folder=folder,
    file=file,
    written=partial(command_hooks.written, agent=NAME, events=EVENTS, prompt="UserPromptSubmit"),
    removed=partial(command_hooks.removed, agent=NAME),
    commands=partial(command_hooks.commands, agent=NAME),
    rehearsal=rehearsal,
)
