"""The real agents with Mulligan behind them: everything is recorded, and nothing is different.

Each gets a home of its own, where `mulligan install` is run as a user would; then it does the
scripted task. What Mulligan says about it is asked from the command line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import programs
import pytest
import task
from programs import AGENTS, Place
from script import Script, Step, Turn, edit, read, shell, write
from scripted_model import ScriptedModel
from user import User, calls, changed, pending, person, prompts

# The first turn is done; the second one is killed with a command still to come.
WORK = Script(
    (
        task.SCRIPT.turns[0],
        Turn(
            task.SECOND,
            (
                Step((read("greeting.txt"),)),
                Step((edit("greeting.txt", "Come in.", "We are open."),), "A better greeting."),
                Step((shell("mv left.txt door.txt && rm empty/.keep && rmdir empty"),)),
                Step((shell("rm prices.txt"),), hold="half way"),
            ),
        ),
    )
)
CALLS = {"first": 8, "second": 3}
SHORT = Script(
    (
        Turn(
            "Begin.",
            (Step((write("new.txt", "new\n"),)), Step((shell("rm old.txt"),))),
            "Begun.",
        ),
        Turn("Again.", (), "Understood."),
    )
)


def test_an_agent_is_protected_and_goes_on_as_it_would_without(user: User, tmp_path: Path) -> None:
    alone = tmp_path / "without Mulligan"
    shutil.copytree(user.project, alone, symlinks=True)
    (tmp_path / "another home").mkdir()
    with ScriptedModel(WORK, user.agent.toolbox, alone) as model:
        without = user.agent.run(Place(alone, tmp_path / "another home", model.url), task.FIRST)
    before = configuration(user)
    user.mulligan("install", user.name)
    start = task.files(user.project)

    with ScriptedModel(WORK, user.agent.toolbox, user.project) as model:
        done = user.run(model, task.FIRST)
        # The agent is what it is without Mulligan.
        assert (done.returncode, done.stdout) == (without.returncode, without.stdout), done.stderr
        assert task.files(user.project) == task.files(alone)
        (session,) = user.asked("sessions")["sessions"]
        assert session["agent"] == user.name
        assert calls(user) == CALLS["first"]
        assert pending(user) == changed(start, user.project)

        # The user works too: in a file of their own, and in one that the agent has changed.
        (user.project / "notes.txt").write_text("mine\n")
        with (user.project / "diary.txt").open("r+") as diary:
            text = diary.read()
            diary.seek(0)
            diary.write(f"dear diary\n{text}")
        between = task.files(user.project)

        with user.agent.start(
            user.place(model), task.SECOND, resume=True, environment=user.own
        ) as process:
            model.wait_until_held("half way")
            programs.kill(process)
            process.communicate()

    (again,) = user.asked("sessions")["sessions"]
    assert (again["session"], again["status"]) == (session["session"], "stopped")
    assert calls(user) == CALLS["first"] + CALLS["second"]
    assert prompts(user) == [task.FIRST, task.SECOND]
    assert "door.txt" in pending(user)
    assert "notes.txt" not in pending(user)

    user.mulligan("undo")
    assert task.files(user.project) == between
    user.mulligan("undo")
    mine = {"notes.txt": "mine\n", "diary.txt": "dear diary\nbought pears\n"}
    assert task.files(user.project) == start | mine
    assert not pending(user)
    assert user.asked("verify")["problems"] == []

    levels = {each["subject"]: each for each in user.asked("doctor", code=None)["findings"]}
    assert levels[title(user)]["level"] == "ok", levels[title(user)]
    user.mulligan("uninstall", user.name)
    assert configuration(user) == before or only_its_own(user, before)


def test_a_hook_program_that_is_missing_stops_no_agent(user: User) -> None:
    user.mulligan("install", user.name)
    for path in ours(user):
        words = (sys.executable, os.path.join(os.path.dirname(sys.executable), "mulligan"))
        text = path.read_text()
        for word in words:
            text = text.replace(word, "/nowhere/mulligan")
        path.write_text(text)

    with ScriptedModel(SHORT, user.agent.toolbox, user.project) as model:
        done = user.run(model, "Begin.")

    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Begun.\n")
    assert (user.project / "new.txt").read_text() == "new\n"
    assert not (user.project / "old.txt").exists()


def test_a_strict_user_is_stopped_where_nothing_can_be_recorded(user: User) -> None:
    user.mulligan("install", user.name, "--strict")
    (user.home / "mulligan" / "projects").write_text("not a folder")

    with ScriptedModel(SHORT, user.agent.toolbox, user.project) as model:
        user.run(model, "Begin.")

    assert not [each for each in model.requests if each.played.startswith("step")]
    assert not (user.project / "new.txt").exists()
    assert (user.project / "old.txt").exists()


def test_an_agent_hears_of_what_was_undone(user: User) -> None:
    (user.project / ".mulligan.toml").write_text("[agents]\ntell_rejections = true\n")
    user.mulligan("trust", "--yes")
    user.mulligan("install", user.name)
    with ScriptedModel(SHORT, user.agent.toolbox, user.project) as model:
        user.run(model, "Begin.")
        user.mulligan("discard", "new.txt")
        done = user.run(model, "Again.", resume=True)

    assert done.stdout.endswith("Understood.\n")
    heard = json.dumps(model.requests[-1].body)
    assert "undone some of them, in: new.txt" in heard
    assert "+new" in heard


def test_two_agents_at_once_are_told_apart(project: Path, tmp_path: Path) -> None:
    script = {
        name: Script(
            (
                Turn(
                    f"Work, {name}.",
                    (
                        Step((write(f"{name}.txt", f"by {name}\n"),)),
                        Step((shell(f"echo by {name} > {name}-shell.txt"),), hold=f"{name} 1"),
                        Step((shell(f"echo more >> {name}.txt"),), hold=f"{name} 2"),
                    ),
                ),
            )
        )
        for name in ("claude", "pi")
    }
    users = {name: person(AGENTS[name], project, tmp_path / f"home of {name}") for name in script}
    for one in users.values():
        one.mulligan("install", one.name)
    shared = {"MULLIGAN_HOME": str(tmp_path / "mulligan")}
    start = task.files(project)
    one, two = users["claude"], users["pi"]

    with (
        ScriptedModel(script["claude"], one.agent.toolbox, project) as first,
        ScriptedModel(script["pi"], two.agent.toolbox, project) as second,
        one.agent.start(one.place(first), "Work, claude.", environment=shared) as claude,
        two.agent.start(two.place(second), "Work, pi.", environment=shared) as pi,
    ):
        first.wait_until_held("claude 1")
        second.wait_until_held("pi 1")
        first.release("claude 1")
        first.wait_until_held("claude 2")
        second.release("pi 1")
        second.wait_until_held("pi 2")
        first.release("claude 2")
        assert claude.wait(60) == 0
        second.release("pi 2")
        assert pi.wait(60) == 0

    def mulligan(*arguments: str) -> Any:
        environment = {**os.environ, **shared}
        done = subprocess.run(
            [sys.executable, "-m", "mulligan", "--json", *arguments], cwd=project,
            env=environment, capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        return json.loads(done.stdout)

    ids = {each["agent"]: each["session"] for each in mulligan("sessions")["sessions"]}
    mulligan("discard", "--session", ids["pi"])
    left = start | {"claude.txt": "by claude\nmore\n", "claude-shell.txt": "by claude\n"}
    assert task.files(project) == left
    mulligan("discard", "--session", ids["claude-code"])
    assert task.files(project) == start


@pytest.mark.parametrize("agent", [AGENTS["codex"]], ids=["codex"])
def test_codex_that_lost_its_trust_is_noticed(user: User) -> None:
    def finding() -> dict[str, str]:
        found = user.asked("doctor", code=None)["findings"]
        return next(each for each in found if each["subject"] == "Codex")

    user.mulligan("checkpoint")
    user.mulligan("install", "codex")
    assert finding()["level"] == "ok"

    # Somebody puts a hook of theirs before ours: the position is part of what is trusted.
    path = user.home / ".codex/hooks.json"
    content = json.loads(path.read_text())
    theirs = {"hooks": [{"type": "command", "command": "true", "timeout": 5}]}
    content["hooks"]["Stop"].insert(0, theirs)
    path.write_text(json.dumps(content))
    assert finding()["level"] == "problem"
    assert "not trusted" in finding()["message"]

    user.mulligan("install", "codex")
    assert finding()["level"] == "ok"
    user.mulligan("uninstall", "codex")
    assert json.loads(path.read_text()) == {"hooks": {"Stop": [theirs]}}
    config = user.home / ".codex/config.toml"
    assert not config.exists() or str(path) not in config.read_text()


@pytest.mark.parametrize("agent", [AGENTS["opencode"]], ids=["opencode"])
def test_what_opencode_writes_for_itself_is_not_the_turns(user: User) -> None:
    user.mulligan("install", "opencode", "--project")
    with ScriptedModel(SHORT, user.agent.toolbox, user.project) as model:
        assert user.run(model, "Begin.").returncode == 0
    assert (user.project / ".opencode/.gitignore").exists()
    assert set(pending(user)) == {"new.txt", "old.txt"}


def title(user: User) -> str:
    titles = {"claude-code": "Claude Code", "gemini": "Gemini CLI", "opencode": "OpenCode"}
    return titles.get(user.name, user.name.capitalize() if user.name == "codex" else user.name)


def ours(user: User) -> list[Path]:
    """The files that `install` writes."""
    places = {
        "claude-code": (".claude/settings.json",),
        "codex": (".codex/hooks.json", ".codex/config.toml"),
        "gemini": (".gemini/settings.json",),
        "opencode": (".config/opencode/plugin/mulligan.js",),
        "pi": (".pi/agent/extensions/mulligan.js",),
    }
    return [user.home / name for name in places[user.name] if (user.home / name).exists()]


def configuration(user: User) -> dict[str, str]:
    return {str(path): path.read_text() for path in ours(user)}


def only_its_own(user: User, before: Mapping[str, str]) -> bool:
    """Whether nothing is left but what the agent itself has written since."""
    return not any("mulligan" in text for text in configuration(user).values()) and not before
