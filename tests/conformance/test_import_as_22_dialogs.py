"""Dialogs that AgentSmithy kept, of its first versions and of later ones, taken in as they are.

The first versions had one branch without a name, and no approval. What is on it counts as
approved, work goes on as `session_1`, and every old checkpoint can be returned to.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from acts import picture, write

import mulligan
from mulligan.server.dialogs import actions, events
from mulligan.workspace.transfer.import_logs import ImportResult, import_logs

ID = "01JDIALOG"
LARGE = os.urandom(1_500_000)


class Dialog:
    """A dialog's folder in a project, as AgentSmithy leaves it behind."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.folder = project / ".agentsmithy" / "dialogs" / ID
        (self.folder / "checkpoints").mkdir(parents=True)
        about = {"id": ID, "title": "A TODO app", "created_at": "2025-10-23T15:00:00Z"}
        write(self.folder.parent, {"index.json": json.dumps({"dialogs": [about]})})
        with closing(sqlite3.connect(self.journal)) as db:
            db.executescript(
                "CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id, message);"
                "CREATE TABLE dialog_file_edits (id INTEGER PRIMARY KEY, dialog_id, file, diff, "
                "checkpoint, created_at, message_index);"
            )
        self.time = 1_761_231_600
        self.git("init", "-q", "-b", "master")

    @property
    def journal(self) -> Path:
        return self.folder / "journal.sqlite"

    def git(self, *arguments: str) -> str:
        when = {f"GIT_{who}_DATE": f"{self.time} +0000" for who in ("AUTHOR", "COMMITTER")}
        places = [f"--git-dir={self.folder}/checkpoints/.git", f"--work-tree={self.project}"]
        done = subprocess.run(
            ["git", *places, *arguments],
            cwd=self.project, env=os.environ | when, capture_output=True, text=True, check=True,
            timeout=60,
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        """A checkpoint of the project as it is, a minute later than the one before."""
        self.time += 60
        self.git("add", "-A", "--", ":/", ":!.agentsmithy")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def say(self, type: str, content: str, **data: Any) -> None:
        message = {"type": type, "data": {"content": content, **data}}
        with closing(sqlite3.connect(self.journal)) as db, db:
            db.execute(
                "INSERT INTO message_store (session_id, message) VALUES (?, ?)",
                (ID, json.dumps(message)),
            )

    def ask(self, content: str) -> str:
        """What happens at a message of the user's: a checkpoint, then the message with it."""
        commit = self.commit(f"Before user message: {content}")
        self.say("human", content, additional_kwargs={"checkpoint": commit})
        return commit

    def take(self, home: Path, **more: Any) -> ImportResult:
        return import_logs(
            str(home), "agentsmithy", environment={"PWD": str(self.project)}, user_home="/", **more
        )


@pytest.fixture
def dialog(project: Path) -> Dialog:
    (project / ".git").mkdir()
    return Dialog(project)


@pytest.fixture
def commits(dialog: Dialog) -> list[str]:
    """An old dialog of one branch: the project's beginning, and two messages."""
    write(dialog.project, {"main.py": "print(1)\n", "docs/read me.md": "hello\n"})
    first = dialog.commit("Initial snapshot")
    second = dialog.ask("Create a TODO app")
    call = {"name": "write_file", "args": {"path": "todo.py"}, "id": "call_1"}
    dialog.say("ai", "I write it.", tool_calls=[call])
    dialog.say("tool", "written", tool_call_id="call_1", name="write_file", status="success")
    write(dialog.project, {"todo.py": "todo = []\n", "main.py": "print(2)\n", "large": LARGE})
    (dialog.project / "link").symlink_to("main.py")
    (dialog.project / "todo.py").chmod(0o755)
    third = dialog.ask("Add tests")
    write(dialog.project, {"test_todo.py": "assert True\n"})
    return [first, second, third]


def loose(dialog: Dialog) -> None:
    assert not list(dialog.folder.glob("checkpoints/.git/objects/pack/*.pack"))


def packed(dialog: Dialog) -> None:
    dialog.git("gc", "-q", "--aggressive", "--prune=now")
    assert list(dialog.folder.glob("checkpoints/.git/objects/pack/*.pack"))
    assert not (dialog.folder / "checkpoints/.git/refs/heads/master").exists()


@pytest.mark.parametrize("how", [loose, packed])
def test_as_22_every_old_checkpoint_is_there_with_its_id_and_can_be_returned_to(
    dialog: Dialog, commits: list[str], mulligan_home: Path, how: Any
) -> None:
    how(dialog)
    before = picture(dialog.project)
    done = dialog.take(mulligan_home)
    assert (done.sessions, done.checkpoints, done.problems) == (1, 3, ())
    assert picture(dialog.project) == before
    with mulligan.open(dialog.project) as workspace:
        found = actions.checkpoints(workspace, ID)
        assert [each["commit_id"] for each in found["checkpoints"]] == commits
        assert found["initial_checkpoint"] == commits[0]
        assert found["checkpoints"][1]["message"] == "Before user message: Create a TODO app"
        assert workspace.read(commits[2], "large") == LARGE
        assert workspace.tree_entry(commits[2], "link").kind == "link"
        assert workspace.tree_entry(commits[2], "todo.py").mode == "0755"
        assert workspace.read(commits[0], "docs/read me.md") == b"hello\n"
        workspace.restore(commits[1], preview=True)
        restored = actions.restore(workspace, ID, commits[1], force=False)
        assert restored["restored_to"] == commits[1]
        assert (dialog.project / "main.py").read_text() == "print(1)\n"
        # What AgentSmithy did not hold then may have been there, ignored: it stays.
        assert (dialog.project / "test_todo.py").exists()
        workspace.undo()
        assert workspace.maintenance.verify().problems == ()
    assert picture(dialog.project) == before


def test_as_22_what_is_there_counts_as_approved_and_work_goes_on_in_session_1(
    dialog: Dialog, commits: list[str], mulligan_home: Path
) -> None:
    dialog.take(mulligan_home)
    with mulligan.open(dialog.project) as workspace:
        about = actions.one(workspace, ID)
        assert (about["active_session"], about["last_approved_at"]) == ("session_1", None)
        assert (about["title"], about["created_at"]) == ("A TODO app", "2025-10-23T15:00:00.000Z")
        status = actions.status(workspace, ID)
        assert (status["has_unapproved"], status["changed_files"]) == (False, [])
        workspace.sessions.begin_turn(ID, "Go on")
        write(dialog.project, {"main.py": "print(3)\n"})
        workspace.sessions.end_turn(ID)
        status = actions.status(workspace, ID)
        assert status["active_session"] == "session_1"
        assert [each["path"] for each in status["changed_files"]] == ["main.py"]
        assert actions.approve(workspace, ID, "")["new_session"] == "session_2"
        listed = actions.checkpoints(workspace, ID)["checkpoints"]
        assert [each["commit_id"] for each in listed][:3] == commits
        assert workspace.maintenance.verify().problems == ()


def test_as_22_the_history_names_the_checkpoint_of_each_message(
    dialog: Dialog, commits: list[str], mulligan_home: Path
) -> None:
    with closing(sqlite3.connect(dialog.journal)) as db, db:
        diff = zlib.compress(b"--- /dev/null\n+++ b/todo.py\n@@ -0,0 +1 @@\n+todo = []\n")
        db.execute(
            "INSERT INTO dialog_file_edits VALUES (1, ?, 'todo.py', ?, '', '', 2)", (ID, diff)
        )
    dialog.take(mulligan_home)
    with mulligan.open(dialog.project) as workspace:
        history = events.history(workspace, ID, 20, None, None)["events"]
        said = [(event["type"], event.get("content"), event.get("checkpoint")) for event in history]
        assert said == [
            ("user", "Create a TODO app", commits[1]),
            ("chat", "I write it.", None),
            ("tool_call", None, None),
            ("file_edit", None, None),
            ("user", "Add tests", commits[2]),
        ]
        messages = workspace.sessions.transcript(ID, types=("user_input",)).entries
        assert [each.created_at for each in messages] == [
            workspace.find(each).created_at for each in commits[1:]
        ]
        (edit,) = workspace.sessions.file_edits(ID).entries
        assert edit.data is not None
        assert (edit.data["operation"], edit.data["additions"]) == ("create", 1)
        workspace.sessions.goto(messages[1].id, session=ID, preview=True)
        workspace.sessions.goto(messages[1].id, session=ID)
        assert (dialog.project / "main.py").read_text() == "print(2)\n"


def test_as_22_a_dialog_of_many_rounds_keeps_the_checkpoints_of_all_of_its_branches(
    dialog: Dialog, commits: list[str], mulligan_home: Path
) -> None:
    dialog.git("branch", "-m", "master", "main")
    dialog.git("checkout", "-q", "-b", "session_1")
    approved = dialog.ask("One more")
    dialog.git("checkout", "-q", "main")
    dialog.time += 60
    dialog.git("merge", "-q", "--no-ff", "-m", "Approved session_1", "session_1")
    merge = dialog.git("rev-parse", "HEAD")
    dialog.git("checkout", "-q", "-b", "session_2")
    write(dialog.project, {"main.py": "print('abandoned')\n"})
    abandoned = dialog.ask("And one that was thrown away")
    dialog.git("checkout", "-q", "main")
    assert dialog.take(mulligan_home).checkpoints == 6
    with mulligan.open(dialog.project) as workspace:
        listed = actions.checkpoints(workspace, ID)["checkpoints"]
        assert [each["commit_id"] for each in listed] == [*commits, approved, merge, abandoned]
        assert workspace.read(abandoned, "main.py") == b"print('abandoned')\n"


def test_as_22_taking_it_in_twice_adds_only_what_is_new(
    dialog: Dialog, commits: list[str], mulligan_home: Path
) -> None:
    first = dialog.take(mulligan_home)
    again = dialog.take(mulligan_home, again=True)
    assert (again.entries, again.checkpoints, again.problems) == (0, 0, ())
    last = dialog.ask("Thank you")
    more = dialog.take(mulligan_home)
    assert (more.entries, more.checkpoints) == (1, 1)
    with mulligan.open(dialog.project) as workspace:
        assert workspace.sessions.count_entries(ID) == first.entries + 1
        assert actions.checkpoints(workspace, ID)["checkpoints"][-1]["commit_id"] == last


def test_as_22_what_is_damaged_or_missing_is_named_and_the_rest_is_taken(
    dialog: Dialog, commits: list[str], mulligan_home: Path
) -> None:
    objects = dialog.folder / "checkpoints" / ".git" / "objects"
    lost = dialog.git("rev-parse", f"{commits[2]}:todo.py")
    wrong = dialog.git("rev-parse", f"{commits[2]}:main.py")
    tree = dialog.git("rev-parse", f"{commits[0]}^{{tree}}")
    (objects / lost[:2] / lost[2:]).unlink()
    path = objects / wrong[:2] / wrong[2:]
    path.chmod(0o600)
    path.write_bytes(zlib.compress(b"blob 9\0print(9)\n"))
    tree_path = objects / tree[:2] / tree[2:]
    tree_path.chmod(0o600)
    tree_path.write_bytes(b"nothing that git ever wrote")
    dialog.say("robot", "?")
    done = dialog.take(mulligan_home)
    reasons = "\n".join(each.reason for each in done.problems)
    # The tree of the first is that of the second, too.
    assert done.checkpoints == 1 and len(done.problems) == 5, reasons
    for named in (commits[0], commits[1], "todo.py: ", "main.py: ", "'robot'"):
        assert named in reasons
    with mulligan.open(dialog.project) as workspace:
        assert workspace.read(commits[2], "large") == LARGE
        skipped = {each.path for each in workspace.find(commits[2]).coverage.skipped}
        assert skipped == {b"", b"todo.py", b"main.py"}
        assert workspace.maintenance.verify().problems == ()


def test_as_22_a_dialog_without_a_database_or_without_checkpoints_is_taken_for_what_it_has(
    dialog: Dialog, commits: list[str], tmp_path: Path, mulligan_home: Path
) -> None:
    dialog.journal.rename(tmp_path / "journal")
    done = dialog.take(mulligan_home)
    assert (done.sessions, done.entries) == (1, 0)
    (tmp_path / "journal").rename(dialog.journal)
    (dialog.folder / "checkpoints").rename(tmp_path / "checkpoints")
    other = dialog.take(tmp_path / "other home")
    assert (other.entries, other.checkpoints, other.problems) == (5, 0, ())


def test_as_22_settings_of_the_repository_run_nothing(
    dialog: Dialog, commits: list[str], tmp_path: Path, mulligan_home: Path
) -> None:
    (dialog.folder / "checkpoints/.git/config").write_text(
        f"[core]\n\tfsmonitor = touch {tmp_path}/ran\n\trepositoryformatversion = 1\n"
        f"[extensions]\n\tpartialclone = evil\n"
        f'[remote "evil"]\n\turl = ext::touch {tmp_path}/ran\n\tpromisor = true\n'
    )
    assert dialog.take(mulligan_home).checkpoints == 3
    assert not (tmp_path / "ran").exists()


def test_as_22_the_command_looks_in_the_folder_that_it_is_told_to_work_in(
    dialog: Dialog, commits: list[str], tmp_path: Path, mulligan_home: Path
) -> None:
    command = [sys.executable, "-m", "mulligan", "-C", str(dialog.project), "--json"]
    command += ["import", "agentsmithy"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=True)
    (imported,) = json.loads(done.stdout)["imported"]
    assert (imported["sessions"], imported["checkpoints"]) == (1, 3)
