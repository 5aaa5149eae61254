"""Gemini CLI: hooks in its settings, with times in milliseconds.

A hook whose program is missing blocks every tool, so what is written there never is: the shell
answers for it. Hooks of a project run only in a folder that is trusted; the user's run everywhere.
"""

from __future__ import annotations

import json
import os
from typing import Final

from mulligan.protocols.agents import command_hooks
from mulligan.protocols.agents.shape import InstallScope

EVENTS: Final = {
    "SessionStart": 60_000,
    "BeforeAgent": 120_000,
    "BeforeTool": 60_000,
    "AfterTool": 60_000,
    "AfterAgent": 120_000,
    "SessionEnd": 60_000,
}
"""In milliseconds."""
TRUSTED: Final = ("TRUST_FOLDER", "TRUST_PARENT")


def folder(place: InstallScope) -> str:
    return os.path.join(place.environment.get("GEMINI_CLI_HOME") or place.home, ".gemini")


def needs(place: InstallScope) -> str | None:
    """Trust in the folder, without which the hooks of a project are not run."""
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
    for trusted, word in known.items():
        top = os.path.dirname(trusted) if word == "TRUST_PARENT" else trusted
        if word in TRUSTED and os.path.commonpath([os.path.realpath(top), project]) == (
            os.path.realpath(top)
        ):
            return True
    return False


AGENT: Final = command_hooks.agent(
    "gemini",
    title="Gemini CLI",
    program="gemini",
    folder=folder,
    file="settings.json",
    project_file=".gemini/settings.json",
    events=EVENTS,
    prompt="BeforeAgent",
    extra={"name": "mulligan"},
    needs=needs,
)
