"""Codex: command hooks in `hooks.json`, each of which Codex must trust before it runs.

Codex keeps trust in the user's `config.toml`, by the file, the event and the hook's position, with
a hash of the hook: see `codex_trust`. It skips an untrusted hook silently.
"""

from __future__ import annotations

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

    from mulligan.protocols.agents.config_file import ConfigFile
    from mulligan.protocols.agents.shape import Agent, InstallScope

EVENT_KINDS = {
    "SessionStart": SESSION_STARTS,
    "UserPromptSubmit": PROMPT,
    "PreToolUse": CALL_BEGINS,
    "PostToolUse": CALL_ENDS,
    "Stop": TURN_ENDS,
    "Interrupt": TURN_ENDS,
    "SessionEnd": SESSION_ENDS,
}
EVENT_TIMEOUTS = {
    "SessionStart": 60,
    "UserPromptSubmit": 120,
    "PreToolUse": 60,
    "PostToolUse": 60,
    "Stop": 120,
    "Interrupt": 3,
    "SessionEnd": 3,
}
"""The events to install hooks for, with timeouts in seconds; Codex limits the last two."""
WRITING_TOOLS = ("apply_patch",)
REFUSAL = "block"
TRUST_BY_HAND = (
    "Codex skips untrusted hooks silently: start `codex`, type /hooks, and trust those of Mulligan"
)


def call_failed(payload: dict[str, Any]) -> bool:
    return False


def agent() -> Agent:
    # Imported here: not needed on the hook path.
    from mulligan.protocols.agents import codex_trust, command_hooks
    from mulligan.protocols.agents.shape import Resume, Trust, environment_folder

    return command_hooks.agent(
        "codex",
        title="Codex",
        program="codex",
        folder=environment_folder("CODEX_HOME", default=".codex"),
        file="hooks.json",
        project_file=".codex/hooks.json",
        timeouts=EVENT_TIMEOUTS,
        prompt="UserPromptSubmit",
        resume=Resume(("codex", "fork", "{}"), "Esc Esc there goes back to a message"),
        trust=Trust(
            note="then Codex is asked to trust these hooks, in its config.toml",
            config_file=_config_file,
            grant=_grant_trust,
            revoke=codex_trust.distrusted,
            problem=_trust_problem,
        ),
    )


def _config_file(place: InstallScope) -> ConfigFile:
    """Return Codex's settings, which are the user's even for the hooks of a project."""
    from mulligan.protocols.agents.config_file import ConfigFile

    folder = place.environment.get("CODEX_HOME") or os.path.join(place.home, ".codex")
    return ConfigFile(os.path.join(folder, "config.toml"), None)


def _program(place: InstallScope) -> str | None:
    import shutil

    return shutil.which("codex", path=place.environment.get("PATH"))


def _grant_trust(place: InstallScope, path: str, commands: frozenset[str]) -> str | None:
    """Ask Codex to trust our hooks; return what is left to the user, if anything."""
    from mulligan.protocols.agents import codex_trust

    program = _program(place)
    if program is None:
        return TRUST_BY_HAND
    directory = place.project or place.home
    try:
        ours = codex_trust.trust(program, place.environment, directory, path, commands)
    except codex_trust.CannotAsk as problem:
        return f"{TRUST_BY_HAND} ({problem})"
    if place.project is not None and not ours:
        # Only the user may trust a folder.
        return (
            "Codex reads the hooks of a project only if it trusts the project: start `codex` in "
            f"{place.project}, trust it, and run `mulligan install codex --project` again"
        )
    return None if ours and all(each.is_trusted for each in ours) else TRUST_BY_HAND


def _trust_problem(place: InstallScope, path: str, commands: frozenset[str]) -> str | None:
    """Return why Codex does not run our hooks; None if it does, or is not on the PATH."""
    from mulligan.protocols.agents import codex_trust

    program = _program(place)
    if program is None:
        return None
    try:
        known = codex_trust.hooks(program, place.environment, place.project or place.home)
    except codex_trust.CannotAsk as problem:
        return f"cannot tell whether its hooks are trusted: {problem}"
    ours = [each for each in known if codex_trust.is_in(each, path) and each.command in commands]
    if not ours:
        return f"it does not see the hooks in {path}"
    untrusted = [each.event for each in ours if not each.is_trusted]
    if not untrusted:
        return None
    return f"its hooks are not trusted, and skipped silently: {', '.join(untrusted)}"
