"""Search sessions by a full-text index: derived, in a file of its own."""
