"""System calls on the user's files: safe paths, atomic renames, fsync, deferred deletion."""
