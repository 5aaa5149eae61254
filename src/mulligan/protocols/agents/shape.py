"""What is said of each agent, and where it is said."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple


class InstallScope(NamedTuple):
    """Whom to install for: a user, by home and environment; or, if it is named, one project."""

    home: str
    environment: Mapping[str, str]
    project: str | None = None


class HookCommand(NamedTuple):
    """How an agent is to call us: the words of the command, and whether prompts may be stopped."""

    words: tuple[str, ...]
    strict: bool = False


class Agent(NamedTuple):
    """One agent.

    `file` is the one that its hooks go into, `folder` where it keeps its things, if it was ever
    run. `written` is that file with what is ours in it, `removed` without it: `None` if nothing is
    left. `commands` are the commands in it that look like ours, each for a shell, and
    `rehearsal` is a prompt as the agent would tell them of it, in some directory. Texts that make
    no sense to the agent raise `ValueError`. `needs` is what the user still has to do for it to
    work, if anything.
    """

    name: str
    title: str
    program: str
    folder: Callable[[InstallScope], str]
    file: Callable[[InstallScope], str]
    written: Callable[[str | None, HookCommand], str]
    removed: Callable[[str], str | None]
    commands: Callable[[str], list[str]]
    rehearsal: Callable[[str], dict[str, object]]
    needs: Callable[[InstallScope], str | None]


def nothing_needed(place: InstallScope) -> None:
    """Of an agent that works as soon as it is installed."""


def folder_of(place: InstallScope, *, variable: str, usual: str) -> str:
    """A folder that the environment may name, or the usual one below the home."""
    return place.environment.get(variable) or os.path.join(place.home, usual)
