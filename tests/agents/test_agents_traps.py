"""The real agents where they are awkward: what their hooks do not see, and what comes in between.

Whatever an agent does, each change is in its session, nothing is there twice, and all of it can be
taken back.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import programs
import pytest
import task
from programs import AGENTS, SANDBOXED
from script import Script, Step, Turn, delegate, edit, read, shell, write
from scripted_model import ScriptedModel
from user import User, changed, entries, pending, prompts

BEGIN = Turn("Begin.", (Step((write("new.txt", "new\n"),)), Step((shell("rm old.txt"),))), "Begun.")
AGAIN = Turn("Once more.", (), "Understood.")
DELEGATING = ("claude", "codex-code-mode", "gemini", "opencode")
COMPACTING = {"claude": "/compact", "codex": "", "gemini": "", "opencode": "", "pi": ""}
"""Agents, and what makes them do it at a prompt, if they do not by themselves."""
DEAF = {"claude": "--bare", "opencode": "--pure", "pi": "--no-extensions"}
"""Agents, and the option with which they call nobody."""
ENDED = ("success", "error")
UNTRUSTED = 55
"""What Gemini CLI exits with."""


def agents(names: object) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("agent", [AGENTS[each] for each in names], ids=list(names))


@agents(DELEGATING)
def test_what_a_sub_agent_does_belongs_to_the_turn(user: User) -> None:
    helped = "[ -e helped.txt ] && [ ! -e old.txt ]"
    steps = (
        Step((write("main.txt", "main\n"),)),
        Step((delegate("Please help out."),)),
        # Codex does not wait for its helpers.
        Step((shell(f"until {helped}; do sleep 0.1; done; echo after >> main.txt"),)),
    )
    help_out = (Step((write("helped.txt", "helped\n"),)), Step((shell("rm old.txt"),)))
    script = Script((Turn("Begin.", steps, "Done."), Turn("Please help out.", help_out, "Helped.")))
    user.mulligan("install", user.name)
    start = task.files(user.project)

    with ScriptedModel(script, user.agent.toolbox, user.project) as model:
        done = user.run(model, "Begin.")

    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    (session,) = user.asked("sessions")["sessions"]
    assert session["title"] != "Please help out."
    assert pending(user) == changed(start, user.project)
    assert {"main.txt", "helped.txt", "old.txt"} == set(pending(user))
    assert len(entries(user, "step_snapshot")) == 1
    # What it said and called stands beside the conversation, below the call that it was sent with.
    told = user.asked("session", "show", "--full", "--all-branches")["entries"]
    aside = [each for each in told if each["off_path"]]
    kinds = {"tool_call", "tool_result", "file_edit", "assistant_output"}
    if user.name == "gemini":
        kinds -= {"tool_call"}  # its hooks do not say whose calls they are
    assert kinds <= {each["type"] for each in aside}
    # Gemini CLI asks for it twice.
    assert {each["content"] for each in aside if each["type"] == "assistant_output"} == {"Helped."}
    assert len({each["data"]["call"] for each in told if each["type"] == "tool_call"}) == len(
        [each for each in told if each["type"] == "tool_call"]
    )
    user.mulligan("undo")
    assert task.files(user.project) == start
    assert user.asked("verify")["problems"] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@agents(["claude", "codex", "gemini", "opencode", "pi"])
def test_an_interrupted_turn_and_what_its_command_still_does_are_the_agents(
    user: User, number: signal.Signals
) -> None:
    """Some agents end their commands, some leave them running, some wait for them."""
    long = shell("echo $$ > begun.txt; sleep 3; echo late > late.txt")
    script = Script((Turn("Begin.", (Step((write("new.txt", "new\n"),)), Step((long,)))), AGAIN))
    user.mulligan("install", user.name)
    start = task.files(user.project)

    with ScriptedModel(script, user.agent.toolbox, user.project) as model:
        with user.agent.start(user.place(model), "Begin.", environment=user.own) as process:
            begun = user.project / "begun.txt"
            wait_for(lambda: begun.exists() and bool(begun.read_text().strip()))
            process.send_signal(number)
            try:
                process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                programs.kill(process)
                raise
        shell_of_it = int(begun.read_text())
        wait_for(lambda: not Path(f"/proc/{shell_of_it}").exists())
        done = user.run(model, AGAIN.prompt, resume=True)
        assert done.stdout.endswith("Understood.\n"), done.stderr

    (session,) = user.asked("sessions")["sessions"]
    assert prompts(user) == ["Begin.", AGAIN.prompt]
    assert pending(user) == changed(start, user.project)
    assert {each["data"]["status"] for each in entries(user, "tool_call")} <= set(ENDED)
    user.mulligan("discard", "--session", session["session"])
    assert task.files(user.project) == start
    assert user.asked("verify")["problems"] == []


@agents(AGENTS)
def test_a_call_that_is_refused_leaves_nothing_open(user: User) -> None:
    """Of an edit that cannot be made there is no end to be heard, or not even a beginning."""
    steps = (
        Step((read("prices.txt"),)),
        Step((edit("prices.txt", "bananas 1", "bananas 2"),)),
        Step((shell("echo plums >> diary.txt"),)),
    )
    user.mulligan("install", user.name)
    with ScriptedModel(
        Script((Turn("Begin.", steps, "Done."),)), user.agent.toolbox, user.project
    ) as model:
        done = user.run(model, "Begin.")

    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert pending(user) == {"diary.txt": "modified"}
    assert {each["data"]["status"] for each in entries(user, "tool_call")} <= set(ENDED)
    (session,) = user.asked("sessions")["sessions"]
    assert session["status"] in ("stopped", "waiting_input")


@agents(COMPACTING)
def test_a_compaction_comes_in_its_place_and_loses_nothing(user: User) -> None:
    user.mulligan("install", user.name)
    start = task.files(user.project)
    with ScriptedModel(Script((BEGIN, AGAIN)), user.agent.toolbox, user.project) as model:
        user.run(model, "Begin.")
        if command := COMPACTING[user.agent.name]:
            assert user.run(model, command, resume=True).returncode == 0
        options = compacting(user, model)
        done = user.run(model, AGAIN.prompt, resume=True, options=options)

    assert done.stdout.endswith("Understood.\n"), done.stderr
    (_session,) = user.asked("sessions")["sessions"]
    order = [
        (each["type"], each["content"])
        for each in user.asked("session", "show", "--full", "--all-branches")["entries"]
        if each["type"] in ("compact_marker", "user_input") and each["content"] != "/compact"
    ]
    kinds = [kind for kind, _text in order]
    # pi sums up once more when its turn is over; Gemini CLI does it when the prompt has come.
    at = 2 if user.name == "gemini" else 1
    assert kinds.index("compact_marker") == at
    shown = user.asked("session", "show", "--full")["entries"]
    hidden = [each["content"] for each in shown if each["is_compacted"]]
    assert "Begin." in hidden
    assert user.name == "pi" or AGAIN.prompt not in [each.strip('"') for each in hidden]
    said = [text.strip('"') for kind, text in order if kind == "user_input"]
    assert said == ["Begin.", AGAIN.prompt]
    assert len(entries(user, "tool_call")) == 2
    assert pending(user) == changed(start, user.project)
    assert user.asked("verify")["problems"] == []


@agents(["claude", "codex", "gemini", "opencode", "pi"])
def test_the_command_that_goto_prints_goes_on_with_the_conversation(user: User) -> None:
    more = Turn("Go on.", (Step((shell("rm new.txt"),)),), "Gone on.")
    user.mulligan("install", user.name)
    with ScriptedModel(Script((BEGIN, more, AGAIN)), user.agent.toolbox, user.project) as model:
        user.run(model, "Begin.")
        after_first = task.files(user.project)
        user.run(model, "Go on.", resume=True)
        (session,) = user.asked("sessions")["sessions"]
        _first, second = entries(user, "user_input")

        said = user.ran("goto", second["entry"]).stderr
        assert task.files(user.project) == after_first
        command = said.partition("To continue the conversation: `")[2].partition("`")[0]
        program, *words = shlex.split(command)
        assert program == user.agent.program.name
        # As it stands there, but without a screen.
        done = user.run(model, AGAIN.prompt, options=words)

    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Understood.\n")
    asked = next(each for each in model.requests if each.played == "final 2")
    assert "Begin." in json.dumps(asked.body)
    ids = {each["session"] for each in user.asked("sessions")["sessions"]}
    new = ids - {session["session"]}
    assert len(new) == (1 if "fork" in command else 0)
    went_on = new.pop() if new else session["session"]
    told = user.asked("session", "show", went_on, "--full", "--all-branches")["entries"]
    said_then = [each["content"].strip('"') for each in told if each["type"] == "user_input"]
    assert said_then == ["Begin.", "Go on.", AGAIN.prompt]
    times = [each["created_at"] for each in told]
    assert times == sorted(set(times))
    assert user.asked("verify")["problems"] == []


@pytest.mark.parametrize("agent", [SANDBOXED], ids=["codex"])
def test_codex_in_its_own_sandbox_is_protected(user: User) -> None:
    """While a command runs there, folders lie about in the project that are nobody's work."""
    user.mulligan("install", "codex")
    start = task.files(user.project)
    waits = "ls -a > seen.txt; until [ -e go.txt ]; do sleep 0.1; done; rm old.txt go.txt"
    steps = (
        Step((write("new.txt", "new\n"),)),
        Step((shell("touch .git/forbidden"),)),
        Step((shell(waits),)),
    )
    script = Script((Turn("Begin.", steps, "Done."),))

    with (
        ScriptedModel(script, user.agent.toolbox, user.project) as model,
        user.agent.start(user.place(model), "Begin.", environment=user.own) as process,
    ):
        seen = user.project / "seen.txt"
        wait_for(lambda: seen.exists() and ".agents" in seen.read_text())
        # A look in the middle of it, as by another agent's hook.
        user.mulligan("checkpoint")
        (user.project / "go.txt").touch()
        output, errors = process.communicate(timeout=60)

    assert (process.returncode, output) == (0, "Done.\n"), errors
    assert not (user.project / ".git/forbidden").exists()
    assert "Read-only file system" in json.dumps(model.requests[-1].results)
    assert pending(user) == changed(start, user.project)
    assert set(pending(user)) == {"new.txt", "old.txt", "seen.txt"}
    user.mulligan("undo")
    assert task.files(user.project) == start
    assert not [name for name in (".agents", ".aws", ".codex") if (user.project / name).exists()]
    assert user.asked("verify")["problems"] == []


@agents(["codex"])
def test_hooks_that_codex_does_not_trust_are_skipped_and_doctor_says_so(user: User) -> None:
    user.mulligan("install", "codex")
    config = user.home / ".codex/config.toml"
    config.write_text("")
    with ScriptedModel(Script((BEGIN,)), user.agent.toolbox, user.project) as model:
        done = user.run(model, "Begin.")
        assert (done.returncode, done.stdout) == (0, "Begun.\n"), done.stderr
        assert "not trusted" in user.ran("doctor", code=None).stdout

        user.mulligan("install", "codex")
        (user.project / "old.txt").write_text("again\n")
        user.run(model, "Begin.")
    assert len(user.asked("sessions")["sessions"]) == 1


@agents(["codex"])
def test_codex_runs_the_hooks_of_a_project_only_where_it_trusts_the_project(user: User) -> None:
    """Which is said at once, and by doctor: Codex itself says nothing."""
    config = user.home / ".codex/config.toml"
    level = f'[projects."{user.project}"]\ntrust_level = '
    user.mulligan("checkpoint")
    assert "trusts the project" in user.ran("install", "codex", "--project").stderr
    assert "does not see the hooks" in user.ran("doctor", code=None).stdout

    config.write_text(f'{level}"trusted"\n')
    assert "Still to do" not in user.ran("install", "codex", "--project").stderr
    with ScriptedModel(Script((AGAIN,)), user.agent.toolbox, user.project) as model:
        user.run(model, AGAIN.prompt)
        (session,) = user.asked("sessions")["sessions"]

        config.write_text(config.read_text().replace('"trusted"', '"untrusted"'))
        assert user.run(model, AGAIN.prompt).stdout == "Understood.\n"

    assert [each["session"] for each in user.asked("sessions")["sessions"]] == [session["session"]]
    assert "does not see the hooks" in user.ran("doctor", code=None).stdout


@agents(["gemini"])
def test_gemini_runs_the_hooks_of_a_project_only_in_a_folder_that_it_trusts(user: User) -> None:
    install = user.ran("install", "gemini", "--project")
    assert "trust the folder" in install.stderr
    with ScriptedModel(Script((BEGIN, AGAIN)), user.agent.toolbox, user.project) as model:
        # With --skip-trust, which every test gives, it works, and calls nobody.
        assert user.run(model, "Begin.").returncode == 0
        assert user.asked("sessions", code=None).get("sessions", []) == []

        # Without it, it does not work at all.
        command = user.agent.command(user.place(model), "Begin.", environment=user.own)
        asking = [each for each in command.arguments if each != "--skip-trust"]
        done = subprocess.run(
            asking, cwd=user.project, env=command.environment, stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == UNTRUSTED, done.stderr

        trusting = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
        user.run(model, AGAIN.prompt, environment=trusting)
    assert len(user.asked("sessions")["sessions"]) == 1


@agents(DEAF)
def test_an_agent_that_was_told_to_call_nobody_works_without_mulligan(user: User) -> None:
    user.mulligan("install", user.name)
    with ScriptedModel(Script((AGAIN,)), user.agent.toolbox, user.project) as model:
        done = user.run(model, AGAIN.prompt, options=[DEAF[user.agent.name]])

    assert done.stdout.endswith("Understood.\n"), done.stderr
    assert user.asked("sessions", code=None).get("sessions", []) == []


def compacting(user: User, model: ScriptedModel) -> list[str]:
    """Makes a model's memory so short that the agent sums up what was said; gives its options.

    OpenCode would do so again and again, and is asked to instead, as by its screen.
    """
    if user.agent.name == "codex":
        return ["-c", "model_auto_compact_token_limit=900"]
    if user.agent.name == "pi":
        settings = {
            "compaction": {"enabled": True, "reserveTokens": 127_500, "keepRecentTokens": 1}
        }
        (user.home / ".pi/agent/settings.json").write_text(json.dumps(settings))
    if user.agent.name == "gemini":
        path = user.home / ".gemini/settings.json"
        settings = json.loads(path.read_text())
        path.write_text(json.dumps(settings | {"model": {"compressionThreshold": 0.00001}}))
    if user.agent.name == "opencode":
        (session,) = user.asked("sessions")["sessions"]
        summarize(user, model, session["session"])
    return []


def summarize(user: User, model: ScriptedModel, session: str) -> None:
    """What /compact does: a request to OpenCode's own server."""
    command = user.agent.command(user.place(model), "", environment=user.own)
    with subprocess.Popen(
        [command.arguments[0], "serve", "--port", "0"], cwd=user.project, env=command.environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            said = (re.search(r"listening on (http://\S+)", line) for line in server.stdout)
            url = next(filter(None, said))[1]
            body = json.dumps({"providerID": "scripted", "modelID": programs.MODEL}).encode()
            request = urllib.request.Request(
                f"{url}/session/{session}/summarize", body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert json.load(answer) is True
            wait_for(lambda: bool(entries(user, "compact_marker")))
        finally:
            programs.kill(server)


def wait_for(is_so: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.05)
