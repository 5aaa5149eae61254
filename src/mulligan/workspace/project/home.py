"""Where the home is. By itself, because hooks ask for it before they import anything else."""

from __future__ import annotations

import os
import sys


def home_directory(given: str | None = None) -> str:
    """`MULLIGAN_HOME`, else the platform's directory for a user's data."""
    if given:
        return os.path.abspath(given)
    chosen = os.environ.get("MULLIGAN_HOME")
    if chosen:
        return os.path.abspath(chosen)
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/mulligan")
    if os.name == "nt":
        return os.path.join(os.environ.get("LOCALAPPDATA", os.path.expanduser("~")), "mulligan")
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(data, "mulligan")
