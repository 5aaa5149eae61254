"""Decide which paths are in scope: by git's ignore rules, read without git, and our own."""
