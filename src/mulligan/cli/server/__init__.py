"""Commands that run the server and the watcher."""
