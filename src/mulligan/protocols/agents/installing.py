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
from mulligan.protocols.agents.shape import Agent, Mulligan, Place
from mulligan.store.fsync import make_directories

RECORD = "installed.json"
CODEX_MARK = "hook codex"
CODING = ("utf-8", "surrogateescape")
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
        if os.path.basename(path) in ("mulligan", "mull") and os.access(path, os.X_OK):
            return (path,)
    # Without -P the agent's project would be looked into first for everything that is imported.
    return (sys.executable, "-P", "-m", "mulligan")


def install(agent: Agent, place: Place, mulligan: Mulligan, home: str, *, preview: bool) -> Outcome:
    """Writes what the agent needs to call us; where it is already, nothing changes.

    Raises `UsageError` for a file that cannot be understood, which stays as it is.
    """
    elsewhere = _installed_for_the_user(agent, place)
    if elsewhere is not None:
        return Outcome(agent.name, (), note=f"it is installed for the user already, in {elsewhere}")
    path = agent.file(place)
    before = read(path)
    after = _understood(path, lambda: agent.written(before, mulligan))
    change = Change(path, before, after)
    if not preview and before != after:
        with _remembering(home, agent.name, path):
            write(path, after)
    changes = [change] if before != after else []
    needs, note = agent.needs(place), None
    if agent.name == "codex":
        if preview:
            note = "then Codex is asked to trust these hooks, in its config.toml"
        else:
            trusted, needs = _trusted(place, path, home)
            changes += trusted
    return Outcome(agent.name, tuple(changes), needs, note)


def uninstall(agent: Agent, place: Place, home: str, *, preview: bool) -> Outcome:
    """Takes back exactly what was written; what others wrote since stays."""
    changes = []
    for path, removed in _files(agent, place):
        before, known = read(path), _record(home).get(path)
        if before is not None:
            after = _taken_back(path, before, known, removed)
            if after != before:
                changes.append(Change(path, before, after))
                if not preview:
                    write(path, after)
        if known is not None and not preview:
            for folder in known["folders"]:
                # Those that we made, and that hold nothing now.
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            _forget(home, path)
    return Outcome(agent.name, tuple(changes))


def read(path: str) -> str | None:
    """A file's text; `None` if there is none. Odd bytes come back as they were by `write`."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write(path: str, text: str | None) -> None:
    """Replaces a file in one step, or removes it. One behind a link is changed where it lies."""
    path = os.path.realpath(path)
    if text is None:
        os.unlink(path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "x", encoding="utf-8", errors="surrogateescape", newline="") as file:
            if os.path.exists(path):
                os.chmod(temporary, os.stat(path).st_mode & 0o7777)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def user_place(place: Place) -> Place:
    return place._replace(project=None)


def _installed_for_the_user(agent: Agent, place: Place) -> str | None:
    """The user's own file, if it calls us already: then every project is covered."""
    if place.project is None:
        return None
    path = agent.file(user_place(place))
    text = read(path)
    return path if text is not None and _understood(path, lambda: agent.commands(text)) else None


def _trusted(place: Place, path: str, home: str) -> tuple[list[Change], str | None]:
    """Asks Codex to trust our hooks; gives what changed, and what is left to do if it did not."""
    program = shutil.which("codex", path=place.environment.get("PATH"))
    by_hand = (
        "Codex skips hooks that are not trusted, without a word: start `codex`, "
        "say /hooks, and trust those of Mulligan"
    )
    if program is None:
        return [], by_hand
    config = _config(place)
    before = read(config)
    directory = place.project or place.home
    try:
        with _remembering(home, "codex", config):
            found = codex_trust.trust(program, place.environment, directory, path, CODEX_MARK)
    except codex_trust.CannotAsk as problem:
        return [], f"{by_hand} ({problem})"
    after = read(config)
    changes = [Change(config, before, after)] if before != after else []
    if place.project is not None and not found:
        # To trust a folder is the user's to decide.
        return changes, (
            "Codex looks at the hooks of a project only where it trusts the project: start `codex` "
            f"in {place.project}, say that you do, and run `mulligan install codex --project` again"
        )
    return changes, None if found and all(each.is_trusted for each in found) else by_hand


def _config(place: Place) -> str:
    folder = place.environment.get("CODEX_HOME") or os.path.join(place.home, ".codex")
    return os.path.join(folder, "config.toml")


def _files(agent: Agent, place: Place) -> Iterator[tuple[str, Removed]]:
    """The files that may hold something of ours, and how it is taken out of each."""
    path = agent.file(place)
    if agent.name == "codex":
        yield _config(place), lambda text: codex_trust.distrusted(text, path) or None
    yield path, agent.removed


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
def _remembering(home: str, agent: str, path: str) -> Iterator[None]:
    """Keeps what a file held before something is written to it."""
    record = _record(home)
    present = read(path)
    known = record.get(path)
    before: Any = None
    if known is not None and known["after"] == _digest(present):
        before, folders = known["before"], known["folders"]
    else:
        folders = list(_missing_folders(path))
        if present is not None:
            content = present.encode(*CODING)
            before = base64.b64encode(content).decode()
    yield
    after = read(path)
    if after == present:
        return
    _save(
        home,
        _record(home)
        | {path: {"agent": agent, "before": before, "after": _digest(after), "folders": folders}},
    )


def _missing_folders(path: str) -> Iterator[str]:
    """The folders that will be made for a file, innermost first."""
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        yield folder
        folder = os.path.dirname(folder)


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
