"""Command hooks in a JSON file: for each event a list of groups, each with its hooks.

    {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]}}

The agent runs the command in a shell, which exits with 0 even if Mulligan is missing, cannot start
or dies. With `strict` a prompt is refused in the hook's answer.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mulligan.protocols.agents import json_text
from mulligan.protocols.agents.shape import (
    Agent,
    HookCommand,
    InstallScope,
    Resume,
    Trust,
    nothing_needed,
)

Timeouts = Mapping[str, float]
"""By event, how long the agent waits for the hook, in the agent's unit."""

JSON_INDENT_DEPTH = 5
"""The nesting depth of a hook in the file."""

NEVER = 'exec 2>/dev/null; "$@" hook {agent} || true'
AT_PROMPTS = '"$@" hook {agent} --strict || exit 2'
"""With `strict`: a prompt that Mulligan did not record is refused."""


def agent(
    name: str,
    *,
    title: str,
    program: str,
    folder: Callable[[InstallScope], str],
    file: str,
    project_file: str,
    timeouts: Timeouts,
    prompt: str,
    resume: Resume,
    extra: Mapping[str, Any] | None = None,
    needs: Callable[[InstallScope], str | None] = nothing_needed,
    trust: Trust | None = None,
) -> Agent:
    """Describe an agent with hooks in `file` of its folder, or in `project_file` of a project.

    `prompt` is the name of its prompt event, `extra` are further fields of each hook.
    """

    def path(place: InstallScope) -> str:
        if place.project is not None:
            return os.path.join(place.project, project_file)
        return os.path.join(folder(place), file)

    def rehearsal(directory: str) -> dict[str, object]:
        event = {"session_id": "rehearsal", "prompt": "A rehearsal."}
        return {"hook_event_name": prompt, "cwd": directory, **event}

    return Agent(
        name=name,
        title=title,
        program=program,
        folder=folder,
        file=path,
        written=partial(written, agent=name, timeouts=timeouts, prompt=prompt, extra=extra),
        removed=partial(removed, agent=name),
        commands=partial(commands, agent=name),
        rehearsal=rehearsal,
        needs=needs,
        resume=resume,
        trust=trust,
    )


def command(agent: str, mulligan: HookCommand, *, is_prompt: bool) -> str:
    """Return the shell command of a hook; its `$0` is "mulligan", which marks it as ours."""
    script = (AT_PROMPTS if is_prompt and mulligan.strict else NEVER).format(agent=agent)
    return shlex.join(["sh", "-c", script, "mulligan", *mulligan.words])


def is_ours(agent: str, hook: Any) -> bool:
    """Return whether a hook looks like one that we wrote for the agent."""
    command = hook.get("command") if isinstance(hook, dict) else None
    if not isinstance(command, str) or "mulligan" not in command:
        return False
    return re.search(rf"\bhook {re.escape(agent)}\b", command) is not None


def written(
    text: str | None,
    mulligan: HookCommand,
    *,
    agent: str,
    timeouts: Timeouts,
    prompt: str,
    extra: Mapping[str, Any] | None = None,
) -> str:
    """Return the text with our hook for each event: replaced in place, else appended.

    Other hooks keep their positions, because some agents trust a hook by its position.
    """
    text = text if text is not None and text.strip() else "{}\n"
    for event, timeout in timeouts.items():
        shell_command = command(agent, mulligan, is_prompt=event == prompt)
        hook = {**(extra or {}), "type": "command", "command": shell_command, "timeout": timeout}
        path = ("hooks", event)
        groups = json_text.read(text).at(path)
        ours = [
            each
            for group in (groups.parts if groups is not None else ())
            for each in _hooks(group)
            if is_ours(agent, each.content)
        ]
        if not ours:
            text = json_text.appended(text, path, {"hooks": [hook]})
        elif ours[0].content != hook:
            text = json_text.replaced(text, ours[0], JSON_INDENT_DEPTH, hook)
    return text


def removed(text: str, *, agent: str) -> str | None:
    """Return the text without our hooks; None if nothing else is in it.

    A text without our hooks is returned unchanged, even if it is empty.
    """
    if not commands(text, agent=agent):
        return text
    hooks = json_text.read(text).at(("hooks",))
    for event in hooks.names if hooks is not None else ():
        text = json_text.without(text, ("hooks", event), lambda group: _all_ours(agent, group))
        text = _cut_from_mixed_groups(text, event, agent)
    return text if json_text.read(text).content else None


def commands(text: str, *, agent: str) -> list[str]:
    """List the commands in the text that are ours."""
    hooks = json_text.read(text).at(("hooks",))
    ours = [
        each.content["command"]
        for groups in (hooks.parts if hooks is not None else ())
        for group in groups.parts
        for each in _hooks(group)
        if is_ours(agent, each.content)
    ]
    return list(dict.fromkeys(ours))


def _hooks(group: json_text.Value) -> tuple[json_text.Value, ...]:
    hooks = group.at(("hooks",)) if isinstance(group.content, dict) else None
    return hooks.parts if hooks is not None else ()


def _all_ours(agent: str, group: Any) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(hooks, list) and bool(hooks) and all(is_ours(agent, one) for one in hooks)


def _cut_from_mixed_groups(text: str, event: str, agent: str) -> str:
    """Remove our hooks from groups in which the user has others."""
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
