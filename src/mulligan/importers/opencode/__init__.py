"""Read the database of OpenCode."""
