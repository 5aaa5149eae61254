"""Installing for an agent: what is written, what is kept, and that it can be taken back."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import mulligan
from mulligan.errors import UsageError
from mulligan.protocols.agents import AGENTS, agent, codex_trust, json_text
from mulligan.protocols.agents.finding import agent_findings
from mulligan.protocols.agents.installing import install, our_command, uninstall
from mulligan.protocols.agents.resuming import resume_command
from mulligan.protocols.agents.shape import HookCommand, InstallScope

COMMAND_HOOKS = ("claude-code", "codex", "gemini")
OURS = HookCommand((sys.executable, "-m", "mulligan"))


@pytest.fixture
def place(tmp_path: Path) -> InstallScope:
    """A user without any of the agents on the path."""
    return InstallScope(str(tmp_path), {"PATH": "/nowhere"})


@pytest.mark.parametrize("name", AGENTS)
def test_uninstall_leaves_nothing_where_nothing_was(
    name: str, place: InstallScope, mulligan_home: Path
) -> None:
    before = sorted(Path(place.home).rglob("*"))

    installed(name, place, mulligan_home)
    assert Path(agent(name).file(place)).is_file()
    taken_back(name, place, mulligan_home)

    assert sorted(Path(place.home).rglob("*")) == before
    assert not mulligan_home.exists() or not list(mulligan_home.iterdir())


@pytest.mark.parametrize(
    "before",
    [
        "{}",
        '{"model":"opus"}',
        '{\n    "model": "opus",\n    "hooks": {}\n}\n',
        '{\r\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say"}]}]}\r\n}',
        '{\r\n  "model": "opus"\r\n}\r\n',
        '{\n\t// mine\n\t"a": [1, 2,], /* and this */\n\t"hooks": {"PreToolUse": []},\n}\n',
        "",
        "\n",
    ],
)
@pytest.mark.parametrize("name", COMMAND_HOOKS)
def test_uninstall_leaves_every_byte_as_it_was(
    name: str, before: str, place: InstallScope, mulligan_home: Path
) -> None:
    path = written(agent(name).file(place), before)

    installed(name, place, mulligan_home)
    assert path.read_bytes() != before.encode()
    if "\r\n" in before:
        assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")
    assert json_text.read(path.read_text()).content["hooks"]
    taken_back(name, place, mulligan_home)

    assert path.read_bytes() == before.encode()


@pytest.mark.parametrize("name", AGENTS)
def test_install_twice_changes_nothing_the_second_time(
    name: str, place: InstallScope, mulligan_home: Path
) -> None:
    installed(name, place, mulligan_home)
    path = Path(agent(name).file(place))
    first = path.read_bytes()

    again = install(agent(name), place, OURS, str(mulligan_home), preview=False)

    assert not again.changes
    assert path.read_bytes() == first


@pytest.mark.parametrize("name", AGENTS)
def test_preview_writes_nothing(name: str, place: InstallScope, mulligan_home: Path) -> None:
    shown = install(agent(name), place, OURS, str(mulligan_home), preview=True)

    assert shown.changes and shown.changes[0].after
    assert not list(Path(place.home).iterdir())
    assert not mulligan_home.exists()


@pytest.mark.parametrize("name", COMMAND_HOOKS)
def test_what_others_wrote_stays_in_its_order_and_before_ours(
    name: str, place: InstallScope, mulligan_home: Path
) -> None:
    event = next(iter(agent_events(name)))
    other = {"type": "command", "command": "their-hook"}
    before = {"zebra": 1, "hooks": {event: [{"hooks": [other]}], "Odd": []}, "apple": {"b": 1}}
    path = written(agent(name).file(place), json.dumps(before, indent=3))

    installed(name, place, mulligan_home)

    after = json.loads(path.read_text())
    assert list(after) == ["zebra", "hooks", "apple"]
    assert after["hooks"][event][0] == {"hooks": [other]}
    assert after["hooks"]["Odd"] == []
    assert set(agent_events(name)) < set(after["hooks"])


@pytest.mark.parametrize("name", COMMAND_HOOKS)
def test_uninstall_keeps_what_was_changed_since(
    name: str, place: InstallScope, mulligan_home: Path
) -> None:
    path = written(agent(name).file(place), '{"model": "opus"}\n')
    installed(name, place, mulligan_home)
    changed = json.loads(path.read_text())
    changed["theme"] = "dark"
    event = next(iter(agent_events(name)))
    changed["hooks"][event].append({"hooks": [{"type": "command", "command": "theirs"}]})
    path.write_text(json.dumps(changed, indent=2))

    taken_back(name, place, mulligan_home)

    theirs = [{"hooks": [{"type": "command", "command": "theirs"}]}]
    assert json.loads(path.read_text()) == {
        "model": "opus",
        "hooks": {event: theirs},
        "theme": "dark",
    }


@pytest.mark.parametrize("name", COMMAND_HOOKS)
def test_a_hook_that_somebody_put_beside_ours_stays(
    name: str, place: InstallScope, mulligan_home: Path
) -> None:
    installed(name, place, mulligan_home)
    path = Path(agent(name).file(place))
    changed = json.loads(path.read_text())
    event = next(iter(agent_events(name)))
    changed["hooks"][event][0]["hooks"].append({"type": "command", "command": "theirs"})
    path.write_text(json.dumps(changed))

    taken_back(name, place, mulligan_home)

    theirs = {"hooks": [{"type": "command", "command": "theirs"}]}
    assert json.loads(path.read_text()) == {"hooks": {event: [theirs]}}


@pytest.mark.parametrize("name", COMMAND_HOOKS)
def test_another_place_of_the_program_replaces_the_command_where_it_stands(
    name: str, place: InstallScope, mulligan_home: Path
) -> None:
    installed(name, place, mulligan_home)
    path = Path(agent(name).file(place))
    changed = json.loads(path.read_text())
    event = next(iter(agent_events(name)))
    theirs = {"hooks": [{"type": "command", "command": "theirs"}]}
    changed["hooks"][event].append(theirs)
    path.write_text(json.dumps(changed, indent=2))

    install(agent(name), place, HookCommand(("/else where/mulligan",)), str(mulligan_home),
            preview=False)  # fmt: skip

    after = json.loads(path.read_text())["hooks"][event]
    assert "'/else where/mulligan'" in after[0]["hooks"][0]["command"]
    assert after[1:] == [theirs]


@pytest.mark.parametrize("content", ["[]", "{", '{"hooks": 3}', "no json", '{"hooks": []}'])
@pytest.mark.parametrize("name", COMMAND_HOOKS)
def test_a_file_that_makes_no_sense_is_left_alone(
    name: str, content: str, place: InstallScope, mulligan_home: Path
) -> None:
    path = written(agent(name).file(place), content)

    with pytest.raises(UsageError, match="Nothing was changed"):
        installed(name, place, mulligan_home)

    assert path.read_text() == content


@pytest.mark.parametrize("name", ["opencode", "pi"])
def test_a_plugin_of_somebody_else_is_left_alone(
    name: str, place: InstallScope, mulligan_home: Path
) -> None:
    path = written(agent(name).file(place), "export default () => {};\n")

    with pytest.raises(UsageError, match="not ours"):
        installed(name, place, mulligan_home)
    taken_back(name, place, mulligan_home)

    assert path.read_text() == "export default () => {};\n"


def test_a_link_to_the_settings_stays_a_link(place: InstallScope, mulligan_home: Path) -> None:
    real = written(str(Path(place.home) / "dotfiles/settings.json"), "{}\n")
    path = Path(agent("claude-code").file(place))
    path.parent.mkdir()
    path.symlink_to(real)
    real.chmod(0o600)

    installed("claude-code", place, mulligan_home)
    assert path.is_symlink()
    assert "mulligan" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o600

    taken_back("claude-code", place, mulligan_home)
    assert path.is_symlink()
    assert real.read_text() == "{}\n"


def test_a_project_is_not_installed_for_twice(
    place: InstallScope, project: Path, mulligan_home: Path
) -> None:
    installed("claude-code", place, mulligan_home)
    there = place._replace(project=str(project))

    done = install(agent("claude-code"), there, OURS, str(mulligan_home), preview=False)

    assert not done.changes
    assert "for the user already" in (done.note or "")
    assert not list(project.iterdir())


def test_times_are_in_the_unit_of_each_agent(place: InstallScope, mulligan_home: Path) -> None:
    times = {}
    for name in COMMAND_HOOKS:
        installed(name, place, mulligan_home)
        hooks = json.loads(Path(agent(name).file(place)).read_text())["hooks"]
        times[name] = [each["timeout"] for (group,) in hooks.values() for each in group["hooks"]]

    assert all(1 <= seconds <= 120 for seconds in times["claude-code"] + times["codex"])
    assert all(1000 <= milliseconds <= 120_000 for milliseconds in times["gemini"])
    hooks = json.loads(Path(agent("codex").file(place)).read_text())["hooks"]
    assert {hooks[name][0]["hooks"][0]["timeout"] for name in ("SessionEnd", "Interrupt")} == {3}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", COMMAND_HOOKS)
@pytest.mark.parametrize(
    "program", ["/nowhere/mulligan", "/etc/passwd", "{bad}", "{dies}", "{usage}"]
)
def test_no_command_can_fail_whatever_became_of_the_program(
    name: str, program: str, strict: bool, place: InstallScope, mulligan_home: Path, tmp_path: Path
) -> None:
    """But for the prompt, where the user asked to be stopped."""
    programs = {
        "{bad}": "#!/nowhere/python\n",
        "{dies}": "#!/bin/sh\nkill -9 $$\n",
        "{usage}": "#!/bin/sh\necho no such command >&2; exit 2\n",
    }
    if program in programs:
        body, program = programs[program], str(tmp_path / "it's a mulligan")
        written(program, body).chmod(0o755)
    ours = HookCommand((program,), strict)
    install(agent(name), place, ours, str(mulligan_home), preview=False)
    hooks = json.loads(Path(agent(name).file(place)).read_text())["hooks"]

    for event, ((group,),) in ((event, (groups,)) for event, groups in hooks.items()):
        done = subprocess.run(
            ["sh", "-c", group["hooks"][0]["command"]], input=b"{}", capture_output=True,
            check=False, timeout=60,
        )  # fmt: skip
        is_prompt = event in ("UserPromptSubmit", "BeforeAgent")
        assert done.returncode == (2 if strict and is_prompt else 0), (event, done)
        assert not done.stdout
        assert strict or not done.stderr


def test_nothing_in_a_project_is_taken_for_a_part_of_the_hook(
    project: Path, mulligan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no program beside Python: the module is run, from the agent's directory."""
    monkeypatch.setattr(sys, "argv", ["somebody"])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("mulligan.protocols.agents.installing.os.access", lambda *given: False)
    (project / "json.py").write_text("raise SystemExit('taken for the real one')")

    done = subprocess.run(
        [*our_command(), "hook", "claude-code"], cwd=project, input=b"{}", capture_output=True,
        check=True, timeout=60,
    )  # fmt: skip

    assert not done.stderr
    assert not (mulligan_home / "hooks.log").exists()


@pytest.mark.parametrize("name", ["opencode", "pi"])
def test_plugins_are_javascript_that_node_can_read(
    name: str, place: InstallScope, mulligan_home: Path, tmp_path: Path
) -> None:
    odd = HookCommand(('/it\'s "odd"\\/mulligan', "-m"))
    install(agent(name), place, odd, str(mulligan_home), preview=False)
    text = Path(agent(name).file(place)).read_text()
    module = written(str(tmp_path / "plugin.mjs"), text)

    checked = subprocess.run(["node", "--check", module], capture_output=True, check=False)

    assert checked.returncode == 0, checked.stderr.decode()
    assert agent(name).commands(text) == [shlex.join([*odd.words, "hook", name])]


@pytest.mark.parametrize("name", AGENTS)
def test_doctor_proves_with_a_dry_run_that_it_works(
    name: str, place: InstallScope, mulligan_home: Path
) -> None:
    assert not list(agent_findings(str(mulligan_home), place))

    install(agent(name), place, HookCommand(our_command()), str(mulligan_home), preview=False)
    (found,) = agent_findings(str(mulligan_home), place)

    assert (found.level, found.subject) == ("ok", agent(name).title)
    assert "a dry run worked" in found.message


@pytest.mark.parametrize("name", AGENTS)
def test_doctor_notices_a_program_that_is_gone(
    name: str, place: InstallScope, mulligan_home: Path
) -> None:
    gone = HookCommand(("/nowhere/mulligan",))
    install(agent(name), place, gone, str(mulligan_home), preview=False)

    (found,) = agent_findings(str(mulligan_home), place)

    assert found.level == "problem"
    assert found.fix == f"run `mulligan install {name}`"


@pytest.mark.parametrize("kind", ["look-alike", "altered", "beside ours"])
@pytest.mark.parametrize("for_project", [True, False])
@pytest.mark.parametrize("name", AGENTS)
def test_doctor_runs_no_command_that_a_file_names(
    name: str, for_project: bool, kind: str, place: InstallScope, project: Path, mulligan_home: Path
) -> None:
    """Such a file comes with a clone: whatever it calls itself, only our own program runs."""
    where = place._replace(project=str(project))
    at = where if for_project else place
    ran = Path(place.home) / "ran"
    evil = f"touch '{ran}'; : mulligan hook {name}"
    program = written(str(project / "bin/mulligan"), f"#!/bin/sh\n{evil}\n")
    program.chmod(0o755)
    ours = HookCommand(our_command() if kind == "beside ours" else (str(program),))
    install(agent(name), at, ours, str(mulligan_home), preview=False)
    path = Path(agent(name).file(at))
    if name in COMMAND_HOOKS:
        content = json.loads(path.read_text())
        hook = {"hooks": [{"type": "command", "command": evil}]}
        for event in [*content["hooks"]] if kind == "look-alike" else []:
            content["hooks"][event] = [hook]
        if kind == "beside ours":
            content["hooks"]["Notification"] = [hook]
        path.write_text(json.dumps(content, indent=2))
    elif kind == "beside ours":
        path.write_text(path.read_text() + f"require('child_process').execSync({evil!r});\n")

    found = list(agent_findings(str(mulligan_home), where))

    assert not ran.exists()
    assert [each.level for each in found] == ["problem"]
    assert "was not tried" in found[0].message


def test_doctor_stops_at_nothing_that_a_project_puts_in_its_way(
    place: InstallScope, project: Path, mulligan_home: Path
) -> None:
    where = place._replace(project=str(project))
    paths = [Path(agent(name).file(where)) for name in AGENTS]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(paths[0])
    paths[1].write_text("[" * 100_000)
    paths[2].symlink_to("/dev/zero")
    paths[3].mkdir()
    with open(paths[4], "wb") as file:
        file.truncate(1 << 40)

    found = list(agent_findings(str(mulligan_home), where))

    assert [each.subject for each in found] == [agent(name).title for name in AGENTS]
    assert all(
        "not looked at" in each.message or "cannot be read" in each.message for each in found
    )


@pytest.mark.parametrize("linked", ["file", "folder"])
@pytest.mark.parametrize("name", AGENTS)
def test_nothing_is_written_through_a_link_of_a_project(
    name: str, linked: str, place: InstallScope, project: Path, mulligan_home: Path, tmp_path: Path
) -> None:
    there = place._replace(project=str(project))
    path = Path(agent(name).file(there))
    outside = tmp_path / "outside"
    outside.mkdir()
    if linked == "file":
        path.parent.mkdir(parents=True)
        path.symlink_to(outside / "settings")
    else:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        path.parent.symlink_to(outside)
    for preview in (True, False):
        with pytest.raises(UsageError, match="symbolic link"):
            install(agent(name), there, OURS, str(mulligan_home), preview=preview)
    assert not list(outside.iterdir())

    # Nor is what lies there read, or taken back.
    target = outside / ("settings" if linked == "file" else path.name)
    install(agent(name), place, OURS, str(mulligan_home), preview=False)
    target.write_bytes(Path(agent(name).file(place)).read_bytes())
    before = target.read_bytes()
    with pytest.raises(UsageError, match="symbolic link"):
        uninstall(agent(name), there, str(mulligan_home), preview=False)
    assert target.read_bytes() == before


@pytest.mark.parametrize("content", ["{}", "[]", "null", "", "\n", "{ }\n", '{"hooks": {}}', "0"])
@pytest.mark.parametrize("name", AGENTS)
def test_uninstall_leaves_alone_what_was_never_ours(
    name: str, content: str, place: InstallScope, mulligan_home: Path
) -> None:
    path = written(agent(name).file(place), content)
    config = written(str(Path(place.home) / ".codex/config.toml"), content)

    with contextlib.suppress(UsageError):
        assert not uninstall(agent(name), place, str(mulligan_home), preview=False).changes

    assert path.read_text() == content
    assert config.read_text() == content


def test_codex_is_asked_to_trust_our_own_commands_and_no_look_alike(
    place: InstallScope, project: Path, mulligan_home: Path, tmp_path: Path
) -> None:
    there = place._replace(project=str(project), environment={"PATH": str(tmp_path / "bin")})
    evil = "sh -c evil # mulligan hook codex"
    path = written(
        agent("codex").file(there),
        json.dumps({"hooks": {"Notification": [{"hooks": [{"command": evil}]}]}}),
    )
    asked = tmp_path / "asked"
    program = written(
        str(tmp_path / "bin/codex"), FAKE_CODEX.format(path=str(path), asked=str(asked))
    )
    program.chmod(0o755)

    install(agent("codex"), there, OURS, str(mulligan_home), preview=False)

    (edit,) = json.loads(asked.read_text())["edits"]
    commands = list(edit["value"])
    assert len(commands) == len(agent_events("codex"))
    assert evil not in commands


FAKE_CODEX = f"""#!{sys.executable}
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    result = {{{{}}}}
    if said["method"] == "hooks/list":
        hooks = json.load(open({{path!r}}))["hooks"]
        result["data"] = [{{{{"hooks": [
            {{{{"key": event + one["command"], "eventName": event, "currentHash": "1",
                "trustStatus": "untrusted", "sourcePath": {{path!r}}, "command": one["command"]}}}}
            for event, groups in hooks.items() for group in groups for one in group["hooks"]
        ]}}}}]
    if said["method"] == "config/batchWrite":
        open({{asked!r}}, "w").write(json.dumps(said["params"]))
    if "id" in said:
        print(json.dumps({{{{"id": said["id"], "result": result}}}}), flush=True)
"""


def test_doctor_tells_of_an_agent_that_is_found_and_not_protected(
    place: InstallScope, mulligan_home: Path
) -> None:
    os.makedirs(agent("pi").folder(place))

    (found,) = agent_findings(str(mulligan_home), place)

    assert found[:3] == ("note", "pi", "found, and not protected")


def test_doctor_tells_what_hooks_could_not_record_of_late(
    place: InstallScope, mulligan_home: Path, project: Path
) -> None:
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "p"}
    mulligan_home.mkdir()
    (mulligan_home / "config.toml").write_text("[checkpoints]\nnonsense = 1\n")
    subprocess.run(
        [sys.executable, "-m", "mulligan", "hook", "claude-code"], cwd=project, check=True,
        input=json.dumps(event | {"cwd": str(project)}).encode(),
    )  # fmt: skip

    first, last = agent_findings(str(mulligan_home), place)

    assert "checkpoints.nonsense" in first.message
    assert str(project) in first.message
    assert last.level == "problem"


def test_doctor_notices_that_events_are_told_twice(
    place: InstallScope, project: Path, mulligan_home: Path
) -> None:
    there = place._replace(project=str(project))
    ours = HookCommand(our_command())
    install(agent("pi"), there, ours, str(mulligan_home), preview=False)
    install(agent("pi"), place, ours, str(mulligan_home), preview=False)

    found = list(agent_findings(str(mulligan_home), there))

    assert [each.level for each in found] == ["problem", "ok", "ok"]
    assert "sent twice" in found[0].message


def test_gemini_hooks_of_a_project_need_trust_in_its_folder(
    place: InstallScope, project: Path, mulligan_home: Path
) -> None:
    there = place._replace(project=str(project))
    done = install(agent("gemini"), there, OURS, str(mulligan_home), preview=False)
    assert "trust the folder" in (done.needs or "")

    trusted = Path(place.home) / ".gemini/trustedFolders.json"
    written(str(trusted), json.dumps({str(project.parent): "TRUST_FOLDER"}))
    assert agent("gemini").needs(there) is None
    assert agent("gemini").needs(place) is None
    by_environment = {**place.environment, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    trusted.unlink()
    assert agent("gemini").needs(there._replace(environment=by_environment)) is None


def test_codex_without_its_program_says_what_is_left_to_do(
    place: InstallScope, mulligan_home: Path
) -> None:
    done = install(agent("codex"), place, OURS, str(mulligan_home), preview=False)

    assert "/hooks" in (done.needs or "")


def test_trust_that_was_given_to_others_stays() -> None:
    config = (
        'model = "x"\n\n[hooks.state]\n\n'
        '[hooks.state."/a/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n\n'
        '[hooks.state."/b/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:2"\n\n'
        "[projects.'/p']\ntrust_level = \"trusted\"\n"
    )

    left = codex_trust.distrusted(config, "/a/hooks.json")
    assert left == config.replace(
        '[hooks.state."/a/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n\n', ""
    )
    nothing = codex_trust.distrusted(left, "/b/hooks.json")
    assert "hooks.state" not in nothing
    assert nothing.startswith('model = "x"\n')
    assert "[projects.'/p']\ntrust_level = \"trusted\"\n" in nothing


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("claude-code", "claude --resume ID --fork-session"),
        ("codex", "codex fork ID"),
        ("gemini", "gemini --resume ID"),
        ("opencode", "opencode --session ID --fork"),
        ("pi", "pi --session ID"),
        ("aider", None),
        ("", None),
    ],
)
def test_goto_says_how_the_conversation_goes_on(
    name: str, command: str | None, project: Path
) -> None:
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create(id="ID", agent=name)
        turn = workspace.sessions.begin_turn("ID", "Do it.")
        workspace.sessions.end_turn("ID")
        assert resume_command(session) == command

    said = subprocess.run(
        [sys.executable, "-m", "mulligan", "goto", turn.entry], cwd=project, check=True,
        capture_output=True, text=True,
    ).stderr  # fmt: skip
    assert (f"`{command}`" in said) == (command is not None)


def installed(name: str, place: InstallScope, home: Path) -> None:
    install(agent(name), place, OURS, str(home), preview=False)


def taken_back(name: str, place: InstallScope, home: Path) -> None:
    uninstall(agent(name), place, str(home), preview=False)


def agent_events(name: str) -> dict[str, int]:
    from importlib import import_module

    module = import_module(f"mulligan.protocols.agents.{name.replace('-', '_')}")
    return dict(module.EVENT_TIMEOUTS)


def written(path: str, content: str) -> Path:
    found = Path(path)
    found.parent.mkdir(parents=True, exist_ok=True)
    found.write_bytes(content.encode())
    return found
