"""pi: an extension, loaded from a folder without any question of trust.

An extension that cannot be loaded makes pi exit, and one that throws blocks tools, so ours needs
nothing but what Node has, and never throws.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from mulligan.protocols.agents import plugin_files
from mulligan.protocols.agents.shape import folder_of

AGENT: Final = plugin_files.agent(
    "pi",
    title="pi",
    folder=partial(folder_of, variable="PI_CODING_AGENT_DIR", usual=".pi/agent"),
    project_folder=".pi",
    file="extensions/mulligan.js",
    source="pi_extension.js",
)
