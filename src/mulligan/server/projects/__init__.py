"""The open projects: their workspaces, watchers, events and jobs."""
