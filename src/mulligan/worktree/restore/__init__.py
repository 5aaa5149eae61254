"""Change the user's files from one known state to another."""
