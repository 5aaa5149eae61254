"""Which agents are here, set up and working; and what `doctor` has to say about each.

A dry run shows that what is configured works: this Mulligan, told of a prompt in a scratch project
with a scratch home, must leave a session there. No command is ever taken from a file: one that is
not byte for byte what this Mulligan writes is reported and not run, for it may have come with a
cloned repository.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from mulligan.clock import now_s
from mulligan.errors import UsageError
from mulligan.protocols.agents import AGENTS, agent, codex_trust, plugin_files
from mulligan.protocols.agents.installing import (
    config_file,
    our_command,
    own_commands,
    user_place,
)
from mulligan.protocols.agents.shape import Agent, HookCommand, InstallScope
from mulligan.workspace.results.files import Finding

REHEARSAL_TIMEOUT_S = 60
LATE_SECONDS = 7 * 86400
MAX_SHOWN_LINES = 3
MAX_COMMAND_CHARS = 200


def is_found(one: Agent, place: InstallScope) -> bool:
    """Whether an agent is on the path, or has ever been run."""
    program = shutil.which(one.program, path=place.environment.get("PATH"))
    return program is not None or os.path.isdir(one.folder(place))


def agent_findings(home: str, place: InstallScope | None = None) -> Iterator[Finding]:
    """What there is to say about agents; `home` is Mulligan's own."""
    place = place or InstallScope(os.path.expanduser("~"), os.environ)
    for name in AGENTS:
        one = agent(name)
        try:
            yield from _about(one, place)
        except (OSError, ValueError) as problem:
            yield Finding(
                "problem", one.title, f"its configuration cannot be read: {problem}",
                f"mend {one.file(place)}",
            )  # fmt: skip
    yield from _late_problems(home)


def _about(one: Agent, place: InstallScope) -> Iterator[Finding]:
    places = [user_place(place), *([place] if place.project is not None else [])]
    installed = []
    for where in places:
        try:
            text = config_file(one, where).read()
        except UsageError as refused:
            yield Finding("note", one.title, f"not looked at: {refused}")
            continue
        if text is not None and one.commands(text):
            installed.append((where, text))
    if not installed:
        if is_found(one, place):
            yield Finding(
                "note", one.title, "found, and not protected", f"run `mulligan install {one.name}`"
            )
        return
    if len(installed) > 1:
        yield Finding(
            "problem", one.title, "installed for the user and for the project: each event is told "
            "twice", f"run `mulligan uninstall {one.name} --project`",
        )  # fmt: skip
    for where, text in installed:
        path = one.file(where)
        again = f"mulligan install {one.name}" + ("" if where.project is None else " --project")
        ours = HookCommand(our_command(), _is_strict(text))
        renewed = one.written(text, ours)
        if renewed != text or _foreign(one, text, ours):
            foreign = "".join(f": {each}" for each in _foreign(one, text, ours)[:1])
            mend = f"run `{again}`"
            if _foreign(one, renewed, ours):
                mend = (
                    f"look at it, run `mulligan un{again.removeprefix('mulligan ')}`, then {mend}"
                )
            yield Finding(
                "problem", one.title,
                f"{path} is not what this Mulligan writes, and was not tried{foreign}", mend,
            )  # fmt: skip
            continue
        problem = _rehearsed(one, ours)
        if problem is not None:
            yield Finding("problem", one.title, f"{path}: {problem}", f"run `{again}`")
            continue
        needs = one.needs(where)
        if needs is not None:
            yield Finding("problem", one.title, f"{path} has no effect yet", needs)
        elif one.name == "codex" and (trust := _without_trust(where, path, ours)) is not None:
            yield Finding("problem", one.title, trust, f"run `{again}`")
        else:
            yield Finding("ok", one.title, f"installed in {path}, and a dry run worked")


def _foreign(one: Agent, text: str, ours: HookCommand) -> list[str]:
    """The commands that look like ours and are not, each cut to a length that can be shown."""
    own = own_commands(one, ours)
    return [each[:MAX_COMMAND_CHARS] for each in one.commands(text) if each not in own]


def _is_strict(text: str) -> bool:
    return "--strict || exit 2" in text or f"{plugin_files.STRICT}true;" in text


def _rehearsed(one: Agent, ours: HookCommand) -> str | None:
    """Run this Mulligan's hook for show; gives what is wrong, if anything."""
    with tempfile.TemporaryDirectory(prefix="mulligan-rehearsal-") as scratch:
        project, home = os.path.join(scratch, "project"), os.path.join(scratch, "home")
        os.mkdir(project)
        try:
            done = subprocess.run(
                [*ours.words, "hook", one.name],
                input=json.dumps(one.rehearsal(os.path.realpath(project))).encode(),
                cwd=project,
                env={**os.environ, "MULLIGAN_HOME": home},
                capture_output=True,
                timeout=REHEARSAL_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            return f"a dry run failed: {problem}"
        if done.returncode:
            return f"a dry run ended with code {done.returncode}: {_last(done.stderr)}"
        if not _left_a_session(home):
            return f"a dry run recorded nothing{_why(home)}"
    return None


def _left_a_session(home: str) -> bool:
    from mulligan.journal import sessions
    from mulligan.journal.db import Database
    from mulligan.journal.migrations import JOURNAL
    from mulligan.workspace.project.location import known_projects

    for project in known_projects(home):
        journal = Database(project.path("journal.sqlite"), JOURNAL)
        try:
            return sessions.by_id(journal, "rehearsal") is not None
        finally:
            journal.close()
    return False


def _why(home: str) -> str:
    """What the hook itself noted, if it came that far."""
    for line in _noted(home)[-1:]:
        return f" ({line.get('problem')})"
    return ""


def _last(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _without_trust(place: InstallScope, path: str, mulligan: HookCommand) -> str | None:
    """Whether Codex has lost its trust in our hooks; `None` if all is well, or nobody can tell."""
    program = shutil.which("codex", path=place.environment.get("PATH"))
    if program is None:
        return None
    try:
        known = codex_trust.hooks(program, place.environment, place.project or place.home)
    except codex_trust.CannotAsk as problem:
        return f"whether its hooks are trusted cannot be told: {problem}"
    commands = own_commands(agent("codex"), mulligan)
    ours = [each for each in known if codex_trust.is_in(each, path) and each.command in commands]
    lost = [each.event for each in ours if not each.is_trusted]
    if not ours:
        return f"it does not see the hooks in {path}"
    if not lost:
        return None
    return f"its hooks are not trusted, and skipped without a word: {', '.join(lost)}"


def _late_problems(home: str) -> Iterator[Finding]:
    late = [line for line in _noted(home) if float(line.get("at") or 0) > now_s() - LATE_SECONDS]
    if not late:
        return
    for line in late[-MAX_SHOWN_LINES:]:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(float(line["at"])))
        told = f"{line.get('agent')}, {line.get('kind') or 'an event'}, {when}"
        where = f" in {line['directory']}" if line.get("directory") else ""
        yield Finding("note", "hooks", f"{told}{where}: {line.get('problem')}")
    yield Finding(
        "problem", "hooks", f"{len(late)} events of the last week were not recorded",
        f"see {os.path.join(home, 'hooks.log')}; delete it when done",
    )  # fmt: skip


def _noted(home: str) -> list[dict[str, Any]]:
    """What hooks wrote down of late."""
    found = []
    try:
        with open(os.path.join(home, "hooks.log"), encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    content = json.loads(line)
                except ValueError:
                    continue
                if isinstance(content, dict) and isinstance(content.get("at"), int | float):
                    found.append(content)
    except OSError:
        return []
    return found
