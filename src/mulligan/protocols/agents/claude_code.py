"""Claude Code: hooks in its settings, without any question of trust.

For a project they go to `settings.local.json`, which is the user's own there and not shared: the
command names a path on this machine.
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
    "PostToolUseFailure": 60,
    "Stop": 120,
    "SessionEnd": 60,
}
"""In seconds."""

AGENT: Final = command_hooks.agent(
    "claude-code",
    title="Claude Code",
    program="claude",
    folder=partial(folder_of, variable="CLAUDE_CONFIG_DIR", usual=".claude"),
    file="settings.json",
    project_file=".claude/settings.local.json",
    events=EVENTS,
    prompt="UserPromptSubmit",
)
