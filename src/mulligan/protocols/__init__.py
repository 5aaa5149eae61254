"""Protocols: how other programs reach Mulligan, over stdio and through agents' hooks.

Each protocol translates requests to calls of the workspace, and results back; it decides nothing.
"""
