"""Find Codex's rollouts, and those that a rollout refers to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mulligan.importers.folders import files_below, path_from_env
from mulligan.importers.json_log import open_log
from mulligan.importers.records import Source
from mulligan.importers.values import as_dict, as_str

SESSION_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
FOLDERS: Final = ("sessions", "archived_sessions")


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """Find a user's rollouts, archived ones too, oldest first by the time in their names."""
    place = path_from_env(environment, "CODEX_HOME", home) or os.path.join(home, ".codex")
    paths = [
        path
        for folder in FOLDERS
        for suffix in (".jsonl", ".json")
        for path in files_below(os.path.join(place, folder), suffix)
        if os.path.basename(path).startswith("rollout-")
    ]
    yield from map(Source, sorted(paths, key=lambda path: (os.path.basename(path), path)))


def session_id_of(path: str) -> str:
    """Return the session id in a rollout's name, or the whole name."""
    stem = os.path.splitext(os.path.basename(path))[0]
    match = SESSION_ID.search(stem)
    return match[0] if match else stem


def find_rollout(session: str, near: str) -> str | None:
    """Find the rollout of a session, first in the folder of the rollout `near`."""
    if not SESSION_ID.fullmatch(session):
        return None
    folder = top = os.path.dirname(near)
    while os.path.basename(top) not in FOLDERS and os.path.dirname(top) != top:
        top = os.path.dirname(top)
    home = os.path.dirname(top)
    all_folders = [os.path.join(home, name) for name in FOLDERS] if home != top else []
    for place in (folder, *all_folders):
        for path in files_below(place, ".jsonl"):
            if path.endswith(f"-{session}.jsonl"):
                return path
    return None


def parent_of(meta: dict[str, Any]) -> str:
    """Return the session that spawned a sub-agent, from the sub-agent's meta line."""
    subagent = as_dict(as_dict(meta.get("source")).get("subagent"))
    return as_str(as_dict(subagent.get("thread_spawn")).get("parent_thread_id"))


def mentions(path: str, session: str) -> bool:
    """Return True if a rollout contains the id of a session."""
    with open_log(path) as file:
        return any(session.encode() in line for line in file)
