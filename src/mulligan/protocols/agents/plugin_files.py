"""Agents that load a piece of JavaScript: ours is a whole file of its own.

The file says in one line how Mulligan is called; the rest is the same everywhere. It comes with
the package, and is written anew when the package has another.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from functools import partial
from importlib.resources import files

from mulligan.protocols.agents.shape import Agent, HookCommand, InstallScope, nothing_needed

MARK = "// Written by `mulligan install "
CALLED = "const MULLIGAN = "
STRICT = "const STRICT = "


def agent(
    name: str,
    *,
    title: str,
    folder: Callable[[InstallScope], str],
    project_folder: str,
    file: str,
    source: str,
) -> Agent:
    """An agent that loads `file` from its own folder or from that of a project."""

    def path(place: InstallScope) -> str:
        if place.project is not None:
            return os.path.join(place.project, project_folder, file)
        return os.path.join(folder(place), file)

    return Agent(
        name=name,
        title=title,
        program=name,
        folder=folder,
        file=path,
        written=partial(written, agent=name, source=source),
        removed=removed,
        commands=partial(commands, agent=name),
        rehearsal=rehearsal,
        needs=nothing_needed,
    )


def written(text: str | None, mulligan: HookCommand, *, agent: str, source: str) -> str:
    """The file, with the command in it; raises `ValueError` if somebody else's has the name."""
    if text is not None and text.strip() and not text.startswith(MARK):
        raise ValueError("There is a file of this name already, and it is not ours.")
    body = files("mulligan.protocols.agents").joinpath(source).read_text("utf-8")
    head = f"{MARK}{agent}`; `mulligan uninstall {agent}` takes it away.\n"
    call = f"{CALLED}{json.dumps(list(mulligan.words))};\n"
    return f"{head}{call}{STRICT}{json.dumps(mulligan.strict)};\n\n{body}"


def removed(text: str) -> str | None:
    """Nothing, if it is ours; else the file as it is."""
    return None if text.startswith(MARK) else text


def commands(text: str, *, agent: str) -> list[str]:
    """The command that the file calls, if it is ours."""
    if not text.startswith(MARK):
        return []
    for line in text.splitlines():
        if line.startswith(CALLED):
            words = json.loads(line.removeprefix(CALLED).rstrip(";"))
            return [shlex.join([*words, "hook", agent])]
    raise ValueError("It does not say how Mulligan is called.")


def rehearsal(directory: str) -> dict[str, object]:
    return {
        "kind": "prompt",
        "session": "rehearsal",
        "directory": directory,
        "text": "A rehearsal.",
    }
