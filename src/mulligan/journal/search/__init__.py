"""The full-text index of sessions: derived, in a file of its own."""
