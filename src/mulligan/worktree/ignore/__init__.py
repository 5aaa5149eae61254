"""Which paths are in scope: git's ignore rules, read without git, and our own."""
