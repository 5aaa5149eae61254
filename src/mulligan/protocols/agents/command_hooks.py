"""Hooks that are commands in a JSON file: for each event a list of groups, each with its hooks.

    {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]}}

The command is run by a shell, which makes sure that nothing that happens to Mulligan can reach
the agent: it is missing, it cannot start, it dies, and the shell says that all is well. What it
has to say no to (see `strict`) it says in its answer.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mulligan.protocols.agents import json_text
from mulligan.protocols.agents.shape import Agent, HookCommand, InstallScope, nothing_needed

Events = Mapping[str, float]
"""By event, how long the agent is to wait for us, in its own unit."""

JSON_INDENT_DEPTH = 5
"""How far in a hook stands."""

NEVER = 'exec 2>/dev/null; "$@" hook {agent} || true'
AT_PROMPTS = '"$@" hook {agent} --strict || exit 2'
"""Only where the user chose to be strict: then a prompt without Mulligan is no prompt."""


def agent(
    name: str,
    *,
    title: str,
    program: str,
    folder: Callable[[InstallScope], str],
    file: str,
    project_file: str,
    events: Events,
    prompt: str,
    extra: Mapping[str, Any] | None = None,
    needs: Callable[[InstallScope], str | None] = nothing_needed,
) -> Agent:
    """An agent with such hooks: in `file` of its own folder, or in `project_file` of a project.

    `prompt` is the event that tells of a prompt, `extra` what else each of its hooks has.
    """

    def path(place: InstallScope) -> str:
        if place.project is not None:
            return os.path.join(place.project, project_file)
        return os.path.join(folder(place), file)

    def rehearsal(directory: str) -> dict[str, object]:
        told = {"session_id": "rehearsal", "prompt": "A rehearsal."}
        return {"hook_event_name": prompt, "cwd": directory, **told}

    return Agent(
        name=name,
        title=title,
        program=program,
        folder=folder,
        file=path,
        written=partial(written, agent=name, events=events, prompt=prompt, extra=extra),
        removed=partial(removed, agent=name),
        commands=partial(commands, agent=name),
        rehearsal=rehearsal,
        needs=needs,
    )


def command(agent: str, mulligan: HookCommand, *, may_stop: bool) -> str:
    """The command of a hook. The shell's name for itself tells whose it is."""
    script = (AT_PROMPTS if may_stop and mulligan.strict else NEVER).format(agent=agent)
    return shlex.join(["sh", "-c", script, "mulligan", *mulligan.words])


def is_ours(agent: str, hook: Any) -> bool:
    given = hook.get("command") if isinstance(hook, dict) else None
    if not isinstance(given, str) or "mulligan" not in given:
        return False
    return re.search(rf"\bhook {re.escape(agent)}\b", given) is not None


def written(
    text: str | None,
    mulligan: HookCommand,
    *,
    agent: str,
    events: Events,
    prompt: str,
    extra: Mapping[str, Any] | None = None,
) -> str:
    """The file with a hook of ours for each event: replaced where one is, else added last.

    Last, and in its place, because a hook's position is part of what some agents trust.
    """
    text = text if text is not None and text.strip() else "{}\n"
    for event, timeout in events.items():
        said = command(agent, mulligan, may_stop=event == prompt)
        hook = {**(extra or {}), "type": "command", "command": said, "timeout": timeout}
        path = ("hooks", event)
        found = json_text.read(text).at(path)
        mine = [
            each
            for group in (found.parts if found is not None else ())
            for each in _hooks(group)
            if is_ours(agent, each.content)
        ]
        if not mine:
            text = json_text.appended(text, path, {"hooks": [hook]})
        elif mine[0].content != hook:
            text = json_text.replaced(text, mine[0], JSON_INDENT_DEPTH, hook)
    return text


def removed(text: str, *, agent: str) -> str | None:
    """The file without our hooks; `None` if nothing else is in it.

    A file without any stays as it is, were it empty.
    """
    if not commands(text, agent=agent):
        return text
    hooks = json_text.read(text).at(("hooks",))
    for event in hooks.names if hooks is not None else ():
        text = json_text.without(text, ("hooks", event), lambda group: _all_ours(agent, group))
        text = _without_singles(text, event, agent)
    return text if json_text.read(text).content else None


def commands(text: str, *, agent: str) -> list[str]:
    """The commands in the file that are ours."""
    hooks = json_text.read(text).at(("hooks",))
    found = [
        each.content["command"]
        for groups in (hooks.parts if hooks is not None else ())
        for group in groups.parts
        for each in _hooks(group)
        if is_ours(agent, each.content)
    ]
    return list(dict.fromkeys(found))


def _hooks(group: json_text.Value) -> tuple[json_text.Value, ...]:
    found = group.at(("hooks",)) if isinstance(group.content, dict) else None
    return found.parts if found is not None else ()


def _all_ours(agent: str, group: Any) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(hooks, list) and bool(hooks) and all(is_ours(agent, one) for one in hooks)


def _without_singles(text: str, event: str, agent: str) -> str:
    """Somebody put ours beside their own in one group: theirs stays."""
    while True:
        groups = json_text.read(text).at(("hooks", event))
        mixed = [
            hooks
            for group in (groups.parts if groups is not None else ())
            if (hooks := group.at(("hooks",))) is not None
            and any(is_ours(agent, one) for one in hooks.content)
        ]
        if not mixed:
            return text
        index = next(at for at, one in enumerate(mixed[0].content) if is_ours(agent, one))
        text = json_text.cut(text, mixed[0], index)
