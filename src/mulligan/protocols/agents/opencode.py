"""OpenCode: a plugin, loaded from a folder without any question of trust.

A throw before a tool would block it and a throw after it would spoil its result, so the plugin
never throws; and one that does not parse would be skipped without a word, so it is plain.
"""

from __future__ import annotations

import os
from typing import Final

from mulligan.protocols.agents import plugin_files
from mulligan.protocols.agents.shape import InstallScope, folder_of


def folder(place: InstallScope) -> str:
    return os.path.join(folder_of(place, variable="XDG_CONFIG_HOME", usual=".config"), "opencode")


AGENT: Final = plugin_files.agent(
    "opencode",
    title="OpenCode",
    folder=folder,
    project_folder=".opencode",
    file="plugin/mulligan.js",
    source="opencode_plugin.js",
)
