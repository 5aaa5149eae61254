"""Whose change it is: each session's view of the disk."""
