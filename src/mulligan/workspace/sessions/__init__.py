"""Sessions: entries, turns, edits, navigation, hook events."""
