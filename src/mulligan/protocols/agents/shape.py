"""The description that every agent's file gives of its agent."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from mulligan.protocols.agents.config_file import ConfigFile


class InstallScope(NamedTuple):
    """Where to install: for a user, by home and environment, or for one `project`."""

    home: str
    environment: Mapping[str, str]
    project: str | None = None


class HookCommand(NamedTuple):
    """The command that an agent runs, and whether it may refuse a prompt."""

    words: tuple[str, ...]
    strict: bool = False


class Resume(NamedTuple):
    """How to continue a session: the command, and how to rewind once the agent runs.

    No agent can be started at an earlier entry. `{}` in the command stands for the session's id.
    """

    command: tuple[str, ...]
    rewind: str


class Trust(NamedTuple):
    """How an agent that runs only trusted hooks is asked to trust ours.

    `grant` returns what is left to the user, and `problem` why hooks do not run; both take the
    scope, the file with the hooks, and our commands. `revoke` takes the text of `config_file` and
    the file with the hooks, and returns the text without the trust.
    """

    note: str
    config_file: Callable[[InstallScope], ConfigFile]
    grant: Callable[[InstallScope, str, frozenset[str]], str | None]
    revoke: Callable[[str, str], str | None]
    problem: Callable[[InstallScope, str, frozenset[str]], str | None]


class Agent(NamedTuple):
    """One agent.

    `file` is the path that its hooks go into, `folder` its own configuration directory. `written`
    returns the text of the file with our hooks, `removed` without them: None if nothing is left.
    `commands` lists the commands in a text that look like ours. `rehearsal` returns a prompt event
    for a dry run in a directory. `needs` returns what the user still has to do, if anything. All
    that take a text raise `ValueError` if the agent could not read it.
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
    resume: Resume
    trust: Trust | None = None


def environment_folder(variable: str, default: str) -> Callable[[InstallScope], str]:
    """Return a lookup of the folder named by a variable, else `default` below the home."""
    return lambda place: place.environment.get(variable) or os.path.join(place.home, default)


def nothing_needed(place: InstallScope) -> None:
    """Ask nothing of the user: the agent works once it is installed."""
