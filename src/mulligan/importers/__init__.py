"""Read the logs of other agents as sessions, entries and snapshots.

One module or package per agent. This package only reads foreign logs; its callers store the
records. Always true:

- Reading streams: a log may be larger than memory.
- Ids, times, order and links are the agent's own or derived from the content alone, so that
  reading a log twice yields the same records.
- A line that cannot be read becomes a `Problem`, and reading goes on.
- Every log may be half written, hostile, or of an unknown version.
"""
