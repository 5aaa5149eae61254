"""Read the session trees of pi."""
