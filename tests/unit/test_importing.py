"""Importing logs into journals: again, while they grow, half written, and into which project.

The logs are synthetic, the same small story told by each agent: a message, an answer with a tool
call, its result, another message and its answer.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan import Workspace
from mulligan.core.entries import NewEntry
from mulligan.errors import NotFound
from mulligan.importers.records import Problem
from mulligan.workspace.project.location import find_project, is_imported, known_projects
from mulligan.workspace.search.search import search, search_everywhere
from mulligan.workspace.transfer.import_logs import IMPORTERS, ImportResult, follow, import_logs

CLAUDE = "11111111-2222-3333-4444-555555555555"
CODEX = "01234567-89ab-7cde-8f01-23456789abcd"
AT = "2026-03-01T10:00:0{}.000Z"
MILLISECONDS = 1_772_359_200_000
OPENCODE = """
    CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT NOT NULL, title TEXT,
      time_created INTEGER, time_updated INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER,
      data TEXT);
"""


def claude_code(directory: str) -> tuple[str, list[Any]]:
    def line(number: int, role: str, content: Any) -> Any:
        return {
            "type": role, "uuid": f"u{number}", "sessionId": CLAUDE, "cwd": directory,
            "parentUuid": f"u{number - 1}" if number else None, "timestamp": AT.format(number),
            "message": {"role": role, "content": content},
        }  # fmt: skip

    use = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "pears"}
    return f".claude/projects/-shop/{CLAUDE}.jsonl", [
        line(0, "user", "Count the pears."),
        line(1, "assistant", [{"type": "text", "text": "I look."}]),
        line(2, "assistant", [use]),
        line(3, "user", [result]),
        line(4, "assistant", [{"type": "text", "text": "Three."}]),
        line(5, "user", "Thank you."),
    ]


def codex(directory: str) -> tuple[str, list[Any]]:
    def line(number: int, type: str, /, **payload: Any) -> Any:
        return {"timestamp": AT.format(number), "type": type, "payload": payload}

    def said(number: int, role: str, text: str) -> Any:
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": text}]
        return line(number, "response_item", type="message", role=role, content=content)

    call = {"type": "function_call", "name": "shell", "arguments": '{"cmd": "ls"}'}
    end = {"type": "function_call_output", "call_id": "c1", "output": "pears"}
    name = f"rollout-2026-03-01T10-00-00-{CODEX}.jsonl"
    return f".codex/sessions/2026/03/01/{name}", [
        line(0, "session_meta", id=CODEX, timestamp=AT.format(0), cwd=directory),
        said(1, "user", "Count the pears."),
        line(1, "event_msg", type="user_message", message="Count the pears."),
        said(2, "assistant", "I look."),
        line(3, "response_item", **call, call_id="c1"),
        line(4, "response_item", **end),
        said(5, "assistant", "Three."),
        said(6, "user", "Thank you."),
        line(6, "event_msg", type="user_message", message="Thank you."),
    ]


def gemini(directory: str) -> tuple[str, list[Any]]:
    def said(number: int, type: str, text: str, **more: Any) -> Any:
        common = {"id": f"m{number}", "timestamp": AT.format(number), "type": type}
        return common | {"content": [{"text": text}]} | more

    call = {"id": "c1", "name": "read_file", "args": {"file_path": "list"}, "status": "executing"}
    response = {"functionResponse": {"id": "c1", "response": {"output": "pears"}}}
    ended = call | {"status": "success", "result": [response]}
    return ".gemini/tmp/shop/chats/session-2026-03-01T10-00-abcdef01.jsonl", [
        {"sessionId": "abcdef01", "projectHash": "x", "startTime": AT.format(0)},
        said(1, "user", "Count the pears."),
        said(2, "gemini", "I look."),
        said(2, "gemini", "I look.", toolCalls=[call]),
        said(2, "gemini", "I look.", toolCalls=[ended]),
        said(3, "gemini", "Three."),
        said(4, "user", "Thank you."),
    ]


def pi(directory: str) -> tuple[str, list[Any]]:
    def said(number: int, role: str, content: Any, **more: Any) -> Any:
        return {
            "type": "message", "id": f"m{number}", "timestamp": AT.format(number),
            "parentId": f"m{number - 1}" if number > 1 else None,
            "message": {"role": role, "content": content, **more},
        }  # fmt: skip

    call = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}
    text = [{"type": "text", "text": "pears"}]
    return ".pi/agent/sessions/--shop--/2026-03-01T10-00-00-000Z_p1.jsonl", [
        {"type": "session", "version": 3, "id": "p1", "timestamp": AT.format(0), "cwd": directory},
        said(1, "user", "Count the pears."),
        said(2, "assistant", [{"type": "text", "text": "I look."}, call]),
        said(3, "toolResult", text, toolCallId="c1", toolName="bash"),
        said(4, "assistant", [{"type": "text", "text": "Three."}]),
        said(5, "user", "Thank you."),
    ]


def yaai(directory: str) -> tuple[str, list[Any]]:
    def line(number: int, type: str, content: str, **more: Any) -> Any:
        common = {"id": f"e{number}", "sessionId": "y1", "type": type, "content": content}
        return common | {"timestamp": AT.format(number)} | more

    call = {"name": "sh", "input": {"command": "ls"}, "output": "pears", "status": "success"}
    return ".yaai/sessions/y1/transcript.jsonl", [
        line(1, "user_input", "Count the pears."),
        line(2, "assistant_output", "I look."),
        line(3, "tool_call", "", toolCall=call),
        line(4, "assistant_output", "Three."),
        line(5, "user_input", "Thank you."),
    ]


LINES: dict[str, Callable[[str], tuple[str, list[Any]]]] = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini": gemini,
    "pi": pi,
    "yaai": yaai,
}


class Logs:
    """A user's home with the log of one agent, which can grow."""

    def __init__(self, agent: str, user: Path, directory: Path) -> None:
        self.agent, self.user, self.directory = agent, user, directory
        name, self.lines = LINES[agent](str(directory))
        self.path = user / name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.text = "".join(json.dumps(line) + "\n" for line in self.lines)
        if agent == "gemini":
            (self.path.parents[1] / ".project_root").write_text(str(directory))
        if agent == "yaai":
            info = {"id": "y1", "projectPath": str(directory), "status": "stopped"}
            (self.path.parent / "session.json").write_text(json.dumps(info))

    def write(self, count: int | None = None, *, characters: int = 0) -> None:
        """Write the first lines, and some characters of the next."""
        kept = self.lines if count is None else self.lines[:count]
        start = "".join(json.dumps(line) + "\n" for line in kept)
        self.path.write_text(self.text[: len(start) + characters])

    def take(self, home: Path, **more: Any) -> ImportResult:
        return import_logs(str(home), self.agent, user_home=str(self.user), environment={}, **more)


@pytest.fixture(params=LINES)
def logs(request: pytest.FixtureRequest, tmp_path: Path, project: Path) -> Logs:
    return Logs(request.param, tmp_path / "user", project)


def told(project: Path, home: Path) -> list[Any]:
    """Everything that a journal says of its sessions, but for when it was written down."""
    with mulligan.open(project, home=str(home)) as workspace:
        found: list[Any] = []
        for session in workspace.sessions.list(limit=100).sessions:
            page = workspace.sessions.transcript(session.id, limit=1000, include_compacted=True)
            found.append((session.id, session.agent, session.title, session.leaf, session.status))
            found += [
                (e.seq, e.id, e.parent, e.type, e.content, e.data, e.off_path, e.is_compacted)
                for e in page.entries
            ]
        assert workspace.maintenance.verify().problems == ()
        return found


def spoken(workspace: Workspace, session: str = "@") -> list[str]:
    types = ("user_input", "assistant_output")
    return [entry.content for entry in workspace.sessions.conversation(session, types=types)]


def call_of(workspace: Workspace) -> dict[str, Any]:
    (call,) = workspace.sessions.transcript("@", types=["tool_call"]).entries
    return call.data or {}


def test_every_importer_has_its_story_here_or_below() -> None:
    # AgentSmithy's needs a repository: tests/conformance/test_import_as_22_dialogs.py has it.
    assert {*LINES, "opencode", "aider", "mulligan", "agentsmithy"} == set(IMPORTERS)


def test_a_log_becomes_a_session_of_its_project(
    logs: Logs, project: Path, mulligan_home: Path
) -> None:
    logs.write()
    done = logs.take(mulligan_home)
    assert (done.agent, done.logs, done.unchanged, done.sessions) == (logs.agent, 1, 0, 1)
    assert done.problems == () and done.projects == (str(project),)
    with mulligan.open(project) as workspace:
        (session,) = workspace.sessions.list().sessions
        assert (session.agent, session.status) == (logs.agent, "stopped")
        assert session.title == "Count the pears."
        assert session.source == str(logs.path)
        assert spoken(workspace) == ["Count the pears.", "I look.", "Three.", "Thank you."]
        assert call_of(workspace)["status"] == "success"
        assert done.entries == workspace.sessions.count_entries("@")
        assert len(search(workspace.project, "pears").hits) >= 2


def test_to_import_twice_adds_nothing(logs: Logs, project: Path, mulligan_home: Path) -> None:
    logs.write()
    logs.take(mulligan_home)
    before = told(project, mulligan_home)
    done = logs.take(mulligan_home)
    assert (done.logs, done.unchanged, done.entries) == (1, 1, 0)
    done = logs.take(mulligan_home, again=True)
    assert (done.unchanged, done.entries, done.problems) == (0, 0, ())
    (mulligan_home / "imports.sqlite").unlink()
    assert logs.take(mulligan_home).entries == 0
    assert told(project, mulligan_home) == before


def test_a_log_that_grew_adds_only_what_is_new(
    logs: Logs, project: Path, mulligan_home: Path
) -> None:
    logs.write()
    total = logs.take(mulligan_home / "at once").entries
    added = 0
    for count in range(1, len(logs.lines) + 1):
        logs.write(count)
        added += logs.take(mulligan_home / "bit by bit").entries
    assert added == total
    assert told(project, mulligan_home / "bit by bit") == told(project, mulligan_home / "at once")


def test_a_half_written_last_line_is_named_and_taken_once_it_is_whole(
    logs: Logs, project: Path, mulligan_home: Path
) -> None:
    logs.write()
    logs.take(mulligan_home / "at once")
    wanted = told(project, mulligan_home / "at once")
    for count in range(1, len(logs.lines)):
        home = mulligan_home / str(count)
        logs.write(count, characters=len(json.dumps(logs.lines[count])) // 2)
        done = logs.take(home)
        (problem,) = done.problems
        assert (problem.path, problem.line) == (str(logs.path), count + 1)
        logs.write()
        assert logs.take(home).problems == ()
        assert told(project, home) == wanted


@pytest.mark.parametrize("agent", sorted(LINES.keys() - {"yaai"}))
def test_a_call_that_was_running_ends_when_the_log_says_so(
    agent: str, tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    logs = Logs(agent, tmp_path, project)
    states = []
    for count in range(1, len(logs.lines) + 1):
        logs.write(count)
        logs.take(mulligan_home)
        with mulligan.open(project) as workspace:
            found = (
                workspace.sessions.transcript("@", types=["tool_call"]).entries if count > 1 else ()
            )
            states += [(entry.data or {})["status"] for entry in found]
    assert states[-1] == "success" and states[0] in ("pending", "running")
    assert states == sorted(states)
    with mulligan.open(project) as workspace:
        assert "pears" in json.dumps(
            [(e.content, e.data) for e in workspace.sessions.transcript("@").entries]
        )


def test_a_line_that_makes_no_sense_is_named_and_the_rest_is_taken(
    logs: Logs, project: Path, mulligan_home: Path
) -> None:
    lines = logs.text.splitlines(keepends=True)
    logs.path.write_text("".join([*lines[:-1], "{nonsense\n", "[]\n", *lines[-1:]]))
    done = logs.take(mulligan_home)
    numbers = [problem.line for problem in done.problems]
    assert numbers == [len(lines), len(lines) + 1]
    assert all(isinstance(each, Problem) and each.reason for each in done.problems)
    with mulligan.open(project) as workspace:
        assert spoken(workspace)[-1] == "Thank you."


def test_a_session_that_was_deleted_comes_back_only_when_asked_again(
    logs: Logs, project: Path, mulligan_home: Path
) -> None:
    logs.write()
    logs.take(mulligan_home)
    with mulligan.open(project) as workspace:
        workspace.sessions.delete("@")
    assert logs.take(mulligan_home).entries == 0
    assert logs.take(mulligan_home, again=True).entries > 0


def test_what_the_user_did_to_an_imported_session_outlives_another_import(
    logs: Logs, project: Path, mulligan_home: Path
) -> None:
    logs.write(len(logs.lines) - 2)
    logs.take(mulligan_home)
    with mulligan.open(project) as workspace:
        first = workspace.sessions.transcript("@").entries[0]
        workspace.sessions.label(first.id, "here", "@")
        workspace.sessions.mark_compacted("@", 2)
        workspace.sessions.change("@", title="My pears", memory="three")
    logs.write()
    assert logs.take(mulligan_home).entries > 0
    with mulligan.open(project) as workspace:
        assert workspace.sessions.entry("here", "@").is_compacted
        found = workspace.sessions.get("@")
        assert (found.title, found.memory) == ("My pears", "three")


def test_opencode_s_database_is_taken_and_followed(
    tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    path = tmp_path / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)

    def take() -> ImportResult:
        return import_logs(str(mulligan_home), "opencode", user_home=str(tmp_path), environment={})

    def say(db: sqlite3.Connection, id: str, role: str, part: Any) -> None:
        info = json.dumps({"role": role, "time": {"created": MILLISECONDS}})
        db.execute("INSERT INTO message VALUES (?, 's', ?, ?)", (id, MILLISECONDS, info))
        row = (f"prt_{id}", id, MILLISECONDS, json.dumps(part))
        db.execute("INSERT INTO part VALUES (?, ?, 's', ?, ?)", row)

    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript("PRAGMA journal_mode = WAL;" + OPENCODE)
        db.execute(
            "INSERT INTO session (id, directory, title, time_created) VALUES ('s', ?, 'T', ?)",
            (str(project), MILLISECONDS),
        )
        say(db, "msg_1", "user", {"type": "text", "text": "Count the pears."})
        running = {"status": "running", "input": {}, "time": {"start": MILLISECONDS}}
        tool = {"type": "tool", "tool": "bash", "callID": "c1", "state": running}
        say(db, "msg_2", "assistant", tool)
        assert (take().entries, take().unchanged) == (2, 1)
        ended = running | {"status": "completed", "output": "pears", "metadata": {}}
        ended["time"] = {"start": MILLISECONDS, "end": MILLISECONDS + 5}
        db.execute(
            "UPDATE part SET data = ? WHERE id = 'prt_msg_2'",
            (json.dumps(tool | {"state": ended}),),
        )
        say(db, "msg_3", "assistant", {"type": "text", "text": "Three."})
        with mulligan.open(project) as workspace:
            assert workspace.sessions.get("@").title == "T"
            workspace.sessions.change("@", title="My pears")
        assert take().problems == ()
    with mulligan.open(project) as workspace:
        # The user's title wins over the agent's.
        assert workspace.sessions.get("@").title == "My pears"
        assert spoken(workspace) == ["Count the pears.", "Three."]
        assert call_of(workspace)["status"] == "success"
        count = workspace.sessions.count_entries("@")
    assert take().entries == 0
    with mulligan.open(project) as workspace:
        assert workspace.sessions.count_entries("@") == count


def test_aider_s_history_is_taken_and_followed(project: Path, mulligan_home: Path) -> None:
    path = project / ".aider.chat.history.md"
    told = (
        "\n# aider chat started at 2026-01-02 10:00:00\n\n",
        "> Aider v0.86.0  \n\n#### Count the pears.  \n\nThree.\n\n",
        "#### Thank you.  \n\nYou are welcome.\n\n",
        "\n# aider chat started at 2026-01-03 10:00:00\n\n#### And the plums?  \n\nNone.\n\n",
    )

    def take(**more: Any) -> ImportResult:
        return import_logs(str(mulligan_home), "aider", paths=(str(path),), **more)

    added = []
    for count in range(1, len(told) + 1):
        path.write_text("".join(told[:count]))
        added.append(take().entries)
    assert take(again=True).entries == 0
    with mulligan.open(project) as workspace:
        newest, first = workspace.sessions.list().sessions
        assert spoken(workspace, first.id) == [
            *("Count the pears.", "Three.", "Thank you.", "You are welcome."),
        ]
        assert spoken(workspace, newest.id) == ["And the plums?", "None."]
        assert sum(added) == sum(
            workspace.sessions.count_entries(each.id) for each in (newest, first)
        )


@pytest.mark.parametrize("elsewhere", [True, False])
def test_aider_s_history_is_looked_for_where_the_user_means_to_be(
    project: Path, tmp_path: Path, mulligan_home: Path, elsewhere: bool
) -> None:
    (project / ".aider.chat.history.md").write_text(
        "\n# aider chat started at 2026-01-02 10:00:00\n\n#### Count the pears.  \n\nThree.\n\n"
    )
    command = [sys.executable, "-m", "mulligan", "import", "aider", "--json"]
    command[3:3] = ["-C", str(project)] if elsewhere else []
    done = subprocess.run(
        command, cwd=tmp_path if elsewhere else project, env=os.environ | {"PWD": str(tmp_path)},
        capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    (imported,) = json.loads(done.stdout)["imported"]
    assert (imported["sessions"], imported["projects"]) == (1, [str(project)])


def test_mulligan_s_own_export_comes_back_as_it_was(
    tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    with mulligan.open(project, home=str(tmp_path / "there")) as workspace:
        session = workspace.sessions.create(agent="test", title="Pears", memory="three").id
        workspace.sessions.begin_turn(session, "one")
        (project / "a").write_text("1")
        workspace.sessions.append(
            session, NewEntry("tool_call", data={"name": "x", "status": "success"})
        )
        step = workspace.sessions.end_turn(session)
        workspace.sessions.append(session, NewEntry("assistant_output", "aside", off_path=True))
        workspace.sessions.append(session, NewEntry("user_input", "elsewhere", parent=None))
        workspace.sessions.label(step.entry or "", "good", session)
        workspace.sessions.mark_compacted(session, 2)
        (tmp_path / "export.jsonl").write_text("".join(workspace.sessions.export(session)))
        before = workspace.sessions.transcript(session, limit=100, include_compacted=True).entries
        leaf = workspace.sessions.get(session).leaf
    paths = (str(tmp_path / "export.jsonl"),)
    assert import_logs(str(mulligan_home), "mulligan", paths=paths).problems == ()
    assert import_logs(str(mulligan_home), "mulligan", paths=paths, again=True).entries == 0
    with mulligan.open(project) as workspace:
        after = workspace.sessions.transcript(session, limit=100, include_compacted=True).entries
        assert [each._replace(checkpoint=None) for each in after] == [
            each._replace(checkpoint=None) for each in before
        ]
        found = workspace.sessions.get(session)
        assert (found.title, found.agent, found.leaf) == ("Pears", "test", leaf)


def test_a_directory_that_is_gone_has_a_project_all_the_same(
    tmp_path: Path, mulligan_home: Path
) -> None:
    gone = tmp_path / "gone" / "shop"
    logs = Logs("pi", tmp_path, gone)
    logs.write()
    assert logs.take(mulligan_home).projects == (str(gone),)
    assert len(search_everywhere(str(mulligan_home), "pears").hits) >= 2
    # Once it is there again, it has its sessions.
    gone.mkdir(parents=True)
    with mulligan.open(gone) as workspace:
        assert spoken(workspace)[0] == "Count the pears."


def test_a_directory_that_is_gone_within_an_opened_project_belongs_to_it(
    tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    with mulligan.open(project):
        pass
    logs = Logs("pi", tmp_path, project / "gone" / "below")
    logs.write()
    assert logs.take(mulligan_home).projects == (str(project),)


def test_a_home_directory_is_taken_for_a_log_and_captures_nothing_below_it(
    tmp_path: Path, mulligan_home: Path
) -> None:
    user = Path(os.environ["HOME"])
    for home, order in ((mulligan_home, "wide first"), (tmp_path / "other", "wide last")):
        narrow, gone = Logs("pi", tmp_path / order, user / "shop"), user / "gone"
        (user / "shop").mkdir(exist_ok=True)
        wide, lost = Logs("codex", tmp_path / order, user), Logs("gemini", tmp_path / order, gone)
        for logs in (narrow, wide, lost):
            logs.write()
        chosen = [narrow, wide, lost] if order == "wide last" else [wide, narrow, lost]
        found = {logs.agent: logs.take(home).projects for logs in chosen}
        assert found == {"pi": (str(user / "shop"),), "codex": (str(user),), "gemini": (str(gone),)}
        with pytest.raises(mulligan.RefusedRoot):
            find_project(str(user), str(home))


def test_a_subfolder_of_a_repository_belongs_to_the_repository(
    tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    (project / ".git").mkdir()
    (project / ".git/HEAD").touch()
    (project / "src" / "deep").mkdir(parents=True)
    logs = Logs("claude-code", tmp_path, project / "src" / "deep")
    logs.write()
    assert logs.take(mulligan_home).projects == (str(project),)
    with mulligan.open(project / "src") as workspace:
        assert workspace.root == str(project)
        assert workspace.sessions.get("@").directory == str(project / "src" / "deep")


def test_an_imported_project_captures_no_folder_below_it_and_becomes_real_when_opened(
    tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    logs = Logs("pi", tmp_path, project)
    logs.write()
    logs.take(mulligan_home)
    (known,) = known_projects(str(mulligan_home))
    assert is_imported(known)
    below = project / "below"
    below.mkdir()
    assert find_project(str(below), str(mulligan_home)).root == os.fsencode(below)
    with mulligan.open(project) as workspace:
        assert workspace.project.location.id == known.id
        assert spoken(workspace)[0] == "Count the pears."
    assert not is_imported(known)
    assert find_project(str(below), str(mulligan_home)).root == os.fsencode(project)
    # Another import does not make it less.
    logs.take(mulligan_home, again=True)
    assert not is_imported(known)


def test_an_import_leaves_logs_and_projects_as_they_are(
    logs: Logs, project: Path, mulligan_home: Path
) -> None:
    logs.write()
    (project / "a").write_text("1")

    def look() -> list[tuple[str, int, int]]:
        return [
            (str(path), path.stat().st_mtime_ns, path.stat().st_size)
            for folder in (logs.user, project)
            for path in sorted(folder.rglob("*"))
        ]

    before = look()
    logs.take(mulligan_home)
    assert look() == before
    assert not list(mulligan_home.glob("projects/*/objects/*.pack"))


def test_edits_have_paths_from_the_project_s_top(
    tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    (project / ".git").mkdir()
    (project / ".git/HEAD").touch()
    (project / "src").mkdir()
    logs = Logs("pi", tmp_path, project / "src")
    for id, path in (("w1", "a.py"), ("w2", str(project / "b.py")), ("w3", "/elsewhere/c.py")):
        write = {"type": "toolCall", "id": id, "name": "write"}
        blocks = [write | {"arguments": {"path": path, "content": "x\n"}}]
        result = {"role": "toolResult", "content": [], "toolCallId": id, "toolName": "write"}
        for name, message in (
            (f"{id}a", {"role": "assistant", "content": blocks}),
            (f"{id}b", result),
        ):
            last = logs.lines[-1]
            logs.lines.append(last | {"id": name, "parentId": last["id"], "message": message})
    logs.text = "".join(json.dumps(line) + "\n" for line in logs.lines)
    logs.write()
    logs.take(mulligan_home)
    with mulligan.open(project) as workspace:
        paths = [(entry.data or {})["path"] for entry in workspace.sessions.file_edits("@").entries]
    assert paths == ["src/a.py", "b.py", "/elsewhere/c.py"]


def test_an_unknown_agent_and_a_path_that_is_not_there_are_named(mulligan_home: Path) -> None:
    with pytest.raises(NotFound, match="codex"):
        import_logs(str(mulligan_home), "nobody")
    with pytest.raises(NotFound, match="nowhere"):
        import_logs(str(mulligan_home), "pi", paths=("/nowhere",))


def test_a_folder_a_file_or_a_home_can_be_named(
    tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    logs = Logs("pi", tmp_path / "copy", project)
    logs.write()
    for number, path in enumerate((logs.path, logs.path.parent, logs.user, logs.user / ".pi")):
        done = import_logs(str(mulligan_home / str(number)), "pi", paths=(str(path),))
        assert (done.logs, done.sessions) == (1, 1), path


def test_an_unreadable_log_is_named_and_the_others_are_taken(
    tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    logs = Logs("pi", tmp_path, project)
    logs.write()
    broken = logs.path.with_name("2026-02-01T10-00-00-000Z_broken.jsonl")
    broken.mkdir()
    other = logs.path.with_name("2026-02-02T10-00-00-000Z_other.jsonl")
    other.symlink_to(other)
    done = logs.take(mulligan_home)
    assert done.sessions == 1
    with mulligan.open(project) as workspace:
        assert len(workspace.sessions.list().sessions) == 1


def test_two_processes_import_the_same_log_at_once_without_doubling(
    logs: Logs, project: Path, mulligan_home: Path
) -> None:
    logs.write()
    command = [sys.executable, "-m", "mulligan", "import", logs.agent, str(logs.user), "--json"]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    answers = [each.communicate(timeout=120) for each in running]
    assert [each.returncode for each in running] == [0] * 4, answers
    logs.take(mulligan_home / "alone")
    assert told(project, mulligan_home) == told(project, mulligan_home / "alone")


def test_following_takes_in_what_is_added_until_told_that_it_is_enough(
    tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    logs = Logs("pi", tmp_path, project)
    logs.write(1)
    seen: list[int] = []

    def told(done: ImportResult) -> bool:
        seen.append(done.entries)
        logs.write(min(len(seen) + 1, len(logs.lines)))
        return len(seen) < 8

    follow(str(mulligan_home), "pi", paths=(str(logs.path),), every=0.0, told=told)
    assert len(seen) == 8 and seen[-1] == 0
    with mulligan.open(project) as workspace:
        assert sum(seen) == workspace.sessions.count_entries("@")


@contextmanager
def watching(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "mulligan", "import", *arguments, "--watch", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=60)
        assert "Traceback" not in err


def test_the_command_follows_a_growing_log(
    tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    logs = Logs("claude-code", tmp_path, project)
    logs.write(1)
    with watching("claude-code", str(logs.path)) as process:
        for count in range(1, len(logs.lines) + 1):
            logs.write(count)
            wait_until(partial(has_lines, project, count), process)
        # In the middle of a line, then the end of it.
        more = json.dumps(logs.lines[-1] | {"uuid": "u9", "parentUuid": "u5"}) + "\n"
        with logs.path.open("a") as file:
            file.write(more[:50])
            file.flush()
            time.sleep(1.5)
            file.write(more[50:])
        wait_until(lambda: "u9" in ids(project), process)
    with mulligan.open(project) as workspace:
        assert spoken(workspace)[-2:] == ["Thank you.", "Thank you."]
        assert call_of(workspace)["status"] == "success"


def ids(project: Path) -> list[str]:
    try:
        with mulligan.open(project, create=False) as workspace:
            return [entry.id for entry in workspace.sessions.transcript("@").entries]
    except NotFound:
        return []


def has_lines(project: Path, count: int) -> bool:
    """True if `count` lines of the log were imported, by their entries' ids."""
    return len({id.split(":")[0] for id in ids(project)}) >= count


def wait_until(true: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_long_log_can_be_given_up_in_the_middle_and_is_taken_to_its_end_the_next_time(
    tmp_path: Path, project: Path, mulligan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mulligan.workspace.transfer.import_logs.BATCH_RECORDS", 10)
    name, lines = claude_code(str(project))
    said = lines[0]
    log = tmp_path / Path(name).name
    many = [
        said | {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None}
        for number in range(100)
    ]
    log.write_text("".join(json.dumps(each) + "\n" for each in many))

    class GivenUp(Exception):
        pass

    def progress(stage: str, done: int, total: int | None) -> None:
        raise GivenUp

    begin = partial(import_logs, str(mulligan_home), "claude-code", paths=(str(log),))
    with pytest.raises(GivenUp):
        begin(progress=progress)
    with mulligan.open(project) as workspace:
        before = workspace.sessions.count_entries(CLAUDE)
        assert 0 < before < 100
        assert begin().entries == 100 - before
        assert workspace.sessions.count_entries(CLAUDE) == 100
