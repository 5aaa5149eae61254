"""The verbs: checkpoint, status, diff, restore, undo, redo, recover, verify, collect.

This room composes the ones below it and is what every face calls. Synchronous. What is always
true: a verb that writes holds the project's lock from its first look to its last mark; objects
are stored before the operation is planned, the operation is planned before a file is touched,
and it is marked as applied after every file is in place and read back.
"""
