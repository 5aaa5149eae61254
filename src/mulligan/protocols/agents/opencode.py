"""OpenCode: a plugin, loaded from a folder without any question of trust.

A throw before a tool would block it and a throw after it would spoil its result, so the plugin
never throws; and one that does not parse would be skipped without a word, so it is plain.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Final

from mulligan.protocols.agents import plugin_files
from mulligan.protocols.agents.shape import Agent, Place, folder_of

NAME: Final = "opencode"


def folder(place: Place) -> str:
    return os.path.join(folder_of(place, "XDG_CONFIG_HOME", ".config"), "opencode")


def file(place: Place) -> str:
    top = folder(place) if place.project is None else os.path.join(place.project, ".opencode")
    return os.path.join(top, "plugin", "mulligan.js")


AGENT: Final = Agent(
    name=NAME,
    title="OpenCode",
    program="opencode",
    folder=folder,
    file=file,
    written=partial(plugin_files.written, agent=NAME, source="opencode_plugin.js"),
    removed=plugin_files.removed,
    commands=partial(plugin_files.commands, agent=NAME),
    rehearsal=plugin_files.rehearsal,
)
