"""pi: an extension, loaded from a folder without any question of trust.

An extension that cannot be loaded makes pi exit, and one that throws blocks tools, so ours needs
nothing but what Node has, and never throws.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Final

from mulligan.protocols.agents import plugin_files
from mulligan.protocols.agents.shape import Agent, Place, folder_of

NAME: Final = "pi"


def folder(place: Place) -> str:
    return folder_of(place, "PI_CODING_AGENT_DIR", ".pi", "agent")


def file(place: Place) -> str:
    top = folder(place) if place.project is None else os.path.join(place.project, ".pi")
    return os.path.join(top, "extensions", "mulligan.js")


AGENT: Final = Agent(
    name=NAME,
    title="pi",
    program="pi",
    folder=folder,
    file=file,
    written=partial(plugin_files.written, agent=NAME, source="pi_extension.js"),
    removed=plugin_files.removed,
    commands=partial(plugin_files.commands, agent=NAME),
    rehearsal=plugin_files.rehearsal,
)
