"""Claude Code: command hooks in its settings; it asks for no trust.

A project's hooks go to `settings.local.json`, which is not shared: the command names a path on
this machine.
"""

from __future__ import annotations

from mulligan.core.hook_kinds import (
    CALL_BEGINS,
    CALL_ENDS,
    PROMPT,
    SESSION_ENDS,
    SESSION_STARTS,
    TURN_ENDS,
)

TYPE_CHECKING = False  # `typing` itself is too slow to import in a hook
if TYPE_CHECKING:
    from typing import Any

    from mulligan.protocols.agents.shape import Agent

EVENT_KINDS = {
    "SessionStart": SESSION_STARTS,
    "UserPromptSubmit": PROMPT,
    "PreToolUse": CALL_BEGINS,
    "PostToolUse": CALL_ENDS,
    "PostToolUseFailure": CALL_ENDS,
    "Stop": TURN_ENDS,
    "StopFailure": TURN_ENDS,
    "SessionEnd": SESSION_ENDS,
}
EVENT_TIMEOUTS = {
    "SessionStart": 60,
    "UserPromptSubmit": 120,
    "PreToolUse": 60,
    "PostToolUse": 60,
    "PostToolUseFailure": 60,
    "Stop": 120,
    "SessionEnd": 60,
}
"""The events to install hooks for, with timeouts in seconds."""
WRITING_TOOLS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
REFUSAL = "block"


def call_failed(payload: dict[str, Any]) -> bool:
    return payload.get("hook_event_name") == "PostToolUseFailure"


def agent() -> Agent:
    # Imported here: not needed on the hook path.
    from mulligan.protocols.agents import command_hooks
    from mulligan.protocols.agents.shape import Resume, environment_folder

    return command_hooks.agent(
        "claude-code",
        title="Claude Code",
        program="claude",
        folder=environment_folder("CLAUDE_CONFIG_DIR", default=".claude"),
        file="settings.json",
        project_file=".claude/settings.local.json",
        timeouts=EVENT_TIMEOUTS,
        prompt="UserPromptSubmit",
        resume=Resume(
            ("claude", "--resume", "{}", "--fork-session"), "Esc Esc there goes back to a message"
        ),
    )
