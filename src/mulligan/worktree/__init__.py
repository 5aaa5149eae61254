"""The user's files: looking at them, and changing them. Nothing else in Mulligan does.

Reading goes through `scan`, which keeps what it saw in the stat cache (`index`); writing goes
through `apply`. What is always true: every path is reached from the project's root directory one
component at a time without following a symbolic link, nothing named `.git` is touched, and bytes
are overwritten only after they were compared with what the caller believes to be there.
"""
