"""Codex: hooks in `hooks.json`, each of which must be trusted before it runs.

Trust is kept in the user's `config.toml` by the file, the event and the hook's position, with a
hash of the hook: see `codex_trust`. An untrusted hook is skipped without a word.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from mulligan.protocols.agents import command_hooks
from mulligan.protocols.agents.shape import folder_of

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

AGENT: Final = command_hooks.agent(
    "codex",
    title="Codex",
    program="codex",
    folder=partial(folder_of, variable="CODEX_HOME", usual=".codex"),
    file="hooks.json",
    project_file=".codex/hooks.json",
    events=EVENTS,
    prompt="UserPromptSubmit",
)
