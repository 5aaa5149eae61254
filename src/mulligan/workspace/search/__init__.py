"""Search sessions and count tool calls, in one project or in all."""
