"""Protocols: what other programs speak with Mulligan over stdio and hooks.

Each translates words and decides nothing; the verbs are the workspace's.
"""
