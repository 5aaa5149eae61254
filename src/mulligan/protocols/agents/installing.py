"""Installing and taking back: one file an agent, merged into, and remembered as it was.

What a file held before is kept in Mulligan's home together with a hash of what was written. A file
that still is what was written goes back to the very bytes from before; one that was changed since
keeps the changes, and loses only what is ours.
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
from mulligan.protocols.agents import codex_trust
from mulligan.protocols.agents.config_file import CODING, ConfigFile
from mulligan.protocols.agents.shape import Agent, HookCommand, InstallScope
from mulligan.store.fsync import make_directories

RECORD = "installed.json"
Removed = Callable[[str], str | None]
Understood = TypeVar("Understood")


class Change(NamedTuple):
    """What is to become of one file. `None` stands for no file."""

    path: str
    before: str | None
    after: str | None


class Outcome(NamedTuple):
    """What was done for an agent, or would be; `needs` is what is left to the user."""

    agent: str
    changes: tuple[Change, ...]
    needs: str | None = None
    note: str | None = None


def our_command() -> tuple[str, ...]:
    """How this very Mulligan is called from anywhere: by the full path of its program."""
    beside = os.path.join(os.path.dirname(sys.executable), "mulligan")
    started = os.path.abspath(sys.argv[0])
    for path in (started, beside, shutil.which("mulligan") or ""):
        # A relative entry of PATH would lead into whatever folder the agent works in.
        is_program = os.path.isabs(path) and os.access(path, os.X_OK)
        if os.path.basename(path) in ("mulligan", "mull") and is_program:
            return (path,)
    # Without -P the agent's project would be looked into first for everything that is imported.
    return (sys.executable, "-P", "-m", "mulligan")


def install(
    agent: Agent, place: InstallScope, mulligan: HookCommand, home: str, *, preview: bool
) -> Outcome:
    """Writes what the agent needs to call us; where it is already, nothing changes.

    Raises `UsageError` for a file that cannot be understood, which stays as it is.
    """
    elsewhere = _installed_for_the_user(agent, place)
    if elsewhere is not None:
        return Outcome(agent.name, (), note=f"it is installed for the user already, in {elsewhere}")
    file = config_file(agent, place)
    path, before = file.path, file.read()
    after = _understood(path, lambda: agent.written(before, mulligan))
    change = Change(path, before, after)
    if not preview and before != after:
        with _remembering(home, agent.name, file):
            file.write(after)
    changes = [change] if before != after else []
    needs, note = agent.needs(place), None
    if agent.name == "codex":
        if preview:
            note = "then Codex is asked to trust these hooks, in its config.toml"
        else:
            trusted, needs = _trusted(place, path, own_commands(agent, mulligan), home)
            changes += trusted
    return Outcome(agent.name, tuple(changes), needs, note)


def uninstall(agent: Agent, place: InstallScope, home: str, *, preview: bool) -> Outcome:
    """Takes back exactly what was written; what others wrote since stays."""
    changes = []
    for file, removed in _files(agent, place):
        before, known = file.read(), _record(home).get(file.path)
        if before is not None:
            after = _taken_back(file.path, before, known, removed)
            if after != before:
                changes.append(Change(file.path, before, after))
                if not preview:
                    file.write(after)
        if known is not None and not preview:
            # Those that we made, and that hold nothing now.
            file.remove_folders(known["folders"])
            _forget(home, file.path)
    return Outcome(agent.name, tuple(changes))


def config_file(agent: Agent, place: InstallScope) -> ConfigFile:
    """The file that the hooks of an agent go into."""
    return ConfigFile(agent.file(place), place.project)


def own_commands(agent: Agent, mulligan: HookCommand) -> frozenset[str]:
    """The very commands that an installation writes."""
    return frozenset(agent.commands(agent.written(None, mulligan)))


def user_place(place: InstallScope) -> InstallScope:
    return place._replace(project=None)


def _installed_for_the_user(agent: Agent, place: InstallScope) -> str | None:
    """The user's own file, if it calls us already: then every project is covered."""
    if place.project is None:
        return None
    file = config_file(agent, user_place(place))
    path, text = file.path, file.read()
    return path if text is not None and _understood(path, lambda: agent.commands(text)) else None


def _trusted(
    place: InstallScope, path: str, commands: frozenset[str], home: str
) -> tuple[list[Change], str | None]:
    """Asks Codex to trust our hooks; gives what changed, and what is left to do if it did not."""
    program = shutil.which("codex", path=place.environment.get("PATH"))
    by_hand = (
        "Codex skips hooks that are not trusted, without a word: start `codex`, "
        "say /hooks, and trust those of Mulligan"
    )
    if program is None:
        return [], by_hand
    config = _config(place)
    before = config.read()
    directory = place.project or place.home
    try:
        with _remembering(home, "codex", config):
            found = codex_trust.trust(program, place.environment, directory, path, commands)
    except codex_trust.CannotAsk as problem:
        return [], f"{by_hand} ({problem})"
    after = config.read()
    changes = [Change(config.path, before, after)] if before != after else []
    if place.project is not None and not found:
        # To trust a folder is the user's to decide.
        return changes, (
            "Codex looks at the hooks of a project only where it trusts the project: start `codex` "
            f"in {place.project}, say that you do, and run `mulligan install codex --project` again"
        )
    return changes, None if found and all(each.is_trusted for each in found) else by_hand


def _config(place: InstallScope) -> ConfigFile:
    """Codex's own settings, which are the user's even for the hooks of a project."""
    folder = place.environment.get("CODEX_HOME") or os.path.join(place.home, ".codex")
    return ConfigFile(os.path.join(folder, "config.toml"), None)


def _files(agent: Agent, place: InstallScope) -> Iterator[tuple[ConfigFile, Removed]]:
    """The files that may hold something of ours, and how it is taken out of each."""
    file = config_file(agent, place)
    if agent.name == "codex":
        yield _config(place), lambda text: codex_trust.distrusted(text, file.path)
    yield file, agent.removed


def _understood(path: str, work: Callable[[], Understood]) -> Understood:
    try:
        return work()
    except ValueError as problem:
        raise UsageError(
            f"{path} is not what its agent would understand: {problem} Nothing was changed."
        ) from problem


def _taken_back(
    path: str, present: str, known: dict[str, Any] | None, removed: Removed
) -> str | None:
    """A file without what is ours: as it was, if nobody has changed it since."""
    if known is not None and known["after"] == _digest(present):
        before = known["before"]
        return None if before is None else base64.b64decode(before).decode(*CODING)
    without = _understood(path, lambda: removed(present))
    if without is None and known is not None and known["before"] is not None:
        # It was there before us: empty, it stays.
        return "{}\n" if path.endswith(".json") else ""
    return without


@contextlib.contextmanager
def _remembering(home: str, agent: str, file: ConfigFile) -> Iterator[None]:
    """Keeps what a file held before something is written to it."""
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
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


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
