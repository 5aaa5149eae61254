"""The real agents do the scripted task, headless, without anything else of ours in between.

This shows that the harness works: what later goes wrong with hooks installed is theirs.
"""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import programs
import pytest
import task
from programs import Agent, NotInstalled, Place, Program
from script import Script, Step, Turn, read, shell, write
from scripted_model import Request, ScriptedModel

HALF_WAY = Script(
    (
        Turn(
            "Begin.",
            (
                Step((write("new.txt", "new\n"),)),
                Step((shell("rm old.txt"),)),
                Step((shell("rm prices.txt"),), hold="half way"),
            ),
        ),
        Turn("Go on.", (Step((read("new.txt"),)),), "Went on."),
    )
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The agent's, which is not the test's."""
    path = tmp_path / "home of the agent"
    path.mkdir()
    return path


def test_agent_does_the_task_in_two_turns(agent: Agent, project: Path, home: Path) -> None:
    task.prepare(project)
    with ScriptedModel(task.SCRIPT, agent.toolbox, project) as model:
        place = Place(project, home, model.url)

        first = agent.run(place, task.FIRST)
        assert succeeded(first, "The shop is tidy.")
        assert task.files(project) == task.FILES[1]

        second = agent.run(place, task.SECOND, resume=True)
        assert succeeded(second, "The shop is open.")
        assert task.files(project) == task.FILES[2]

    assert steps(model) == [
        *(f"step 0.{number}" for number in range(7)),
        *("final 0", "step 1.0", "step 1.1", "step 1.2", "final 1"),
    ]
    assert "missing.txt: No such file" in json.dumps(at(model, "final 0").results)
    # The second turn went on with the conversation of the first.
    assert task.FIRST in json.dumps(at(model, "final 1").body)


def test_agent_killed_half_way_can_be_resumed(agent: Agent, project: Path, home: Path) -> None:
    task.prepare(project)
    with ScriptedModel(HALF_WAY, agent.toolbox, project) as model:
        place = Place(project, home, model.url)
        with agent.start(place, "Begin.") as process:
            model.wait_until_held("half way")
            programs.kill(process)

        assert process.returncode == -signal.SIGKILL
        assert (project / "new.txt").read_text() == "new\n"
        assert not (project / "old.txt").exists()
        assert (project / "prices.txt").exists()
        assert succeeded(agent.run(place, "Go on.", resume=True), "Went on.")

    assert "Begin." in json.dumps(at(model, "final 1").body)


def test_agent_that_cannot_be_had_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "CACHE", tmp_path)
    nowhere = Program("nothing", f"file:{tmp_path}/nowhere", "1.0.0")

    for _ in range(2):
        with pytest.raises(NotInstalled, match=r"nowhere@1\.0\.0 cannot be installed"):
            nowhere.install()


def succeeded(done: subprocess.CompletedProcess[str], last: str) -> bool:
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.endswith(f"{last}\n"), f"{done.stdout}\n{done.stderr}"
    return True


def steps(model: ScriptedModel) -> list[str]:
    """What was played of the script, without asides and what is not there."""
    return [each.played for each in model.requests if each.played not in ("aside", "none")]


def at(model: ScriptedModel, played: str) -> Request:
    (request,) = (each for each in model.requests if each.played == played)
    return request
