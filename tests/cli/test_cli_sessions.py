"""The commands for sessions: what they say, what they give as data, and what they do on disk."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import mulligan
from mulligan import Workspace
from mulligan.core.entries import NewEntry
from run import COMMAND, mull, quick, write

EVIL = "evil\x1b[2J\r\x07 title"


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    with mulligan.open(project) as opened:
        yield opened


def turn(workspace: Workspace, session: str, message: str, files: dict[str, str]) -> str:
    """A turn that writes these files; gives the entry of the message."""
    begun = workspace.sessions.begin_turn(session, message)
    write(Path(workspace.root), files)
    workspace.sessions.append(session, NewEntry("assistant_output", f"Did: {message}"))
    workspace.sessions.end_turn(session)
    return begun.entry


def story(workspace: Workspace) -> tuple[str, list[str]]:
    """A session of three turns; gives it and the entries of the messages."""
    session = workspace.sessions.create(agent="claude-code", model="m1", process=0).id
    return session, [
        turn(workspace, session, "Make it", {"a.txt": "1\n"}),
        turn(workspace, session, "Change it", {"a.txt": "2\n", "b.txt": "b\n"}),
        turn(workspace, session, "Change it again", {"a.txt": "3\n"}),
    ]


def said(project: Path, *arguments: str) -> str:
    done = quick(*arguments, project=project)
    return done.stdout.decode() + done.stderr


def test_sessions_are_listed_newest_first_and_in_pages(project: Path, workspace: Workspace) -> None:
    ids = [workspace.sessions.create(agent=f"a{n}", title=f"t{n}", process=0).id for n in range(5)]
    lines = quick("sessions", project=project).lines
    assert [line.split()[0] for line in lines] == [id[:8] for id in ids[::-1]]
    assert all("s ago" in line for line in lines)
    page = quick("sessions", "-n", "2", "--json", project=project).json
    found = [each["session"] for each in page["sessions"]]
    assert page["has_more"] and found == ids[:2:-1]
    for how in (("--cursor", page["next_cursor"]), ("--offset", str(page["next_offset"]))):
        more = quick("sessions", *how, "--json", project=project).json
        assert [each["session"] for each in more["sessions"]] == ids[2::-1]
        assert (more["has_more"], more["next_cursor"], more["next_offset"]) == (False, None, None)
    assert len(quick("sessions", "--agent", "a3", project=project).lines) == 1
    workspace.sessions.change(ids[0], status="paused")
    assert len(quick("sessions", "--status", "paused", project=project).lines) == 1
    quick("sessions", "--status", "nonsense", project=project, code=2)
    quick("sessions", "--cursor", "nonsense", project=project, code=2)


def test_sessions_show_what_is_pending_only_if_something_is(
    project: Path, workspace: Workspace
) -> None:
    session, _messages = story(workspace)
    workspace.sessions.create(title="idle", process=0)
    text = quick("sessions", project=project).stdout.decode()
    assert "+2 −0" in text
    rows = quick("sessions", "--json", project=project).json["sessions"]
    assert [each["pending"] for each in rows] == [
        None, {"additions": 2, "deletions": 0, "files": 2},
    ]  # fmt: skip
    workspace.review.approve(session)
    assert "−" not in quick("sessions", project=project).stdout.decode()


def test_status_of_a_session_tells_of_pending_files_rounds_and_turns(
    project: Path, workspace: Workspace
) -> None:
    session, _messages = story(workspace)
    found = quick("session", "status", session[:6], "--json", project=project).json
    assert (found["session"], found["round"], found["has_unapproved"]) == (
        session, "session_1", True,
    )  # fmt: skip
    files = [each["path"] for each in found["changed_files"]]
    assert len(files) == 2
    assert {each["status"] for each in found["turns"] if each["files"]} == {"pending"}
    text = quick("session", "status", project=project).stdout.decode()
    assert all(path in text for path in files) and "session_1  active" in text
    workspace.review.approve(session)
    done = quick("session", "status", session, project=project)
    assert "session_1  merged" in done.stdout.decode() and "Nothing is pending" in done.stderr
    assert "pending" not in done.stdout.decode() and "kept" in done.stdout.decode()
    quick("session", "status", "nosuch", project=project, code=3)


def test_all_lists_the_sessions_of_every_project_even_of_one_that_is_gone(
    project: Path, tmp_path: Path, mulligan_home: Path
) -> None:
    others = [tmp_path / name for name in ("one", "two")]
    for place in (project, *others):
        place.mkdir(exist_ok=True)
        quick("session", "new", "--title", f"in {place.name}", project=place)
    shutil.rmtree(others[0])
    done = quick("sessions", "--all", "--json", project=project)
    titles = [each["title"] for each in done.json["sessions"]]
    assert titles == [f"in {place.name}" for place in (others[1], others[0], project)]
    page = quick("sessions", "--all", "-n", "2", "--json", project=project).json
    assert page["has_more"] and page["next_offset"] == 2
    rest = quick("sessions", "--all", "--offset", "2", "--json", project=project).json
    assert [each["title"] for each in rest["sessions"]] == titles[2:]
    journal = next((mulligan_home / "projects").glob("*/journal.sqlite"))
    journal.write_bytes(b"not a database, but long enough to be taken for one" * 20)
    for beside in journal.parent.glob("journal.sqlite-*"):
        beside.unlink()
    done = quick("sessions", "--all", project=project)
    assert len(done.lines) == 2 and "Not read" in done.stderr
    quick("sessions", "--all", "--cursor", "x/1", project=project, code=2)


def test_a_session_can_be_made_named_labelled_forked_and_deleted(project: Path) -> None:
    write(project, {"a": "1\n"})
    made = quick("session", "new", "--agent", "me", "--title", "T", "--model", "m", project=project)
    (id,) = made.lines
    found = quick("session", "show", id, "--json", project=project).json["session"]
    assert (found["agent"], found["title"], found["model"]) == ("me", "T", "m")
    assert found["status"] == "starting"
    quick("session", "title", "@", "Better", project=project)
    with mulligan.open(project) as workspace:
        first = turn(workspace, id, "Go", {"a": "2\n"})
        turn(workspace, id, "On", {"a": "3\n"})
    assert "goto good" in quick("session", "label", first, "good", project=project).stderr
    forked = quick("session", "fork", id, "--title", "F", "--json", project=project).json
    assert forked["forked_from"] == id and forked["title"] == "F"
    before = quick("session", "fork", id, "good", project=project).lines[0]
    assert quick("session", "show", before, "--json", project=project).json["entries"] == []
    quick("session", "label", "good", "--session", id, project=project)
    quick("session", "delete", id, project=project, code=2)
    quick("--json", "session", "delete", id, project=project, code=2)
    assert quick("session", "delete", id, "--yes", "--json", project=project).json["deleted"]
    quick("session", "show", id, project=project, code=3)
    assert (project / "a").read_text() == "3\n"
    quick("verify", project=project)


def test_show_tells_what_was_said_called_and_changed(project: Path, workspace: Workspace) -> None:
    session = workspace.sessions.create(agent="me", process=0).id
    workspace.sessions.begin_turn(session, "Please\n" + "\n".join(f"line {n}" for n in range(30)))
    workspace.sessions.append(
        session,
        NewEntry("tool_call", "", {"name": "Bash", "input": {"command": "make all"}, "call": "c",
                                   "status": "error", "output": "no rule", "duration": 1500}),
        NewEntry("tool_result", "no rule", {"call": "c"}),
        NewEntry("file_edit", "", {"path": "a.c", "operation": "modify", "additions": 3,
                                   "deletions": 1, "diff": "@@ -1 +1 @@\n-x\n+y\n"}),
    )  # fmt: skip
    write(project, {"new.c": "1\n"})
    step = workspace.sessions.end_turn(session)
    assert step.entry is not None and step.checkpoint is not None
    workspace.sessions.label(step.entry, "here", session)
    text = quick("session", "show", project=project).stdout.decode()
    assert re.search(r"▸ Bash make all +✗ 1\.5 s", text)
    assert "modified a.c  +3 −1" in text and f"checkpoint {step.checkpoint[:8]}" in text
    assert "[here]" in text and "more lines" in text
    assert "no rule" not in text and "line 29" not in text
    full = quick("session", "show", session, "--full", project=project).stdout.decode()
    assert "no rule" in full and "line 29" in full and "+y" in full
    assert full.count("no rule") == 1
    last = quick("session", "show", "-n", "1", "--json", project=project).json
    assert [each["entry"] for each in last["entries"]] == [step.entry]
    assert last["total"] == workspace.sessions.count_entries(session)


def test_show_leaves_other_branches_out_unless_asked(project: Path, workspace: Workspace) -> None:
    session, messages = story(workspace)
    quick("goto", messages[2], project=project)
    turn(workspace, session, "Something else", {"c": "c\n"})
    text = quick("session", "show", project=project).stdout.decode()
    assert "Something else" in text and "Change it again" not in text
    text = quick("session", "show", "--all-branches", project=project).stdout.decode()
    assert "Something else" in text and "Change it again" in text and "another branch" in text


def test_compact_hides_behind_a_marker_and_loses_nothing(
    project: Path, workspace: Workspace
) -> None:
    _session, messages = story(workspace)
    done = quick("session", "compact", "@", messages[2], "--summary", "Sum", "--json",
                 project=project).json  # fmt: skip
    assert done["hidden"] == 6 and done["marker"]["type"] == "compact_marker"
    text = quick("session", "show", project=project).stdout.decode()
    assert "compacted from here" in text and "Make it" in text and "Sum" in text
    quick("goto", messages[1], project=project)
    assert (project / "a.txt").read_text() == "1\n"


def test_tree_draws_branches_beside_each_other_and_marks_where_it_stands(
    project: Path, workspace: Workspace
) -> None:
    session, messages = story(workspace)
    quick("session", "label", messages[1], "turning", project=project)
    quick("goto", messages[2], project=project)
    turn(workspace, session, "Instead", {"c": "c\n"})
    lines = quick("tree", project=project).lines
    ids = [id[:8] for id in messages]
    shown = [re.sub(r"  \d+ \w+ ago$", "", line) for line in lines]
    ends = [line.split()[1] for line in shown if line.startswith("◆")]
    left = next(line.split()[2] for line in shown if line.startswith("│ ◆"))
    new = next(line.split()[1] for line in shown if line.endswith("Instead"))
    assert shown == [
        f"● {ids[0]}  Make it",
        "│   1 answer",
        f"◆ {ends[0]}  1 added",
        f"● {ids[1]}  Change it  [turning]",
        "│   1 answer",
        f"◆ {ends[1]}  1 added, 1 modified",
        "├─╮",
        f"│ ● {ids[2]}  Change it again",
        "│ │   1 answer",
        f"│ ◆ {left}  1 modified",
        f"● {new}  Instead",
        "│   1 answer",
        f"◆ {ends[2]}  1 added  ← here",
    ]
    data = quick("tree", "--json", project=project).json
    nodes = {each["entry"]: each for each in data["entries"]}
    assert [each["is_leaf"] for each in nodes.values()].count(True) == 1
    assert nodes[messages[2]]["active"] is False
    parent = nodes[messages[2]]["parent"]
    assert [each["entry"] for each in nodes.values() if each["parent"] == parent] == [
        messages[2], next(each for each in nodes if each.startswith(new)),
    ]  # fmt: skip
    assert {each["active"] for each in data["branches"]} == {True, False}


def test_f_pi_2_the_tree_shows_where_files_were_skipped(
    project: Path, workspace: Workspace
) -> None:
    _session, messages = story(workspace)
    assert "files skipped" not in quick("tree", project=project).stdout.decode()
    quick("goto", messages[2], "--no-files", project=project)
    (here,) = [line for line in quick("tree", project=project).lines if "← here" in line]
    assert "← here  files skipped" in here
    nodes = quick("tree", "--json", project=project).json["entries"]
    assert [each["is_leaf"] for each in nodes] == [each["files_skipped"] for each in nodes]
    quick("goto", messages[1], "--no-files", "--summarize", project=project)
    (summary,) = [line for line in quick("tree", project=project).lines if "◇" in line]
    assert "files skipped" in summary
    workspace.sessions.append("@", NewEntry("user_input", "On from there"))
    marked = [line for line in quick("tree", project=project).lines if "files skipped" in line]
    assert len(marked) == 1 and "◇" in marked[0]


def test_a_long_stretch_is_shortened_but_labels_and_the_leaf_stay(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create(process=0).id
    entries = workspace.sessions.append(
        session, *(NewEntry("user_input", f"message {n}") for n in range(200))
    )
    workspace.sessions.label(entries[100].id, "middle", session)
    lines = quick("tree", project=project).lines
    assert len(lines) < 20
    text = "\n".join(lines)
    assert "message 0 " in text and "[middle]" in text and "← here" in text
    assert "… 95 turns more" in text
    assert len(quick("tree", "--full", project=project).lines) == 200


def test_a_tree_of_many_nested_branches_and_roots_is_drawn(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create(process=0).id
    parent: str | None = None
    for number in range(300):
        (entry, _side) = workspace.sessions.append(
            session,
            NewEntry("user_input", f"m{number}", parent=parent),
            NewEntry("user_input", f"side{number}", parent=parent),
        )
        parent = entry.id
    workspace.sessions.append(
        session, NewEntry("assistant_output", "sub", parent=parent, off_path=True)
    )
    text = "\n".join(quick("tree", "--full", project=project).lines)
    assert all(f"m{n} " in text and f"side{n} " in text for n in range(300))
    assert "1 record of a sub-agent" in text


def test_goto_brings_the_files_along_and_undo_takes_it_back(
    project: Path, workspace: Workspace
) -> None:
    _session, messages = story(workspace)
    preview = quick("goto", messages[1], "--preview", project=project)
    assert preview.stderr.startswith(f"Would bring the files there in {project}: ")
    assert [line.split() for line in preview.lines] == [["R", "a.txt"], ["D", "b.txt"]]
    assert "Nothing was changed" in preview.stderr and (project / "a.txt").read_text() == "3\n"
    done = quick("goto", messages[1], project=project)
    assert done.stdout == b"Change it\n"
    told, how_to_go_on = done.stderr.splitlines()
    assert "`mulligan undo` takes it back" in told and "claude --resume" in how_to_go_on
    assert (project / "a.txt").read_text() == "1\n" and not (project / "b.txt").exists()
    quick("undo", project=project)
    assert (project / "a.txt").read_text() == "3\n" and (project / "b.txt").exists()
    text = quick("session", "show", project=project).stdout.decode()
    assert "Change it again" in text


def test_goto_without_files_moves_the_conversation_alone(
    project: Path, workspace: Workspace
) -> None:
    _session, messages = story(workspace)
    words = quick("goto", messages[1], "--no-files", "--preview", project=project).stderr
    assert "Would move" in words
    done = quick("goto", messages[1], "--no-files", "--summarize", "--json", project=project).json
    assert done["files"] is None and done["text"] == "Change it" and done["summary_entry"]
    assert (project / "a.txt").read_text() == "3\n"
    assert "summary: " in quick("tree", project=project).stdout.decode()
    again = quick("goto", done["summary_entry"], project=project)
    assert "already" in again.stderr and again.stdout == b""


def test_goto_leaves_the_users_own_edits_alone_unless_forced(
    project: Path, workspace: Workspace
) -> None:
    _session, messages = story(workspace)
    write(project, {"a.txt": "mine\n"})
    done = quick("goto", messages[2], project=project)
    assert (project / "a.txt").read_text() == "mine\n"
    assert "left alone" in done.stderr and "a.txt" in done.stderr
    quick("undo", project=project)
    quick("goto", messages[2], "--force", project=project)
    assert (project / "a.txt").read_text() == "2\n"


def test_goto_refuses_what_it_cannot_do(project: Path, workspace: Workspace) -> None:
    session, messages = story(workspace)
    quick("goto", "nonsense", project=project, code=3)
    quick("goto", messages[1], "--session", "nonsense", project=project, code=3)
    quick("goto", "#4", "--session", session, "--no-files", project=project)
    fork = workspace.sessions.fork(session).id
    quick("goto", messages[0], "--no-files", project=project, code=3)
    quick("goto", messages[0], "--session", fork, "--no-files", project=project)


@pytest.mark.parametrize(
    ("name", "format", "start"),
    [
        ("s.jsonl", "jsonl", '{"type":"session"'),
        ("s.md", "markdown", "# Make it"),
        ("s.HTML", "html", "<!DOCTYPE html>"),
        ("s", "jsonl", '{"type":"session"'),
    ],
)
def test_export_writes_what_the_name_of_the_file_says(
    project: Path, workspace: Workspace, tmp_path: Path, name: str, format: str, start: str
) -> None:
    story(workspace)
    file = tmp_path / name
    done = quick("export", "@", "-o", str(file), "--json", project=project).json
    assert (done["format"], done["bytes"]) == (format, file.stat().st_size)
    assert file.read_text().startswith(start)
    assert quick("export", "@", "--format", format, project=project).stdout == file.read_bytes()
    quick("export", "@", "-o", str(file), project=project, code=2)
    quick("export", "@", "-o", str(file), "--replace", project=project)
    assert os.listdir(tmp_path) == [name]


def test_export_to_git_prints_the_commit_and_says_what_git_cannot_keep(
    project: Path, workspace: Workspace, tmp_path: Path
) -> None:
    (project / "hollow").mkdir()
    story(workspace)
    done = quick(
        "export", "@", "--format", "git", "--repo", str(tmp_path / "r"), project=project,
    )  # fmt: skip
    shown = subprocess.run(
        ["git", "-C", str(tmp_path / "r"), "log", "-1", "--format=%H"],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == shown.stdout
    assert "empty folders: hollow" in done.stderr and "7 commits on main, session_1" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "git"],
        ["--format", "git", "--repo", "r", "-o", "file"],
        ["--format", "html", "--repo", "r"],
        ["--prefix", "b"],
        ["--format", "pdf"],
        ["--json"],
    ],
)
def test_export_refuses_options_that_do_not_go_together(
    project: Path, workspace: Workspace, arguments: list[str]
) -> None:
    story(workspace)
    quick("export", "@", *arguments, project=project, code=2)


def test_nothing_that_a_session_holds_can_disturb_the_terminal(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create(agent=EVIL, title=EVIL, model=EVIL, process=0).id
    entry = turn(workspace, session, EVIL, {"a": "1\n"})
    workspace.sessions.label(entry, EVIL, session)
    workspace.sessions.append(
        session,
        NewEntry("tool_call", "", {"name": EVIL, "input": {EVIL: EVIL}, "status": EVIL,
                                   "output": EVIL}),
        NewEntry("file_edit", "", {"path": EVIL, "operation": EVIL, "diff": f"+{EVIL}"}),
        NewEntry("step_snapshot", "", {"diff": {EVIL: [EVIL]}}),
        NewEntry("compact_marker", EVIL, {"compactedCount": EVIL}),
        NewEntry("branch_summary", EVIL, id=EVIL),
    )  # fmt: skip
    for command in (
        ["sessions"], ["sessions", "--all"], ["session", "show", "--full"], ["session", "show"],
        ["session", "show", "--all-branches"], ["tree", "--full"], ["session", "title", "@", EVIL],
        ["session", "label", entry, EVIL],
    ):  # fmt: skip
        text = said(project, *command)
        assert not set("\x1b\r\x07") & set(text), command
    text, code = at_a_terminal(project, ["goto", entry, "--no-files"], "", NO_COLOR="1")
    assert code == 0 and "title" in text and "\x07" not in text and "\x1b[2J" not in text


def test_goto_gives_a_program_the_message_byte_for_byte(
    project: Path, workspace: Workspace
) -> None:
    session, _messages = story(workspace)
    entry = turn(workspace, session, f"{EVIL}\n\ttabs and ünïcode", {"a": "1\n"})
    done = mull("goto", entry, cwd=project)
    assert done.stdout.decode() == f"{EVIL}\n\ttabs and ünïcode\n"


def test_other_commands_do_not_make_a_history_where_there_is_none(
    project: Path, mulligan_home: Path
) -> None:
    for command in (["sessions"], ["session", "show"], ["tree"], ["goto", "x"], ["export", "@"]):
        quick(*command, project=project, code=3)
        assert not list(mulligan_home.glob("projects/*")), command


@pytest.mark.parametrize(
    ("words", "at"), [("mulligan session show {}", 3), ("mulligan tree {}", 2)]
)
def test_names_of_sessions_are_completed(
    project: Path, workspace: Workspace, words: str, at: int
) -> None:
    session, messages = story(workspace)
    assert session in completed(project, words.format(session[:3]), at)
    assert messages[1] in completed(project, f"mulligan goto {messages[1][:3]}", 2)


def completed(project: Path, words: str, at: int) -> str:
    environment = {
        **os.environ, "_MULLIGAN_COMPLETE": "bash_complete", "COMP_WORDS": words,
        "COMP_CWORD": str(at),
    }  # fmt: skip
    return mull(cwd=project, env=environment).stdout.decode()


@pytest.mark.parametrize("answer", ["y", "n"])
def test_delete_asks_whoever_sits_at_the_terminal(
    project: Path, workspace: Workspace, answer: str
) -> None:
    session, _messages = story(workspace)
    text, code = at_a_terminal(project, ["session", "delete", session], f"{answer}\n")
    assert "Delete session" in text
    left = [each.id for each in workspace.sessions.list().sessions]
    assert (left, code) == (([], 0) if answer == "y" else ([session], 130))


def test_long_output_goes_through_the_users_pager(project: Path, workspace: Workspace) -> None:
    session = workspace.sessions.create(process=0).id
    workspace.sessions.append(
        session, *(NewEntry("user_input", f"message {n}") for n in range(100))
    )
    text, code = at_a_terminal(project, ["session", "show"], "", PAGER="head -n 6")
    assert code == 0 and "message 0" in text and "message 99" not in text


def at_a_terminal(
    project: Path, arguments: list[str], typed: str, **environment: str
) -> tuple[str, int]:
    """Runs a command on a terminal of its own, and types once it asks; what it showed, its code."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], cwd=project, stdin=slave, stdout=slave, stderr=slave,
        env={**os.environ, "TERM": "xterm", "LINES": "24", "COLUMNS": "80", **environment},
    )  # fmt: skip
    os.close(slave)
    shown = b""
    end = time.monotonic() + 60
    try:
        while time.monotonic() < end:
            ready, _out, _problem = select.select([master], [], [], 1)
            if ready:
                try:
                    piece = os.read(master, 65536)
                except OSError:
                    break
                if not piece:
                    break
                shown += piece
                if typed and b"?" in shown:
                    os.write(master, typed.encode())
                    typed = ""
        return shown.decode(), process.wait(30)
    finally:
        process.kill()
        process.wait()
        os.close(master)
