"""What the scripted model is to say: turns, each begun by a prompt, of steps with tool calls.

A script does not know which agent plays it. Its calls name a role ("write", "edit", "read",
"shell", "delegate") and the toolbox of the agent turns that into a tool of its own. The same
script can be kept as a JSON file:

    {"turns": [{
        "prompt": "Make a greeting.",
        "steps": [
            {"text": "I write it.", "calls": [{"write": {"path": "a.txt", "content": "Hello\\n"}}]},
            {"calls": [{"shell": {"command": "rm b.txt"}}], "hold": "half way"}
        ],
        "final": "Done."
    }]}
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Call(NamedTuple):
    """One tool call. A role that the toolbox does not know is taken for a tool's own name."""

    role: str
    arguments: Mapping[str, Any]


class Step(NamedTuple):
    """One answer of the model that is not its last: some words, and calls made side by side.

    With a name in `hold` the answer is kept back until somebody releases that name.
    """

    calls: tuple[Call, ...]
    text: str = ""
    hold: str = ""


class Turn(NamedTuple):
    """What follows a prompt: the steps in order, then the final words."""

    prompt: str
    steps: tuple[Step, ...] = ()
    final: str = "Done."
    hold: str = ""


class Script(NamedTuple):
    turns: tuple[Turn, ...]


def write(path: str, content: str) -> Call:
    return Call("write", {"path": path, "content": content})


def edit(path: str, old: str, new: str) -> Call:
    """Replaces the only place where `old` stands. Most agents insist on a read before."""
    return Call("edit", {"path": path, "old": old, "new": new})


def read(path: str) -> Call:
    return Call("read", {"path": path})


def shell(command: str) -> Call:
    return Call("shell", {"command": command})


def delegate(prompt: str) -> Call:
    """Leaves something to a sub-agent: what that does is the turn that begins with this prompt."""
    return Call("delegate", {"prompt": prompt})


def load(path: Path) -> Script:
    """Reads a script from its JSON file; raises ValueError where it holds what is not known."""
    (turns,) = _fields(json.loads(path.read_text()), "turns")
    return Script(tuple(_turn(each) for each in turns))


def _turn(data: Mapping[str, Any]) -> Turn:
    prompt, steps, final, hold = _fields(data, "prompt", steps=(), final="Done.", hold="")
    return Turn(prompt, tuple(_step(each) for each in steps), final, hold)


def _step(data: Mapping[str, Any]) -> Step:
    calls, text, hold = _fields(data, "calls", text="", hold="")
    return Step(
        tuple(Call(role, arguments) for each in calls for role, arguments in each.items()),
        text,
        hold,
    )


def _fields(data: Mapping[str, Any], *needed: str, **defaults: object) -> list[Any]:
    _must_be_none("missing", set(needed) - data.keys(), data)
    _must_be_none("unknown", data.keys() - set(needed) - defaults.keys(), data)
    return [*(data[name] for name in needed), *({**defaults, **data}[name] for name in defaults)]


def _must_be_none(what: str, names: Collection[str], data: Mapping[str, Any]) -> None:
    if names:
        raise ValueError(f"{what} in a script: {', '.join(sorted(names))} in {dict(data)}")
