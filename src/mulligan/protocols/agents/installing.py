"""Install and uninstall hooks, in one configuration file an agent.

Mulligan's home keeps what each file held before, with a hash of what was written. `uninstall`
restores the earlier bytes of a file that is unchanged since; from a changed one it removes only
our hooks.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from mulligan.errors import UsageError
from mulligan.protocols.agents.config_file import CODING, ConfigFile
from mulligan.protocols.agents.shape import Agent, HookCommand, InstallScope, Trust
from mulligan.store.fsync import make_directories

RECORD = "installed.json"
Removed = Callable[[str], str | None]
Result = TypeVar("Result")


class Change(NamedTuple):
    """The text of a file before and after; None stands for no file."""

    path: str
    before: str | None
    after: str | None


class Outcome(NamedTuple):
    """The changes for an agent, done or planned; `needs` is what is left to the user."""

    agent: str
    changes: tuple[Change, ...]
    needs: str | None = None
    note: str | None = None


def our_command() -> tuple[str, ...]:
    """Return the command that runs this Mulligan from any directory."""
    beside = os.path.join(os.path.dirname(sys.executable), "mulligan")
    started = os.path.abspath(sys.argv[0])
    for path in (started, beside, shutil.which("mulligan") or ""):
        # A relative entry of PATH would resolve in the folder that the agent works in.
        is_program = os.path.isabs(path) and os.access(path, os.X_OK)
        if os.path.basename(path) in ("mulligan", "mull") and is_program:
            return (path,)
    # Without -P Python would import modules from the agent's project first.
    return (sys.executable, "-P", "-m", "mulligan")


def install(
    agent: Agent, place: InstallScope, mulligan: HookCommand, home: str, *, preview: bool
) -> Outcome:
    """Write our hooks into the agent's file, unless they are there already.

    Raises `UsageError` for a file that cannot be parsed, and leaves it unchanged.
    """
    elsewhere = _installed_for_the_user(agent, place)
    if elsewhere is not None:
        return Outcome(agent.name, (), note=f"it is installed for the user already, in {elsewhere}")
    file = config_file(agent, place)
    path, before = file.path, file.read()
    after = _parse(path, lambda: agent.written(before, mulligan))
    change = Change(path, before, after)
    if not preview and before != after:
        with _remembering(home, agent.name, file):
            file.write(after)
    changes = [change] if before != after else []
    needs, note = agent.needs(place), None
    if agent.trust is not None and preview:
        note = agent.trust.note
    elif agent.trust is not None:
        commands = own_commands(agent, mulligan)
        trust_changes, needs = _grant_trust(agent, agent.trust, place, commands, home)
        changes += trust_changes
    return Outcome(agent.name, tuple(changes), needs, note)


def uninstall(agent: Agent, place: InstallScope, home: str, *, preview: bool) -> Outcome:
    """Remove what `install` wrote; later changes by others stay."""
    changes = []
    for file, removed in _files(agent, place):
        before, known = file.read(), _record(home).get(file.path)
        if before is not None:
            after = _without_ours(file.path, before, known, removed)
            if after != before:
                changes.append(Change(file.path, before, after))
                if not preview:
                    file.write(after)
        if known is not None and not preview:
            # Only folders that `install` made, and only empty ones.
            file.remove_folders(known["folders"])
            _forget(home, file.path)
    return Outcome(agent.name, tuple(changes))


def config_file(agent: Agent, place: InstallScope) -> ConfigFile:
    """Return the file that the hooks of an agent go into."""
    return ConfigFile(agent.file(place), place.project)


def own_commands(agent: Agent, mulligan: HookCommand) -> frozenset[str]:
    """Return the commands that `install` writes."""
    return frozenset(agent.commands(agent.written(None, mulligan)))


def user_place(place: InstallScope) -> InstallScope:
    """Return the scope of the user, without the project."""
    return place._replace(project=None)


def _installed_for_the_user(agent: Agent, place: InstallScope) -> str | None:
    """Return the user's file if it has our hooks: they cover every project."""
    if place.project is None:
        return None
    file = config_file(agent, user_place(place))
    path, text = file.path, file.read()
    return path if text is not None and _parse(path, lambda: agent.commands(text)) else None


def _grant_trust(
    agent: Agent, trust: Trust, place: InstallScope, commands: frozenset[str], home: str
) -> tuple[list[Change], str | None]:
    """Have the agent trust our hooks; return the change, and what is left to the user."""
    config = trust.config_file(place)
    before = config.read()
    with _remembering(home, agent.name, config):
        needs = trust.grant(place, agent.file(place), commands)
    after = config.read()
    return [Change(config.path, before, after)] if before != after else [], needs


def _files(agent: Agent, place: InstallScope) -> Iterator[tuple[ConfigFile, Removed]]:
    """Yield the files that may hold something of ours, with the function that removes it."""
    file = config_file(agent, place)
    if (trust := agent.trust) is not None:
        yield trust.config_file(place), lambda text: trust.revoke(text, file.path)
    yield file, agent.removed


def _parse(path: str, work: Callable[[], Result]) -> Result:
    try:
        return work()
    except ValueError as problem:
        raise UsageError(f"Cannot edit {path}: {problem} Nothing was changed.") from problem


def _without_ours(
    path: str, present: str, known: dict[str, Any] | None, removed: Removed
) -> str | None:
    """Return the text without our hooks; the earlier bytes if it is unchanged since."""
    if known is not None and known["after"] == _digest(present):
        before = known["before"]
        return None if before is None else base64.b64decode(before).decode(*CODING)
    without = _parse(path, lambda: removed(present))
    if without is None and known is not None and known["before"] is not None:
        # The file existed before: it stays, empty.
        return "{}\n" if path.endswith(".json") else ""
    return without


@contextlib.contextmanager
def _remembering(home: str, agent: str, file: ConfigFile) -> Iterator[None]:
    """Record what a file held before the block writes to it."""
    record = _record(home)
    path, present = file.path, file.read()
    known = record.get(path)
    before: Any = None
    if known is not None and known["after"] == _digest(present):
        before, folders = known["before"], known["folders"]
    else:
        folders = list(file.missing_folders())
        if present is not None:
            content = present.encode(*CODING)
            before = base64.b64encode(content).decode()
    yield
    after = file.read()
    if after == present:
        return
    _save(
        home,
        _record(home)
        | {path: {"agent": agent, "before": before, "after": _digest(after), "folders": folders}},
    )


def _digest(text: str | None) -> str | None:
    if text is None:
        return None
    return sha256(text.encode(*CODING)).hexdigest()


def _record(home: str) -> dict[str, Any]:
    try:
        with open(os.path.join(home, RECORD), encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _forget(home: str, path: str) -> None:
    record = _record(home)
    if record.pop(path, None) is not None:
        _save(home, record)


def _save(home: str, record: dict[str, Any]) -> None:
    make_directories(home)
    path = os.path.join(home, RECORD)
    if not record:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(record, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
