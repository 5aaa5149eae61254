"""inotify events: which paths may have changed since the last scan."""
