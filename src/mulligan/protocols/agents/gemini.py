"""Gemini CLI: command hooks in its settings, with timeouts in milliseconds.

A hook whose program is missing would block every tool, so the hook is a shell command, which
always exists. A project's hooks run only in a trusted folder; the user's run everywhere.
"""

from __future__ import annotations

import json
import os

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

    from mulligan.protocols.agents.shape import Agent, InstallScope

EVENT_KINDS = {
    "SessionStart": SESSION_STARTS,
    "BeforeAgent": PROMPT,
    "BeforeTool": CALL_BEGINS,
    "AfterTool": CALL_ENDS,
    "AfterAgent": TURN_ENDS,
    "SessionEnd": SESSION_ENDS,
}
EVENT_TIMEOUTS = {
    "SessionStart": 60_000,
    "BeforeAgent": 120_000,
    "BeforeTool": 60_000,
    "AfterTool": 60_000,
    "AfterAgent": 120_000,
    "SessionEnd": 60_000,
}
"""The events to install hooks for, with timeouts in milliseconds."""
WRITING_TOOLS = ("write_file", "replace")
REFUSAL = "deny"
TRUSTED = ("TRUST_FOLDER", "TRUST_PARENT")


def call_failed(payload: dict[str, Any]) -> bool:
    """Find a failed command, which Gemini's shell tool reports only in its text."""
    response = payload.get("tool_response")
    content = response.get("llmContent") if isinstance(response, dict) else None
    return isinstance(content, str) and any(
        line.startswith("Exit Code: ") and line != "Exit Code: 0" for line in content.splitlines()
    )


def agent() -> Agent:
    # Imported here: not needed on the hook path.
    from mulligan.protocols.agents import command_hooks
    from mulligan.protocols.agents.shape import Resume

    return command_hooks.agent(
        "gemini",
        title="Gemini CLI",
        program="gemini",
        folder=folder,
        file="settings.json",
        project_file=".gemini/settings.json",
        timeouts=EVENT_TIMEOUTS,
        prompt="BeforeAgent",
        extra={"name": "mulligan"},
        needs=needs,
        resume=Resume(("gemini", "--resume", "{}"), "/rewind there goes back to a message"),
    )


def folder(place: InstallScope) -> str:
    return os.path.join(place.environment.get("GEMINI_CLI_HOME") or place.home, ".gemini")


def needs(place: InstallScope) -> str | None:
    """Ask for trust in the folder, without which Gemini runs no hooks of a project."""
    if place.project is None or _is_trusted(place, place.project):
        return None
    return (
        f"trust the folder: start `gemini` in {place.project} and say so when it asks, or set "
        "GEMINI_CLI_TRUST_WORKSPACE=true; with --skip-trust alone only the user's hooks run"
    )


def _is_trusted(place: InstallScope, project: str) -> bool:
    if place.environment.get("GEMINI_CLI_TRUST_WORKSPACE") == "true":
        return True
    path = place.environment.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or os.path.join(
        folder(place), "trustedFolders.json"
    )
    try:
        with open(path, encoding="utf-8") as opened:
            known = json.load(opened)
    except (OSError, ValueError):
        return False
    if not isinstance(known, dict):
        return False
    for folder_name, level in known.items():
        top = os.path.dirname(folder_name) if level == "TRUST_PARENT" else folder_name
        if level in TRUSTED and os.path.commonpath([os.path.realpath(top), project]) == (
            os.path.realpath(top)
        ):
            return True
    return False
