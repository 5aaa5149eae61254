"""Plugins: agents that load a JavaScript file, which is wholly ours.

One line of the file holds the command of Mulligan; the rest comes with the package, and is
rewritten when the package has another version.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from functools import partial
from importlib.resources import files

from mulligan.protocols.agents.shape import Agent, HookCommand, InstallScope, Resume, nothing_needed

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
    resume: Resume,
) -> Agent:
    """Describe an agent that loads `file` from its own folder or from that of a project."""

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
        resume=resume,
    )


def written(text: str | None, mulligan: HookCommand, *, agent: str, source: str) -> str:
    """Return the file with the command in it; raise `ValueError` if the present one is not ours."""
    if text is not None and text.strip() and not text.startswith(MARK):
        raise ValueError("A file of this name exists already, and is not ours.")
    body = files("mulligan.protocols.agents").joinpath(source).read_text("utf-8")
    head = f"{MARK}{agent}`; `mulligan uninstall {agent}` removes it.\n"
    call = f"{CALLED}{json.dumps(list(mulligan.words))};\n"
    return f"{head}{call}{STRICT}{json.dumps(mulligan.strict)};\n\n{body}"


def removed(text: str) -> str | None:
    """Return None if the file is ours; else its text unchanged."""
    return None if text.startswith(MARK) else text


def commands(text: str, *, agent: str) -> list[str]:
    """List the command that the file calls, if the file is ours."""
    if not text.startswith(MARK):
        return []
    for line in text.splitlines():
        if line.startswith(CALLED):
            words = json.loads(line.removeprefix(CALLED).rstrip(";"))
            return [shlex.join([*words, "hook", agent])]
    raise ValueError("The line with Mulligan's command is missing.")


def rehearsal(directory: str) -> dict[str, object]:
    return {
        "kind": "prompt",
        "session": "rehearsal",
        "directory": directory,
        "text": "A rehearsal.",
    }
