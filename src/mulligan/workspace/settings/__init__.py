"""Settings: read, change, and accept those that a repository brings."""
