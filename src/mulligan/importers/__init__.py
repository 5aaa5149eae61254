"""Importers: what other agents wrote down, as sessions and entries of ours, and as snapshots.

One file an agent. This room reads foreign logs and nothing else: it never writes to them, and
what it yields is kept by whoever asked. What is always true: reading is streaming, so a log may
be larger than memory; ids, times, order and links are the agent's own, or follow from the content
alone, so that reading twice gives the same; a line that cannot be taken is named, and the rest is
read on. Every log can be half written, hostile, or of a version that nobody has seen yet.
"""
