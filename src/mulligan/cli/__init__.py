"""The command line: one file a command. Words go to stderr, data to stdout."""
