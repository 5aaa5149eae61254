"""Check which agents are present, installed and working, for `mulligan doctor`.

A dry run sends this Mulligan a prompt in a scratch project with a scratch home, and expects a
session there. No command from a file is ever run: a command that differs from what this Mulligan
writes is only reported, because it may have come with a cloned repository.
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
from mulligan.protocols.agents import AGENTS, agent, plugin_files
from mulligan.protocols.agents.installing import (
    config_file,
    our_command,
    own_commands,
    user_place,
)
from mulligan.protocols.agents.shape import Agent, HookCommand, InstallScope
from mulligan.workspace.results.files import Finding

REHEARSAL_TIMEOUT_S = 60
RECENT_S = 7 * 86400
MAX_SHOWN_FAILURES = 3
MAX_COMMAND_CHARACTERS = 200


def is_found(one: Agent, place: InstallScope) -> bool:
    """Return whether an agent is on the PATH, or has a configuration folder."""
    program = shutil.which(one.program, path=place.environment.get("PATH"))
    return program is not None or os.path.isdir(one.folder(place))


def agent_findings(home: str, place: InstallScope | None = None) -> Iterator[Finding]:
    """Yield the findings about all agents; `home` is Mulligan's own."""
    place = place or InstallScope(os.path.expanduser("~"), os.environ)
    for name in AGENTS:
        one = agent(name)
        try:
            yield from _about(one, place)
        except (OSError, ValueError) as problem:
            yield Finding(
                "problem", one.title, f"its configuration cannot be read: {problem}",
                f"fix {one.file(place)}",
            )  # fmt: skip
    yield from _recent_hook_failures(home)


def _about(one: Agent, place: InstallScope) -> Iterator[Finding]:
    scopes = [user_place(place), *([place] if place.project is not None else [])]
    installed = []
    for scope in scopes:
        try:
            text = config_file(one, scope).read()
        except UsageError as problem:
            yield Finding("note", one.title, f"not looked at: {problem}")
            continue
        if text is not None and one.commands(text):
            installed.append((scope, text))
    if not installed and is_found(one, place):
        yield Finding(
            "note", one.title, "found, and not protected", f"run `mulligan install {one.name}`"
        )
    if len(installed) > 1:
        yield Finding(
            "problem", one.title, "installed for the user and for the project: each event is sent "
            "twice", f"run `mulligan uninstall {one.name} --project`",
        )  # fmt: skip
    for scope, text in installed:
        yield _about_installed(one, scope, text)


def _about_installed(one: Agent, scope: InstallScope, text: str) -> Finding:
    """Compare the hooks with what this Mulligan writes, do a dry run, and check trust."""
    path = one.file(scope)
    again = f"install {one.name}" + ("" if scope.project is None else " --project")
    fix = f"run `mulligan {again}`"
    ours = HookCommand(our_command(), _is_strict(text))
    expected = one.written(text, ours)
    foreign = _foreign(one, text, ours)
    if expected != text or foreign:
        if _foreign(one, expected, ours):
            fix = f"look at it, run `mulligan un{again}`, then {fix}"
        example = "".join(f": {each}" for each in foreign[:1])
        message = f"{path} is not what this Mulligan writes, and was not tried{example}"
        return Finding("problem", one.title, message, fix)
    if (problem := _rehearse(one, ours)) is not None:
        return Finding("problem", one.title, f"{path}: {problem}", fix)
    if (needs := one.needs(scope)) is not None:
        return Finding("problem", one.title, f"{path} has no effect yet", needs)
    if one.trust is not None:
        problem = one.trust.problem(scope, path, own_commands(one, ours))
        if problem is not None:
            return Finding("problem", one.title, problem, fix)
    return Finding("ok", one.title, f"installed in {path}, and a dry run worked")


def _foreign(one: Agent, text: str, ours: HookCommand) -> list[str]:
    """List the commands that look like ours and are not, shortened."""
    own = own_commands(one, ours)
    return [each[:MAX_COMMAND_CHARACTERS] for each in one.commands(text) if each not in own]


def _is_strict(text: str) -> bool:
    return "--strict || exit 2" in text or f"{plugin_files.STRICT}true;" in text


def _rehearse(one: Agent, ours: HookCommand) -> str | None:
    """Do a dry run of this Mulligan's hook; return what is wrong, if anything."""
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
            return f"a dry run ended with code {done.returncode}: {_last_line(done.stderr)}"
        if not _left_a_session(home):
            return f"a dry run recorded nothing{_noted_reason(home)}"
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


def _noted_reason(home: str) -> str:
    """Return the failure that the hook itself noted, if any."""
    for line in _read_failures(home)[-1:]:
        return f" ({line.get('problem')})"
    return ""


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no output"


def _recent_hook_failures(home: str) -> Iterator[Finding]:
    recent = [
        line for line in _read_failures(home) if float(line.get("at") or 0) > now_s() - RECENT_S
    ]
    if not recent:
        return
    for line in recent[-MAX_SHOWN_FAILURES:]:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(float(line["at"])))
        event = f"{line.get('agent')}, {line.get('kind') or 'an event'}, {when}"
        where = f" in {line['directory']}" if line.get("directory") else ""
        yield Finding("note", "hooks", f"{event}{where}: {line.get('problem')}")
    yield Finding(
        "problem", "hooks", f"{len(recent)} events of the last week were not recorded",
        f"see {os.path.join(home, 'hooks.log')}; delete it when done",
    )  # fmt: skip


def _read_failures(home: str) -> list[dict[str, Any]]:
    """Read the failures that hooks noted."""
    failures = []
    try:
        with open(os.path.join(home, "hooks.log"), encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    content = json.loads(line)
                except ValueError:
                    continue
                if isinstance(content, dict) and isinstance(content.get("at"), int | float):
                    failures.append(content)
    except OSError:
        return []
    return failures
