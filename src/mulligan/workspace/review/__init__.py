"""Pending work of agents: list it, keep it, discard it, approve or reset rounds."""
