"""Read the session logs of Claude Code."""
