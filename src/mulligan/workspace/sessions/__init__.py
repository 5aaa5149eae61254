"""Keep sessions: their entries, edits, navigation and file states."""
