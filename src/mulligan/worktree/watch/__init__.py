"""Collect inotify events: the paths that may have changed since the last scan."""
