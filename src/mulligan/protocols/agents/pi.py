"""pi: an extension, loaded from a folder; it asks for no trust.

An extension that cannot be loaded makes pi exit, and one that throws blocks tools, so ours needs
nothing but Node, and never throws.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` itself is too slow to import in a hook
if TYPE_CHECKING:
    from mulligan.protocols.agents.shape import Agent

WRITING_TOOLS = ("write", "edit")


def agent() -> Agent:
    # Imported here: not needed on the hook path.
    from mulligan.protocols.agents import plugin_files
    from mulligan.protocols.agents.shape import Resume, environment_folder

    return plugin_files.agent(
        "pi",
        title="pi",
        folder=environment_folder("PI_CODING_AGENT_DIR", default=".pi/agent"),
        project_folder=".pi",
        file="extensions/mulligan.js",
        source="pi_extension.js",
        resume=Resume(("pi", "--session", "{}"), "/tree there goes to any entry"),
    )
