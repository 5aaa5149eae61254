"""Find Mulligan's home directory. Hooks import this module before anything else."""

from __future__ import annotations

import os
import sys


def home_directory(given: str | None = None) -> str:
    """Return `MULLIGAN_HOME`, else the platform's directory for user data."""
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
