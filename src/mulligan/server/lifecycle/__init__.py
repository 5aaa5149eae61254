"""The server as a process: start it, find it, stop it."""
