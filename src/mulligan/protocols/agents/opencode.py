"""OpenCode: a plugin, loaded from a folder; it asks for no trust.

A throw before a tool would block it and a throw after it would spoil its result, so the plugin
never throws. OpenCode skips a plugin that does not parse silently, so the plugin is plain.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # `typing` itself is too slow to import in a hook
if TYPE_CHECKING:
    from mulligan.protocols.agents.shape import Agent, InstallScope

WRITING_TOOLS = ("write", "edit", "patch", "multiedit", "apply_patch")


def agent() -> Agent:
    # Imported here: not needed on the hook path.
    from mulligan.protocols.agents import plugin_files
    from mulligan.protocols.agents.shape import Resume

    return plugin_files.agent(
        "opencode",
        title="OpenCode",
        folder=_folder,
        project_folder=".opencode",
        file="plugin/mulligan.js",
        source="opencode_plugin.js",
        resume=Resume(
            ("opencode", "--session", "{}", "--fork"), "/undo there goes back by a message"
        ),
    )


def _folder(place: InstallScope) -> str:
    config = place.environment.get("XDG_CONFIG_HOME") or os.path.join(place.home, ".config")
    return os.path.join(config, "opencode")
