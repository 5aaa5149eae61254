"""Hook events become turns, calls and ends, even if an agent omits some."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan import Workspace
from mulligan.core.hook_events import HookEvent, HookReply
from mulligan.journal import hook_events as recorded_events
from mulligan.protocols.agents import (
    COMMAND_HOOK_AGENTS,
    PLUGIN_AGENTS,
    claude_code,
    codex,
    gemini,
)
from mulligan.protocols.hooks import run
from mulligan.protocols.hooks.translate import (
    answer,
    refusal,
    translate,
    written_paths,
)
from mulligan.workspace import hooks
from mulligan.workspace.hooks import record_event

TIMEOUTS = {
    "claude-code": claude_code.EVENT_TIMEOUTS,
    "codex": codex.EVENT_TIMEOUTS,
    "gemini": gemini.EVENT_TIMEOUTS,
}
SOURCES = {"opencode": "opencode_plugin.js", "pi": "pi_extension.js"}
MINE = {"agent": "claude-code", "session": "s1"}
OTHER = {"agent": "pi", "session": "s2"}


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    with mulligan.open(project) as opened:
        yield opened
        assert opened.maintenance.verify().problems == ()


def tell(workspace: Workspace, kind: str, **more: Any) -> HookReply:
    return record_event(
        workspace.project, HookEvent(**{"kind": kind, "directory": workspace.root} | MINE | more)
    )


def test_a_prompt_and_its_end_are_a_turn(project: Path, workspace: Workspace) -> None:
    (project / "a").write_text("1\n")
    tell(workspace, "session_starts", model="opus")
    tell(workspace, "prompt", text="Do it.")
    (project / "a").write_text("2\n")
    (project / "b").write_text("new\n")
    told = tell(workspace, "turn_ends", text="Done.")

    assert "1 added, 1 modified" in (told.to_user or "")
    assert "mulligan review" in (told.to_user or "")
    assert said(workspace) == ["user_input Do it.", "assistant_output Done.", "step_snapshot "]
    assert pending(workspace) == {"a": "2\n", "b": "new\n"}
    session = workspace.sessions.get("s1")
    assert (session.agent, session.model, session.title) == ("claude-code", "opus", "Do it.")
    workspace.undo()
    assert (project / "a").read_text() == "1\n"
    assert not (project / "b").exists()


def test_an_event_that_is_told_twice_is_recorded_once(
    project: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "REPEATED_PROMPT_SECONDS", 0)
    tell(workspace, "prompt", text="Do it.", id="1")
    tell(workspace, "prompt", text="Do it.", id="1")
    (project / "a").write_text("2\n")
    first = tell(workspace, "turn_ends", id="2")
    tell(workspace, "prompt", text="Go on.", id="3")
    # Late, when the next turn is open already: it gets the same reply, and does not end that one.
    assert tell(workspace, "turn_ends", id="2") == first != HookReply()
    assert said(workspace) == ["user_input Do it.", "step_snapshot ", "user_input Go on."]
    assert workspace.sessions.get("s1").status == "running"
    tell(workspace, "prompt", text="Go on.", id="4")
    assert said(workspace)[-1:] == ["user_input Go on."] and len(said(workspace)) == 4


def test_only_the_last_events_are_kept(workspace: Workspace) -> None:
    for number in range(recorded_events.MAX_EVENTS + 20):
        with workspace.project.journal.writing_without_sync() as db:
            recorded_events.add(db, str(number), "{}")
    assert (
        workspace.project.journal.row("SELECT count(*) FROM hook_events")[0]
        == recorded_events.MAX_EVENTS
    )
    assert recorded_events.reply(workspace.project.journal, str(recorded_events.MAX_EVENTS)) == "{}"
    assert recorded_events.reply(workspace.project.journal, "0") is None
    assert workspace.project.journal.row("PRAGMA synchronous")[0] == 2


def test_a_turn_that_changed_nothing_says_nothing(workspace: Workspace) -> None:
    tell(workspace, "prompt", text="Look.")
    assert tell(workspace, "turn_ends") == HookReply()


def test_calls_are_there_as_they_happen(workspace: Workspace) -> None:
    tell(workspace, "prompt", text="Do it.")
    tell(workspace, "call_begins", call="c1", tool="Bash", input={"command": "ls"})
    assert calls(workspace) == [("Bash", "running", None)]

    tell(workspace, "call_ends", call="c1", tool="Bash", ok=True, duration=12.0)
    assert calls(workspace) == [("Bash", "success", 12.0)]
    assert workspace.stats().as_json()["rows"][0]["calls"] == 1


def test_commands_side_by_side_are_all_the_turns(project: Path, workspace: Workspace) -> None:
    tell(workspace, "prompt", text="Both.")
    for call in ("c1", "c2"):
        tell(workspace, "call_begins", call=call, tool="Bash", input={"command": call})
    (project / "one").write_text("1\n")
    tell(workspace, "call_ends", call="c2", tool="Bash", ok=False, duration=1)
    (project / "two").write_text("2\n")
    tell(workspace, "call_ends", call="c1", tool="Bash", ok=True, duration=2)
    tell(workspace, "turn_ends")

    assert calls(workspace) == [("Bash", "success", 2), ("Bash", "error", 1)]
    assert pending(workspace) == {"one": "1\n", "two": "2\n"}


def test_a_call_whose_end_never_came_is_ended_with_its_turn(workspace: Workspace) -> None:
    """A patch that was refused, a command that was interrupted."""
    tell(workspace, "prompt", text="Patch.")
    tell(workspace, "call_begins", call="c1", tool="apply_patch", input={})
    tell(workspace, "turn_ends")
    assert calls(workspace) == [("apply_patch", "error", None)]


def test_a_turn_whose_end_never_came_is_ended_by_the_next_prompt(
    project: Path, workspace: Workspace
) -> None:
    tell(workspace, "prompt", text="First.")
    tell(workspace, "call_begins", call="c1", tool="Bash", input={})
    (project / "first").write_text("1\n")
    tell(workspace, "prompt", text="Second.")
    (project / "second").write_text("2\n")
    tell(workspace, "turn_ends")

    assert calls(workspace) == [("Bash", "error", None)]
    steps = [each for each in workspace.sessions.conversation("s1") if each.type == "step_snapshot"]
    assert [each.data and each.data["diff"]["added"] for each in steps] == [["first"], ["second"]]
    assert steps[0].data and steps[0].data["interrupted"]
    workspace.undo()
    assert [each.name for each in project.iterdir()] == ["first"]


def test_calls_without_a_prompt_are_a_turn_too(project: Path, workspace: Workspace) -> None:
    """Hooks that were installed while the agent was at work."""
    tell(workspace, "call_begins", call="c1", tool="Bash", input={})
    (project / "a").write_text("1\n")
    tell(workspace, "call_ends", call="c1", tool="Bash", ok=True)
    tell(workspace, "turn_ends")
    assert pending(workspace) == {"a": "1\n"}


def test_an_event_that_is_told_twice_counts_once(project: Path, workspace: Workspace) -> None:
    """Installed for the user and for the project."""
    for _ in range(2):
        tell(workspace, "prompt", text="Once.")
    for _ in range(2):
        tell(workspace, "call_begins", call="c1", tool="Bash", input={})
    (project / "a").write_text("1\n")
    for _ in range(2):
        tell(workspace, "call_ends", call="c1", tool="Bash", ok=True)
    for _ in range(2):
        tell(workspace, "turn_ends", text="Done.")

    assert said(workspace) == [
        "user_input Once.", "tool_call ", "assistant_output Done.", "step_snapshot ",
    ]  # fmt: skip


def test_what_an_agent_left_running_is_not_the_users(project: Path, workspace: Workspace) -> None:
    """Its end came in the middle of a command, which goes on without it."""
    tell(workspace, "prompt", text="Build.")
    tell(workspace, "call_begins", call="c1", tool="Bash", input={})
    tell(workspace, "session_ends")
    (project / "late").write_text("by the command\n")

    assert workspace.sessions.get("s1").status == "stopped"
    assert pending(workspace, "s1") == {"late": "by the command\n"}
    tell(workspace, "prompt", text="Something else.", **OTHER)
    (project / "new").write_text("by the other\n")
    tell(workspace, "turn_ends", **OTHER)

    assert pending(workspace, "s1") == {"late": "by the command\n"}
    assert pending(workspace, "s2") == {"new": "by the other\n"}


def test_an_end_between_calls_ends_the_turn(project: Path, workspace: Workspace) -> None:
    tell(workspace, "prompt", text="Build.")
    (project / "mine").write_text("1\n")
    tell(workspace, "session_ends")
    (project / "users").write_text("2\n")
    assert pending(workspace) == {"mine": "1\n"}


def test_an_agent_that_was_killed_does_not_get_the_next_ones_work(
    project: Path, workspace: Workspace
) -> None:
    agent = subprocess.Popen(["sleep", "60"])
    tell(workspace, "prompt", text="Begin.", process=agent.pid)
    tell(workspace, "call_begins", call="c1", tool="Bash", input={}, process=agent.pid)
    (project / "before").write_text("by the dead\n")
    agent.send_signal(signal.SIGKILL)
    agent.wait()
    (project / "after").write_text("by its command, or by somebody\n")

    tell(workspace, "prompt", text="Something else.", **OTHER)
    (project / "new").write_text("by the living\n")
    tell(workspace, "turn_ends", **OTHER)

    assert sorted(pending(workspace, "s1")) == ["after", "before"]
    assert sorted(pending(workspace, "s2")) == ["new"]
    assert calls(workspace) == [("Bash", "error", None)]
    workspace.review.discard(session="s2")
    assert sorted(each.name for each in project.iterdir()) == ["after", "before"]


def test_two_agents_at_once_are_told_apart(project: Path, workspace: Workspace) -> None:
    tell(workspace, "prompt", text="One.")
    tell(workspace, "prompt", text="Two.", **OTHER)
    for turn, name in ((MINE, "one"), (OTHER, "two")):
        told = {"call": name, "tool": "write", "paths": (name,), "input": {"path": name}}
        tell(workspace, "call_begins", **turn, **told)
        (project / name).write_text(f"{name}\n")
        tell(workspace, "call_ends", ok=True, **turn, **told)
    for turn, name in ((MINE, "shell one"), (OTHER, "shell two")):
        told = {"call": name, "tool": "bash", "input": {"command": name}}
        tell(workspace, "call_begins", **turn, **told)
        (project / name).write_text(f"{name}\n")
        tell(workspace, "call_ends", ok=True, **turn, **told)
    tell(workspace, "turn_ends")
    tell(workspace, "turn_ends", **OTHER)

    assert sorted(pending(workspace, "s1")) == ["one", "shell one"]
    assert sorted(pending(workspace, "s2")) == ["shell two", "two"]


def test_an_ignored_file_that_a_tool_writes_is_kept(project: Path, workspace: Workspace) -> None:
    (project / ".gitignore").write_text("build/\n")
    (project / "build").mkdir()
    (project / "build/out").write_text("before\n")
    tell(workspace, "prompt", text="Write.")
    told = {"call": "c1", "tool": "Write", "paths": ("build/out", "build/new")}
    tell(workspace, "call_begins", **told)
    (project / "build/out").write_text("after\n")
    (project / "build/new").write_text("new\n")
    tell(workspace, "call_ends", ok=True, **told)
    tell(workspace, "turn_ends")

    assert pending(workspace) == {"build/new": "new\n", "build/out": "after\n"}
    workspace.undo()
    assert (project / "build/out").read_text() == "before\n"
    assert not (project / "build/new").exists()


def test_paths_outside_of_the_project_are_left_alone(
    project: Path, workspace: Workspace, tmp_path: Path
) -> None:
    tell(workspace, "prompt", text="Write.")
    outside = (str(tmp_path / "x"), "../x", "/etc/hosts", "")
    tell(workspace, "call_begins", call="c1", tool="Write", paths=outside)
    tell(workspace, "call_ends", call="c1", tool="Write", paths=outside, ok=True)
    assert tell(workspace, "turn_ends") == HookReply()


def test_mount_points_of_a_sandbox_are_not_recorded(project: Path, workspace: Workspace) -> None:
    """Codex has empty read-only folders in the project while a command runs."""
    (project / "a").write_text("1\n")
    tell(workspace, "prompt", text="Run.")
    tell(workspace, "call_begins", call="c1", tool="Bash", input={})
    folders = [project / name for name in (".git", ".codex", ".agents", ".aws")]
    for folder in folders:
        folder.mkdir(mode=0o555)
    tell(workspace, "prompt", text="Meanwhile.", **OTHER)
    for folder in folders:
        folder.rmdir()
    tell(workspace, "call_ends", call="c1", tool="Bash", ok=True)
    tell(workspace, "turn_ends")
    tell(workspace, "turn_ends", **OTHER)

    assert workspace.review.pending().hunks == ()
    assert [each.name for each in project.iterdir()] == ["a"]


def test_resume_goes_on_with_the_session(project: Path, workspace: Workspace) -> None:
    for text in ("First.", "Second."):
        tell(workspace, "session_starts", source="startup")
        tell(workspace, "prompt", text=text)
        (project / text).write_text("x\n")
        tell(workspace, "turn_ends")
        tell(workspace, "session_ends")
    assert [each.id for each in workspace.sessions.list().sessions] == ["s1"]
    assert sorted(pending(workspace)) == ["First.", "Second."]


def test_what_a_sub_agent_does_belongs_to_the_turn(project: Path, workspace: Workspace) -> None:
    tell(workspace, "prompt", text="Delegate.")
    tell(workspace, "prompt", text="Do a part.", off_path=True)
    tell(workspace, "call_begins", call="c1", tool="Bash", input={}, off_path=True)
    (project / "a").write_text("1\n")
    tell(workspace, "call_ends", call="c1", tool="Bash", ok=True, off_path=True)
    tell(workspace, "turn_ends", text="Part done.", off_path=True)
    tell(workspace, "turn_ends", text="Done.")
    assert said(workspace) == [
        "user_input Delegate.", "assistant_output Done.", "step_snapshot ",
    ]  # fmt: skip
    assert pending(workspace) == {"a": "1\n"}


def test_rejections_are_told_if_that_was_asked_for(project: Path, workspace: Workspace) -> None:
    for wanted in (False, True):
        workspace.change_settings({"agents": {"tell_rejections": wanted}})
        tell(workspace, "prompt", text="Write.")
        (project / "a").write_text("bad\n")
        tell(workspace, "turn_ends")
        workspace.review.discard(session="s1")
        told = tell(workspace, "prompt", text="Again.")
        tell(workspace, "turn_ends")
        assert ("undone" in (told.to_agent or "")) == wanted
        assert ("a" in (told.to_agent or "")) == wanted
    assert tell(workspace, "prompt", text="And again.").to_agent is None


def test_an_agent_is_told_which_of_its_lines_were_undone(
    project: Path, workspace: Workspace
) -> None:
    workspace.change_settings({"agents": {"tell_rejections": True}})
    lines = [f"line {number}\n" for number in range(20)]
    (project / "a").write_text("".join(lines))
    tell(workspace, "prompt", text="Write.")
    (project / "a").write_text("".join(["bad\n", *lines[1:-1], "good\n"]))
    (project / "picture").write_bytes(b"\0\1")
    tell(workspace, "turn_ends")
    first, _last = next(each for each in workspace.review.pending().files if each.path == "a").hunks
    workspace.review.discard(first.id)
    workspace.review.discard(paths=["picture"])

    told = tell(workspace, "prompt", text="Again.").to_agent or ""
    assert "in: a, picture." in told
    assert "-line 0\n+bad\n" in told
    assert "good" not in told


def test_what_was_brought_back_is_not_told_as_undone(project: Path, workspace: Workspace) -> None:
    workspace.change_settings({"agents": {"tell_rejections": True}})
    tell(workspace, "prompt", text="Write.")
    (project / "a").write_text("new\n")
    tell(workspace, "turn_ends")
    workspace.undo()
    workspace.redo()
    assert tell(workspace, "prompt", text="Again.").to_agent is None
    (project / "b").write_text("\n".join(map(str, range(9_999))))
    tell(workspace, "turn_ends")
    workspace.undo()
    told = tell(workspace, "prompt", text="And again.").to_agent or ""
    assert "in: b." in told
    assert told.endswith("(and more)\n")
    assert len(told) < 7_000


class Log:
    """A log as Claude Code writes it."""

    def __init__(self, path: Path, project: Path) -> None:
        self.path, self._project = path, project
        self._last: str | None = None

    def add(self, kind: str, content: Any, **more: Any) -> None:
        id = f"{len(self._lines()):08}-0000-4000-8000-000000000000"
        line = {
            "type": kind, "uuid": id, "parentUuid": self._last, "sessionId": "s1",
            "cwd": str(self._project), "timestamp": f"2026-11-16T00:00:{len(self._lines()):02}Z",
            "message": {"role": kind, "content": content}, **more,
        }  # fmt: skip
        self._last = id
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def call(self, id: str, command: str) -> None:
        self.add("assistant", [
            {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
        ])  # fmt: skip

    def result(self, id: str, text: str, *, failed: bool = False) -> None:
        self.add("user", [
            {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}
        ])  # fmt: skip

    def follow(self, other: Log) -> None:
        """Goes on where another log ends."""
        self._last = other._last

    def _lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []


@pytest.fixture
def log(tmp_path: Path, project: Path) -> Log:
    return Log(tmp_path / "s1.jsonl", project)


@pytest.mark.parametrize("written", ["at once", "late", "at the end"])
def test_the_log_doubles_nothing_that_the_hooks_saw(
    workspace: Workspace, log: Log, written: str
) -> None:
    """Whenever the agent writes it down: before its hooks, after them, or when all is over."""

    def hook(kind: str, **more: Any) -> None:
        tell(workspace, kind, log=str(log.path), **more)

    lines: list[Any] = []

    def line(add: Any, *given: Any, **more: Any) -> None:
        if written == "at once":
            add(*given, **more)
        else:
            lines.append((add, given, more))

    def catch_up() -> None:
        while written == "late" and lines:
            add, given, more = lines.pop(0)
            add(*given, **more)

    for number in range(2):
        hook("prompt", text="Go on.")
        line(log.add, "user", "Go on.")
        line(log.add, "assistant", [{"type": "text", "text": f"First {number}."}])
        line(log.call, f"a{number}", "ls")
        hook("call_begins", call=f"a{number}", tool="Bash", input={"command": "ls"})
        catch_up()
        hook("call_ends", call=f"a{number}", tool="Bash", ok=True, duration=1)
        line(log.result, f"a{number}", "files")
        line(log.add, "assistant", [{"type": "text", "text": f"Then {number}."}])
        line(log.call, f"b{number}", "false")
        hook("call_begins", call=f"b{number}", tool="Bash", input={"command": "false"})
        catch_up()
        hook("call_ends", call=f"b{number}", tool="Bash", ok=False, duration=1)
        line(log.result, f"b{number}", "no", failed=True)
        line(log.add, "assistant", [{"type": "text", "text": f"Done {number}."}])
        for add, given, more in lines:
            add(*given, **more)
        lines.clear()
        hook("turn_ends", text=f"Done {number}.")

    assert calls(workspace) == [("Bash", "success", 1), ("Bash", "error", 1)] * 2
    words = [each for each in said(workspace) if not each.startswith("tool")]
    assert sorted(words) == sorted(
        [
            "user_input Go on.",
            *(f"assistant_output {word} {number}." for number in range(2)
              for word in ("First", "Then", "Done")),
            "user_input Go on.",
        ]
    )  # fmt: skip
    if written == "at once":
        assert words[:4] == [
            "user_input Go on.", "assistant_output First 0.", "assistant_output Then 0.",
            "assistant_output Done 0.",
        ]  # fmt: skip
    # Everything is on the one path that the conversation takes: the tree has no forks.
    assert len(workspace.sessions.branches("s1")) == 1


def test_what_was_said_before_the_hooks_were_there_comes_first(
    workspace: Workspace, log: Log
) -> None:
    log.add("user", "Long ago.")
    log.add("assistant", [{"type": "text", "text": "Yes."}])
    tell(workspace, "session_starts", log=str(log.path), source="resume")
    tell(workspace, "prompt", text="Now.", log=str(log.path))
    log.add("user", "Now.")
    log.add("assistant", [{"type": "text", "text": "Well."}])
    tell(workspace, "turn_ends", log=str(log.path))

    assert said(workspace) == [
        "user_input Long ago.", "assistant_output Yes.", "user_input Now.",
        "assistant_output Well.",
    ]  # fmt: skip


def test_what_was_said_without_hooks_comes_before_the_next_prompt(
    workspace: Workspace, log: Log
) -> None:
    """A manual compaction, for example: only the next session start is reported."""
    tell(workspace, "prompt", text="First.", log=str(log.path))
    log.add("user", "First.")
    tell(workspace, "turn_ends", log=str(log.path))
    log.add("user", "In between.")
    log.add("assistant", [{"type": "text", "text": "Yes."}])

    tell(workspace, "session_starts", log=str(log.path), source="resume")
    tell(workspace, "prompt", text="Then.", log=str(log.path))

    assert said(workspace) == [
        "user_input First.", "user_input In between.", "assistant_output Yes.", "user_input Then.",
    ]  # fmt: skip


def test_a_prompt_that_came_before_a_compaction_is_not_compacted(
    workspace: Workspace, log: Log
) -> None:
    """Gemini CLI sums up what was said when the next prompt has come already."""
    tell(workspace, "prompt", text="First.", log=str(log.path))
    log.add("user", "First.")
    log.add("assistant", [{"type": "text", "text": "Yes."}])
    tell(workspace, "turn_ends", log=str(log.path))
    tell(workspace, "prompt", text="Second.", log=str(log.path))
    log.add("user", "They said yes.", isCompactSummary=True)
    log.add("user", "Second.")
    log.add("assistant", [{"type": "text", "text": "Well."}])
    for _ in range(2):
        tell(workspace, "call_begins", tool="Bash", log=str(log.path), input={})
        shown = workspace.sessions.transcript("s1", include_compacted=False).entries
        assert [each.content for each in shown[:3]] == ["Second.", "They said yes.", "Well."]


@pytest.mark.parametrize("was_seen", [True, False], ids=["recorded", "known from its log"])
def test_a_fork_begins_with_what_was_said_before(
    workspace: Workspace, log: Log, tmp_path: Path, was_seen: bool
) -> None:
    """Claude Code resumes a session, then goes on under another name with a log to be written."""
    me = {"process": os.getpid()}
    if was_seen:
        tell(workspace, "prompt", text="Once.", log=str(log.path), **me)
    log.add("user", "Once.")
    log.call("c1", "ls")
    log.result("c1", "files")
    log.add("assistant", [{"type": "text", "text": "Yes."}])
    if was_seen:
        tell(workspace, "turn_ends", log=str(log.path), **me)
        tell(workspace, "session_ends", **me)
    tell(workspace, "session_starts", source="resume", log=str(log.path), **me)
    fork = {"session": "s3", "log": str(tmp_path / "s3.jsonl"), **me}
    tell(workspace, "prompt", text="Once.", **fork)
    # Only now does the agent copy what was said, and goes on.
    copy = Log(tmp_path / "s3.jsonl", tmp_path)
    copy.path.write_text(log.path.read_text().replace('"s1"', '"s3"'))
    copy.follow(log)
    copy.add("user", "Once.", sessionId="s3")
    copy.add("assistant", [{"type": "text", "text": "Again."}], sessionId="s3")
    tell(workspace, "turn_ends", **fork)

    before = ["user_input Once.", "tool_call ", "assistant_output Yes."]
    assert said(workspace) == before
    assert said(workspace, "s3") == [*before, "user_input Once.", "assistant_output Again."]
    times = [each.created_at for each in workspace.sessions.transcript("s3").entries]
    assert times == sorted(set(times))
    session = workspace.sessions.get("s3")
    assert (session.forked_from, session.title) == ("s1", workspace.sessions.get("s1").title)
    assert workspace.sessions.get("s1").status == "stopped"
    assert len(workspace.sessions.branches("s3")) == 1


def test_a_fork_whose_log_is_half_written_at_its_prompt_has_the_whole_conversation(
    workspace: Workspace, log: Log, tmp_path: Path
) -> None:
    me = {"process": os.getpid()}
    for prompt in ("First.", "Second."):
        tell(workspace, "prompt", text=prompt, log=str(log.path), **me)
        log.add("user", prompt)
        log.add("assistant", [{"type": "text", "text": "Yes."}])
        tell(workspace, "turn_ends", log=str(log.path), **me)
    tell(workspace, "session_ends", **me)
    tell(workspace, "session_starts", source="resume", log=str(log.path), **me)
    copy = Log(tmp_path / "s3.jsonl", tmp_path)
    lines = log.path.read_text().replace('"s1"', '"s3"').splitlines(keepends=True)
    copy.path.write_text(lines[0])
    fork = {"session": "s3", "log": str(copy.path), **me}
    tell(workspace, "prompt", text="Third.", **fork)
    copy.path.write_text("".join(lines))
    copy.follow(log)
    copy.add("user", "Third.", sessionId="s3")
    tell(workspace, "turn_ends", **fork)

    turn = ["assistant_output Yes."]
    whole = ["user_input First.", *turn, "user_input Second.", *turn, "user_input Third."]
    assert said(workspace, "s3") == whole


def test_lines_that_an_agent_writes_late_stay_in_the_turn_that_the_user_went_back_from(
    workspace: Workspace, log: Log
) -> None:
    for prompt in ("First.", "Second."):
        tell(workspace, "prompt", text=prompt, log=str(log.path))
        log.add("user", prompt)
        log.call(f"call {prompt}", "ls")
        if prompt == "First.":
            log.result(f"call {prompt}", "files")
        tell(workspace, "turn_ends", log=str(log.path))
    second = workspace.sessions.transcript("s1").entries[-2]
    assert second.content == "Second."
    workspace.sessions.goto(second.id)
    stood = workspace.sessions.get("s1").leaf
    log.result("call Second.", "files")
    log.add("assistant", [{"type": "text", "text": "Done."}])
    tell(workspace, "session_starts", log=str(log.path))

    assert workspace.sessions.get("s1").leaf == stood
    shown = {each.id: each for each in workspace.sessions.transcript("s1").entries}
    (done,) = [each for each in shown.values() if each.content == "Done."]
    before = []
    while done.parent is not None:
        done = shown[done.parent]
        before.append(done.content)
    assert [each for each in before if each] == ["files", "Second.", "files", "First."]


def test_a_new_session_of_the_same_program_is_no_fork(
    workspace: Workspace, log: Log, tmp_path: Path
) -> None:
    """After /clear, say: its beginning is told, and nothing of before belongs to it."""
    me = {"process": os.getpid()}
    tell(workspace, "prompt", text="Once.", log=str(log.path), **me)
    tell(workspace, "turn_ends", log=str(log.path), **me)
    new = {"session": "s3", "log": str(tmp_path / "s3.jsonl"), **me}
    tell(workspace, "session_starts", source="clear", **new)
    tell(workspace, "prompt", text="Now.", **new)
    assert said(workspace, "s3") == ["user_input Now."]


def test_a_log_that_cannot_be_read_loses_no_turn(
    project: Path, workspace: Workspace, log: Log
) -> None:
    log.path.write_bytes(b"\xff{\n\0")
    tell(workspace, "prompt", text="Do it.", log=str(log.path))
    (project / "a").write_text("1\n")
    tell(workspace, "turn_ends", log=str(log.path))
    assert pending(workspace) == {"a": "1\n"}


def test_the_log_knows_better_how_a_call_ended(workspace: Workspace, log: Log) -> None:
    """Codex's hooks do not say whether a command failed."""
    tell(workspace, "prompt", text="Run.")
    tell(workspace, "call_begins", call="c1", tool="Bash", input={"command": "false"})
    tell(workspace, "call_ends", call="c1", tool="Bash", ok=True)
    log.add("user", "Run.")
    log.call("c1", "false")
    log.result("c1", "no", failed=True)
    tell(workspace, "turn_ends", log=str(log.path))
    assert calls(workspace) == [("Bash", "error", None)]
    (counted,) = workspace.stats().rows
    assert (counted.calls, counted.success_rate) == (1, 0)


def test_calls_without_an_id_are_known_by_what_they_were_given(workspace: Workspace) -> None:
    """Gemini's hooks do not say which call they tell of."""
    told = {"agent": "gemini", "tool": "run_shell_command"}
    tell(workspace, "prompt", text="Run.", agent="gemini")
    for command in ("one", "two"):
        tell(workspace, "call_begins", input={"command": command}, **told)
    tell(workspace, "call_ends", input={"command": "two"}, ok=False, **told)
    assert [each[1] for each in calls(workspace)] == ["running", "error"]
    tell(workspace, "call_ends", input={"command": "one"}, ok=True, **told)
    assert [each[1] for each in calls(workspace)] == ["success", "error"]
    assert all(took is not None for _tool, _status, took in calls(workspace))


PROMPTS = {
    "claude-code": {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "p"},
    "codex": {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "p"},
    "gemini": {"hook_event_name": "BeforeAgent", "session_id": "s", "prompt": "p"},
    "opencode": {"kind": "prompt", "session": "s", "text": "p"},
    "pi": {"kind": "prompt", "session": "s", "text": "p"},
}


@pytest.mark.parametrize("agent", PROMPTS)
def test_each_agents_prompt_becomes_the_same_event(agent: str) -> None:
    payload = PROMPTS[agent] | {"cwd": "/p", "directory": "/p"}
    told = HookEvent.from_json(translate(agent, payload, 42) or {})
    assert told[:5] == ("prompt", agent, "s", "/p", "p")
    assert told.process == 42


@pytest.mark.parametrize(
    ("agent", "payload"),
    [
        ("claude-code", {"hook_event_name": "PostToolBatch", "session_id": "s"}),
        ("claude-code", {"hook_event_name": "Stop"}),
        ("codex", {"hook_event_name": "PreModelRequest", "session_id": "s"}),
        ("gemini", {"hook_event_name": "PreCompress", "session_id": "s"}),
        ("gemini", {"hook_event_name": 3, "session_id": ["s"]}),
        ("pi", {"kind": "prompt"}),
        ("pi", {"kind": "dance", "session": "s"}),
        ("opencode", {}),
    ],
)
def test_events_that_mean_nothing_are_passed_over(agent: str, payload: dict[str, Any]) -> None:
    assert translate(agent, payload, None) is None


def test_fields_that_make_no_sense_do_not_cost_a_prompt() -> None:
    payload = {"kind": "prompt", "session": "s", "paths": 3, "part": None, "ok": None}
    told = HookEvent.from_json(translate("opencode", payload, None) or {})
    assert (told.kind, told.session, told.paths, told.part) == ("prompt", "s", (), "")


@pytest.mark.parametrize(
    ("agent", "tool", "given", "paths"),
    [
        ("claude-code", "Write", {"file_path": "/p/a"}, ("/p/a",)),
        ("claude-code", "NotebookEdit", {"notebook_path": "/p/n"}, ("/p/n",)),
        ("claude-code", "Read", {"file_path": "/p/a"}, ()),
        ("claude-code", "Bash", {"command": "*** Add File: a"}, ()),
        (
            "codex", "apply_patch",
            {"command": "*** Begin Patch\n*** Add File: a\n+*** Delete File: no\n"
             "*** Update File: b\n*** Move to: c d\n*** Delete File: e\n*** End Patch"},
            ("a", "b", "c d", "e"),
        ),
        ("gemini", "replace", {"file_path": "/p/a", "path": "b"}, ("/p/a", "b")),
        ("opencode", "edit", {"filePath": "/p/a"}, ("/p/a",)),
        ("opencode", "apply_patch", {"patchText": "*** Add File: a\n"}, ("a",)),
        ("pi", "edit", {"path": "a", "edits": []}, ("a",)),
        ("pi", "write", {"path": "a\0b"}, ()),
        ("pi", "write", None, ()),
    ],
)  # fmt: skip
def test_files_that_a_call_writes_are_read_from_its_arguments(
    agent: str, tool: str, given: Any, paths: tuple[str, ...]
) -> None:
    assert written_paths(agent, tool, given) == paths


@pytest.mark.parametrize(
    ("agent", "response", "ok"),
    [
        ("gemini", {"llmContent": "Output: x\nExit Code: 1\nPGID: 1"}, False),
        ("gemini", {"llmContent": "Output: x\nExit Code: 0"}, True),
        ("gemini", {"llmContent": "x", "error": {"message": "no"}}, False),
        ("gemini", {"llmContent": [{"text": "x"}]}, True),
        ("codex", "a text", True),
        ("claude-code", {"stdout": "x"}, True),
        ("claude-code", {"is_error": True}, False),
    ],
)
def test_how_a_call_went_is_read_from_what_each_agent_says(
    agent: str, response: Any, ok: bool
) -> None:
    event = "AfterTool" if agent == "gemini" else "PostToolUse"
    payload = {"hook_event_name": event, "session_id": "s", "tool_response": response}
    told = translate(agent, payload, None)
    assert told is not None and told["ok"] is ok


def test_answers_are_in_the_words_of_each_agent() -> None:
    told = HookReply("for the agent", "for the user").as_json()
    assert json.loads(answer("gemini", "BeforeAgent", told)) == {
        "hookSpecificOutput": {
            "hookEventName": "BeforeAgent",
            "additionalContext": "for the agent",
        },
        "systemMessage": "for the user",
    }
    assert answer("codex", "Stop", HookReply().as_json()) == ""
    assert json.loads(answer("pi", "", told)) == told
    assert json.loads(refusal("codex", "no")) == {"decision": "block", "reason": "no"}
    assert json.loads(refusal("gemini", "no"))["decision"] == "deny"
    assert json.loads(refusal("opencode", "no")) == {"stop": "no"}


def hook(
    agent: str, payload: Any, project: Path, *options: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the hook as an agent does; it must exit with 0."""
    done = subprocess.run(
        [sys.executable, "-m", "mulligan", "hook", agent, *options], cwd=project,
        input=payload if isinstance(payload, bytes) else json.dumps(payload).encode(),
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done
    assert not done.stderr
    return done


@pytest.mark.parametrize("agent", PROMPTS)
def test_the_program_records_a_prompt_and_answers(agent: str, project: Path) -> None:
    (project / "a").write_text("1\n")
    payload = PROMPTS[agent] | {"cwd": str(project), "directory": str(project)}
    done = hook(agent, payload, project)
    assert json.loads(done.stdout or b"{}") in ({}, HookReply().as_json())
    with mulligan.open(project) as workspace:
        (session,) = workspace.sessions.list().sessions
        assert (session.agent, session.status) == (agent, "running")


@pytest.mark.parametrize(
    "payload",
    [b"", b"no json", b"[]", b"\xff\xfe", b"{}", b'{"cwd": "/nowhere"}', b'"x"', b"[" * 100_000],
)
@pytest.mark.parametrize("agent", ["claude-code", "pi"])
def test_nonsense_never_reaches_the_agent(agent: str, payload: bytes, project: Path) -> None:
    assert hook(agent, payload, project).stdout == b""


HEAVY = {"typing", "contextlib", "socket", "datetime", "subprocess", "apsw", "mulligan.errors"}
"""Modules that a hook must not load if a server records the event."""
NOT_FOR_A_PROMPT = {
    *("datetime", "socket", "subprocess", "tomllib", "mulligan.core.diff", "mulligan.core.merge"),
    *("mulligan.workspace.results.files", "mulligan.workspace.results.sessions"),
    *("mulligan.workspace.snapshot.diff", "mulligan.workspace.restore.run", "mulligan.cli.group"),
}


@pytest.mark.parametrize(
    ("ran", "unwanted"),
    [("", HEAVY), ("run.main(['claude-code'])", NOT_FOR_A_PROMPT)],
    ids=["to tell a server", "to record a prompt"],
)
def test_a_hook_loads_nothing_that_it_does_not_need(
    project: Path, ran: str, unwanted: set[str]
) -> None:
    """An agent waits for each import, at every step."""
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(project)}
    told = json.dumps(prompt | {"prompt": "Go."}).encode()
    # The second time the session is known.
    for _ in range(2):
        script = (
            "import sys; before = set(sys.modules)\nfrom mulligan.protocols.hooks import run\n"
            f"{ran}\nprint(*(set(sys.modules) - before), file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], input=told, capture_output=True, check=True, timeout=60
        )
    assert not unwanted & set(done.stderr.decode().split())


def test_the_journal_is_whole_with_a_wal_left_by_a_hook(project: Path, mulligan_home: Path) -> None:
    """A hook leaves the WAL for the next process to checkpoint."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(project)}
    for number in range(3):
        told = json.dumps(event | {"prompt": f"Go {number}."}).encode()
        subprocess.run(
            [sys.executable, "-m", "mulligan", "hook", "claude-code"], input=told, check=True,
            capture_output=True, timeout=60,
        )  # fmt: skip
    (log,) = mulligan_home.glob("projects/*/journal.sqlite-wal")
    with mulligan.open(project) as workspace:
        assert said(workspace) == [f"user_input Go {number}." for number in range(3)]
        assert workspace.maintenance.verify().problems == ()
    assert not log.exists()


def test_a_home_directory_is_no_project(project: Path, mulligan_home: Path) -> None:
    home = os.environ["HOME"]
    payload = PROMPTS["claude-code"] | {"cwd": home}
    assert hook("claude-code", payload, project).stdout == b""
    assert not (mulligan_home / "hooks.log").exists()


@pytest.mark.parametrize("directory", ["/etc", "/proc/1", "/usr/lib"])
def test_a_system_folder_does_not_become_a_project(
    directory: str, project: Path, mulligan_home: Path
) -> None:
    payload = PROMPTS["claude-code"] | {"cwd": directory}
    assert hook("claude-code", payload, project).stdout == b""
    assert not list(mulligan_home.glob("projects/*"))


@pytest.mark.parametrize("odd", ["a\0b", "\ud800", "x" * 70_000])
@pytest.mark.parametrize("field", ["cwd", "session_id", "transcript_path", "prompt", "model"])
def test_a_field_that_is_no_path_or_no_text_never_reaches_the_agent(
    field: str, odd: str, project: Path, mulligan_home: Path
) -> None:
    payload = PROMPTS["claude-code"] | {"cwd": str(project)} | {field: odd}
    done = hook("claude-code", payload, project)
    assert (done.returncode, done.stderr) == (0, b"")
    if field == "cwd":
        # There is no project to record it in: its user is told that the prompt goes unprotected.
        assert reply_to_prompt(done, "claude-code", refused=False)
    else:
        assert done.stdout == b""
    assert (mulligan_home / "hooks.log").exists() == (field == "cwd")


@pytest.mark.parametrize("settings", ["a = " + "[" * 5000, "strict", "\0"])
def test_settings_that_cannot_be_read_are_no_traceback_for_the_agent(
    settings: str, project: Path, mulligan_home: Path
) -> None:
    mulligan_home.mkdir(exist_ok=True)
    (mulligan_home / "config.toml").write_text(settings)
    done = hook("claude-code", PROMPTS["claude-code"] | {"cwd": str(project)}, project)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "config.toml" in reply_to_prompt(done, "claude-code", refused=False)
    assert "config.toml" in (mulligan_home / "hooks.log").read_text()


def test_paths_that_no_file_can_have_do_not_cost_the_event(workspace: Workspace) -> None:
    tell(workspace, "prompt", text="Write.")
    odd = ("a\0b", "\ud800", "x" * 300, "y/" * 3000 + "z")
    tell(workspace, "call_begins", call="c1", tool="Write", paths=odd)
    tell(workspace, "call_ends", call="c1", tool="Write", paths=odd, ok=True)
    assert calls(workspace) == [("Write", "success", None)]


def test_a_relative_directory_is_the_hooks_and_not_the_servers(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    found = translate("claude-code", PROMPTS["claude-code"] | {"cwd": "sub/.."}, None)
    assert found is not None and found["directory"] == str(project)


@pytest.mark.parametrize("agent", PROMPTS)
@pytest.mark.parametrize("strict", ["no", "by option", "by setting"])
def test_what_goes_wrong_stops_a_prompt_only_where_the_user_is_strict(
    agent: str, strict: str, project: Path, mulligan_home: Path
) -> None:
    mulligan_home.mkdir()
    (mulligan_home / "projects").write_text("not a folder")
    if strict == "by setting":
        (mulligan_home / "config.toml").write_text("[agents]\nstrict = true\n")
    payload = PROMPTS[agent] | {"cwd": str(project), "directory": str(project)}

    done = hook(agent, payload, project, *(["--strict"] if strict == "by option" else []))

    (noted,) = (mulligan_home / "hooks.log").read_text().splitlines()
    assert json.loads(noted)["agent"] == agent
    assert "mulligan doctor" in reply_to_prompt(done, agent, refused=strict != "no")


def reply_to_prompt(done: subprocess.CompletedProcess[bytes], agent: str, *, refused: bool) -> str:
    """Return what a hook printed about a prompt that it could not record."""
    said: dict[str, str] = json.loads(done.stdout)
    if agent in PLUGIN_AGENTS:
        (key,) = said
        assert key == ("stop" if refused else "to_user")
        return said[key]
    if refused:
        assert said.keys() == {"decision", "reason"}
        assert said["decision"] == ("deny" if agent == "gemini" else "block")
        return said["reason"]
    assert said.keys() == {"systemMessage"}
    return said["systemMessage"]


IMPATIENT = """
import sys
from mulligan.protocols.hooks import run
for name, seconds in zip(sys.argv[1].split(), (float(each) for each in sys.argv[2].split())):
    assert hasattr(run, name)
    setattr(run, name, seconds)
run.process(sys.argv[3:])
"""


def impatient_hook(
    agent: str, project: Path, *options: str, **seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Run the hook of a prompt with other timeouts."""
    payload = PROMPTS[agent] | {"cwd": str(project), "directory": str(project)}
    times = (" ".join(seconds), " ".join(map(str, seconds.values())))
    done = subprocess.run(
        [sys.executable, "-c", IMPATIENT, *times, agent, *options], cwd=project,
        input=json.dumps(payload).encode(), capture_output=True,
        check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done
    return done


GIVEN_UP = {
    "the lock": {"LOCK_TIMEOUT_S": 0.1},
    "the agent": {"LOCK_TIMEOUT_S": 600, "ANSWER_TIMEOUT_S": 0.5, "PLUGIN_ANSWER_TIMEOUT_S": 0.5},
}
"""How a hook comes to its end while others work on the project."""


@pytest.mark.parametrize("agent", PROMPTS)
@pytest.mark.parametrize("strict", ["no", "by option", "by setting"])
@pytest.mark.parametrize("waits_for", GIVEN_UP)
def test_a_prompt_that_a_held_lock_keeps_unprotected_is_refused_or_its_user_told(
    agent: str, strict: str, waits_for: str, project: Path, mulligan_home: Path
) -> None:
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        if strict == "by setting":
            workspace.change_settings({"agents": {"strict": True}})
        with workspace.project.locked():
            options = ["--strict"] if strict == "by option" else []
            done = impatient_hook(agent, project, *options, **GIVEN_UP[waits_for])
        assert not workspace.sessions.list().sessions

    said = reply_to_prompt(done, agent, refused=strict != "no")
    holder = f"Process {os.getpid()} is at work" if waits_for == "the lock" else "longer than 0.5 s"
    assert "protect" in said and holder in said
    (noted,) = (mulligan_home / "hooks.log").read_text().splitlines()
    assert json.loads(noted)["kind"] == "prompt"


@pytest.mark.parametrize("agent", PROMPTS)
def test_a_prompt_is_answered_while_its_agent_still_waits(agent: str) -> None:
    answered = run.PLUGIN_ANSWER_TIMEOUT_S if agent in PLUGIN_AGENTS else run.ANSWER_TIMEOUT_S
    if agent in PLUGIN_AGENTS:
        source = files("mulligan.protocols.agents") / SOURCES[agent]
        (waits,) = re.findall(r"LONGEST = (\d+)", source.read_text("utf-8"))
        waited = int(waits) / 1000
    else:
        prompt = PROMPTS[agent]["hook_event_name"]
        waited = TIMEOUTS[agent][prompt] / (1000 if agent == "gemini" else 1)
    # A database that is locked keeps a hook from looking at the clock for ten seconds.
    assert run.SERVER_TIMEOUT_S < answered <= waited - 10


@pytest.mark.parametrize("agent", COMMAND_HOOK_AGENTS)
@pytest.mark.parametrize(
    "event", [[], {}, {"hook_event_name": "UserPromptSubmit"}, {"session_id": "s"}]
)
def test_a_prompt_that_is_not_understood_is_refused_where_the_user_is_strict(
    agent: str, event: Any, project: Path
) -> None:
    assert reply_to_prompt(hook(agent, event, project, "--strict"), agent, refused=True)


@pytest.mark.parametrize("strict", ["by option", "by setting"])
def test_a_prompt_in_a_home_directory_is_refused_where_the_user_is_strict(
    strict: str, project: Path, mulligan_home: Path
) -> None:
    mulligan_home.mkdir()
    if strict == "by setting":
        (mulligan_home / "config.toml").write_text("[agents]\nstrict = true\n")
    options = ["--strict"] if strict == "by option" else []
    payload = PROMPTS["claude-code"] | {"cwd": os.environ["HOME"]}
    done = hook("claude-code", payload, project, *options)
    assert "it is a home directory" in reply_to_prompt(done, "claude-code", refused=True)


def test_a_hook_waits_for_its_turn_in_a_busy_project(project: Path) -> None:
    payload = json.dumps(PROMPTS["pi"] | {"directory": str(project)}).encode()
    with mulligan.open(project) as workspace, workspace.project.locked():
        process = subprocess.Popen(
            [sys.executable, "-m", "mulligan", "hook", "pi"], cwd=project, stdin=subprocess.PIPE
        )
        assert process.stdin is not None
        process.stdin.write(payload)
        process.stdin.close()
        lock = os.path.realpath(workspace.project.location.path("lock"))
        while not has_open(process.pid, lock):
            assert process.poll() is None
            time.sleep(0.01)
    assert process.wait(60) == 0
    with mulligan.open(project) as workspace:
        assert len(workspace.sessions.list().sessions) == 1


def has_open(process: int, path: str) -> bool:
    folder = f"/proc/{process}/fd"
    for each in os.listdir(folder):
        try:
            if os.readlink(f"{folder}/{each}") == path:
                return True
        except FileNotFoundError:
            continue  # closed since it was listed
    return False


def test_many_events_at_once_are_all_recorded_once(project: Path, log: Log) -> None:
    """OpenCode tells of a new session and its first prompt at the same time."""
    (project / "a").write_text("1\n")
    log.add("user", "Go.")
    for number in range(3):
        log.call(f"c{number}", f"echo {number}")
    common = {"session_id": "s1", "cwd": str(project), "transcript_path": str(log.path)}
    events: list[dict[str, Any]] = [
        {"hook_event_name": "SessionStart"},
        {"hook_event_name": "UserPromptSubmit", "prompt": "Go."},
    ]
    events += [
        {"hook_event_name": "PreToolUse", "tool_use_id": f"c{each}", "tool_name": "Bash"}
        for each in range(3)
    ]
    processes = []
    for event in events:
        process = subprocess.Popen(
            [sys.executable, "-m", "mulligan", "hook", "claude-code"], cwd=project,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(json.dumps(common | event).encode())
        process.stdin.close()
        processes.append(process)
    assert [process.wait(60) for process in processes] == [0] * 5

    with mulligan.open(project) as workspace:
        assert not os.path.exists(os.path.join(workspace.project.home, "hooks.log"))
        (session,) = workspace.sessions.list().sessions
        assert len(calls(workspace)) == 3
        assert session.status == "running"


def said(workspace: Workspace, session: str = "s1") -> list[str]:
    """Return the entries on the path, without tool results."""
    return [
        f"{each.type} {each.content}"
        for each in workspace.sessions.conversation(session)
        if each.type != "tool_result"
    ]


def calls(workspace: Workspace) -> list[tuple[str, str, float | None]]:
    found = workspace.sessions.transcript("s1", types=("tool_call",)).entries
    data = [each.data or {} for each in found]
    return [(each["name"], each["status"], each.get("duration")) for each in data]


def pending(workspace: Workspace, session: str | None = None) -> dict[str, str]:
    return {
        hunk.path: "".join(hunk.new_lines)
        for hunk in workspace.review.pending(session=session).hunks
    }
