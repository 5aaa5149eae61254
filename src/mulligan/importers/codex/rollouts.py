"""Where Codex keeps its rollouts, and which of them belong together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mulligan.importers.folders import files_below, path_from_env
from mulligan.importers.json_log import open_log
from mulligan.importers.records import Source
from mulligan.importers.values import as_dict, as_str

ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
FOLDERS: Final = ("sessions", "archived_sessions")


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """The rollouts of a user, oldest first by the time in their names, archived ones too."""
    place = path_from_env(environment, "CODEX_HOME", home) or os.path.join(home, ".codex")
    paths = [
        path
        for folder in FOLDERS
        for suffix in (".jsonl", ".json")
        for path in files_below(os.path.join(place, folder), suffix)
        if os.path.basename(path).startswith("rollout-")
    ]
    yield from map(Source, sorted(paths, key=lambda path: (os.path.basename(path), path)))


def name_of(path: str) -> str:
    """The session that a rollout is named after."""
    stem = os.path.splitext(os.path.basename(path))[0]
    found = ID.search(stem)
    return found[0] if found else stem


def rollout_of(session: str, beside: str) -> str | None:
    """The rollout of another session, most likely in the folder that one lies in."""
    if not ID.fullmatch(session):
        return None
    folder = top = os.path.dirname(beside)
    while os.path.basename(top) not in FOLDERS and os.path.dirname(top) != top:
        top = os.path.dirname(top)
    home = os.path.dirname(top)
    further = [os.path.join(home, name) for name in FOLDERS] if home != top else []
    for place in (folder, *further):
        for path in files_below(place, ".jsonl"):
            if path.endswith(f"-{session}.jsonl"):
                return path
    return None


def parent_of(meta: dict[str, Any]) -> str:
    """The session that a sub-agent works for, by what its own rollout says first; or nothing."""
    subagent = as_dict(as_dict(meta.get("source")).get("subagent"))
    return as_str(as_dict(subagent.get("thread_spawn")).get("parent_thread_id"))


def is_named_in(session: str, path: str) -> bool:
    with open_log(path) as file:
        return any(session.encode() in line for line in file)
