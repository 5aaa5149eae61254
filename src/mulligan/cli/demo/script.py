"""The scripted agents of `mulligan demo`: what they say and do is fixed, what happens is real.

They go through the same verbs as every agent: turns begin and end, tools write files between
`start_edit` and `finalize_edit`, and a shell deletes files without telling anybody.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mulligan.cli.demo.files import DATES, FILES, SQLITE
from mulligan.clock import now_s
from mulligan.core.entries import ASSISTANT_OUTPUT, SUCCESS, TOOL_CALL, USER_INPUT, NewEntry
from mulligan.core.times import rfc3339

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace

DAY_SECONDS = 86_400


def make_project(root: Path) -> None:
    """Writes the files of the sample project."""
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")


def play(workspace: Workspace) -> None:
    """All that happens before a newcomer sees the page, oldest first."""
    _last_week(workspace)
    _tests_of_the_store(workspace)
    _due_dates(workspace)


class Agent:
    """An agent that does as it is told by the script."""

    def __init__(self, workspace: Workspace, name: str, model: str, title: str) -> None:
        self.workspace = workspace
        self.root = Path(workspace.root)
        self.model = model
        # The script ends soon, the session shall not: no process runs it.
        made = workspace.sessions.create(agent=name, title=title, model=model, process=0)
        self.session = made.id
        self._calls = 0

    def asked(self, message: str) -> str:
        """A turn begins; gives the entry of the message."""
        return self.workspace.sessions.begin_turn(self.session, message).entry

    def ends(self, status: str = "waiting_input") -> None:
        self.workspace.sessions.end_turn(self.session, status=status)

    def says(self, text: str) -> None:
        self._append(ASSISTANT_OUTPUT, text)

    def reads(self, path: str) -> None:
        content = (self.root / path).read_text("utf-8")
        self._call("Read", {"file_path": path}, content, 11)

    def edits(self, path: str, *changes: tuple[str, str]) -> None:
        content = (self.root / path).read_text("utf-8")
        for old, new in changes:
            assert content.count(old) == 1, f"{old!r} is not once in {path}"
            content = content.replace(old, new)
        shown = {"file_path": path, "edits": len(changes)}
        self._written("Edit", shown, path, content)

    def writes(self, path: str, content: str) -> None:
        self._written("Write", {"file_path": path}, path, content)

    def runs(self, command: str, output: str | None = None) -> None:
        """A command of the shell. With an output it only looks as if it had run."""
        started = time.monotonic()
        if output is None:
            done = subprocess.run(
                ["/bin/sh", "-c", command], cwd=self.root, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            output = done.stdout + done.stderr
        taken = (time.monotonic() - started) * 1000
        self._call("Bash", {"command": command}, output, max(taken, 640 if output else 9))

    def _written(self, tool: str, shown: dict[str, Any], path: str, content: str) -> None:
        edit = self.workspace.sessions.start_edit(self.session, [path])
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, "utf-8")
        self._call(tool, shown, f"Wrote {path}.", 23)
        self.workspace.sessions.finalize_edit(edit)

    def _call(self, tool: str, given: dict[str, Any], output: str, duration: float) -> None:
        self._calls += 1
        data = {
            "name": tool,
            "input": given,
            "output": output,
            "status": SUCCESS,
            "duration": round(duration, 1),
            "call": f"call_{self._calls}",
        }
        self._append(TOOL_CALL, "", data)

    def _append(self, kind: str, content: str, data: dict[str, Any] | None = None) -> None:
        model = self.model if kind == ASSISTANT_OUTPUT else None
        self.workspace.sessions.append(self.session, NewEntry(kind, content, data, model=model))


def _tests_of_the_store(workspace: Workspace) -> None:
    """A session that is over, and was approved."""
    agent = Agent(workspace, "codex", "gpt-5.2-codex", "Cover the store with tests")
    agent.asked("The store has hardly any tests. Please add one for a file that does not exist.")
    agent.reads("tests/test_store.py")
    agent.edits(
        "tests/test_store.py",
        ("from kettle.store import Store\n", "import pytest\n\nfrom kettle.store import Store\n"),
        (
            "def test_finished_tasks_are_done",
            "def test_an_absent_file_holds_no_tasks(tmp_path):\n"
            '    assert Store(tmp_path / "nothing.json").all() == []\n\n\n'
            '@pytest.mark.parametrize("title", ["", "☕", "two\\nlines"])\n'
            "def test_titles_come_back_as_they_were(tmp_path, title):\n"
            '    store = Store(tmp_path / "tasks.json")\n'
            "    store.add(title)\n"
            '    assert store.all()[0]["title"] == title\n\n\n'
            "def test_finished_tasks_are_done",
        ),
    )
    agent.runs(
        "python -m pytest -q", "......                                     [100%]\n6 passed\n"
    )
    agent.says("Two tests more: an absent file, and titles that are odd. All **6** pass.")
    agent.ends("stopped")
    workspace.review.approve(agent.session, "Tests of the store")


def _due_dates(workspace: Workspace) -> None:
    """The session to look at: three turns, a branch left behind, and much to decide on."""
    agent = Agent(workspace, "claude-code", "claude-opus-4-5", "Due dates for tasks")
    agent.asked("Read the code first. How would you add due dates to tasks?")
    agent.reads("kettle/store.py")
    agent.reads("kettle/__main__.py")
    agent.says(
        "Three steps:\n\n"
        "1. `kettle/dates.py` reads dates as people write them\n"
        "2. `Store.add` takes a `due`, which is left out where there is none\n"
        "3. `kettle list` marks what is **overdue**\n"
    )
    agent.ends()

    wrong = agent.asked('Go ahead: `kettle add --due tomorrow "Buy tea"` should work.')
    agent.says("I move the tasks to SQLite first; dates are easier to query there.")
    agent.writes("kettle/store.py", SQLITE)
    agent.runs("rm -r notes")
    agent.runs("python -m pytest -q", "..F.FF\n3 failed, 3 passed\n")
    agent.says("The tests expect a file of JSON. Shall I rewrite them for SQLite?")
    agent.ends()

    # Not what was wanted: back to before the message, files and all, and on from there.
    workspace.sessions.goto(wrong, session=agent.session)
    workspace.sessions.label(wrong, "the way to SQLite", agent.session)
    agent.asked(
        "Keep the JSON file, please, and leave the notes alone. Only add due dates: "
        '`kettle add --due tomorrow "Buy tea"`.'
    )
    _add_dates(agent)
    agent.ends()

    # The user goes on working, in the same file as the agent and in another.
    _user_edits(Path(workspace.root))

    agent.asked("Good. Now the page: overdue tasks in red, the nearest first.")
    _show_dates(agent)
    agent.ends()

    agent.asked("Tidy up: the ideas are done, and the README should mention dates.")
    agent.runs("rm notes/ideas.txt && mkdir -p docs && mv notes/release.txt docs/release.txt")
    agent.edits(
        "README.md",
        (
            "    python -m kettle list\n",
            '    python -m kettle add --due tomorrow "Buy tea"\n    python -m kettle list\n',
        ),
        ("one object a task.\n", "one object a task. A task may have a `due` date.\n"),
    )
    agent.says(
        "Done.\n\n"
        "- `notes/ideas.txt` is gone, `release.txt` moved to `docs/`\n"
        "- the README shows `--due`\n\n"
        "Anything else?"
    )
    agent.ends()


def _add_dates(agent: Agent) -> None:
    agent.says("A small module for dates, and then the store and the command line:")
    agent.writes("kettle/dates.py", DATES)
    agent.edits(
        "kettle/store.py",
        ("    def add(self, title):", "    def add(self, title, due=None):"),
        (
            '"title": title, "done": False}\n',
            '"title": title, "done": False}\n        if due:\n            task["due"] = str(due)\n',
        ),
    )
    agent.edits(
        "kettle/__main__.py",
        (
            "from kettle.store import Store\n",
            "from kettle.dates import is_overdue, parse\nfrom kettle.store import Store\n",
        ),
        (
            '        task = store.add(" ".join(rest))\n',
            "        due = None\n"
            '        if rest[:1] == ["--due"]:\n'
            "            due, rest = parse(rest[1]), rest[2:]\n"
            '        task = store.add(" ".join(rest), due)\n',
        ),
        (
            "            print(f\"[{mark}] {task['number']}  {task['title']}\")\n",
            '            late = "  (overdue)" if is_overdue(task) else ""\n'
            "            print(f\"[{mark}] {task['number']}  {task['title']}{late}\")\n",
        ),
    )
    agent.runs(
        "python -m pytest -q", "......                                     [100%]\n6 passed\n"
    )
    agent.says(
        "Due dates work on the command line:\n\n"
        "```sh\n"
        'kettle add --due tomorrow "Buy tea"\n'
        'kettle add --due +3 "Water the ferns"\n'
        "```\n\n"
        "| written | means |\n|---|---|\n| `today`, `tomorrow` | as they say |\n"
        "| `+3` | in three days |\n| `2026-11-20` | that day |\n\n"
        "The store is as it was, with one more field."
    )


def _show_dates(agent: Agent) -> None:
    agent.reads("web/tasks.js")
    agent.edits(
        "web/tasks.js",
        (
            "function draw(tasks) {\n",
            "const today = new Date().toISOString().slice(0, 10);\n\n"
            "function byDueDate(a, b) {\n"
            '  return (a.due ?? "9999").localeCompare(b.due ?? "9999");\n'
            "}\n\n"
            "function draw(tasks) {\n",
        ),
        ("    ...tasks.map((task) => {", "    ...tasks.sort(byDueDate).map((task) => {"),
        (
            '      item.classList.toggle("done", task.done);\n',
            '      item.classList.toggle("done", task.done);\n'
            '      item.classList.toggle("overdue", !task.done && task.due < today);\n',
        ),
    )
    agent.edits(
        "web/style.css",
        (".done {\n", ".overdue {\n  color: #c22;\n  font-weight: 600;\n}\n\n.done {\n"),
    )
    agent.says(
        "Overdue tasks are red, and the list is in the order of due dates; tasks without one "
        "come last."
    )


def _user_edits(root: Path) -> None:
    path = root / "web" / "style.css"
    path.write_text(path.read_text("utf-8").replace("40rem", "44rem"), "utf-8")
    path = root / "notes" / "release.txt"
    path.write_text(path.read_text("utf-8") + "- call Ada on Friday\n", "utf-8")


def _last_week(workspace: Workspace) -> None:
    """Conversations of the last days, so that there is something to find and to count."""
    from mulligan.importers.records import Session, Source
    from mulligan.workspace.transfer.import_session import Target

    stories = (
        (6, "gemini-cli", "gemini-3-pro", "Why is the list slow?", "Profile the list",
         "Reading the file takes 0.3 ms; the *fetch* on the page waits for a server that sleeps.",
         (("Read", 14), ("Bash", 2210), ("Grep", 48), ("Bash", 900))),
        (4, "claude-code", "claude-sonnet-4-5", "Make the page work without a server.",
         "A page without a server",
         "Modules cannot be loaded from `file://`; I would bundle the script into the page.",
         (("Read", 9), ("Read", 12), ("Edit", 25), ("Bash", 1340), ("Edit", 31))),
        (2, "codex", "gpt-5.2-codex", "Review the error handling of the command line.",
         "Review of the command line",
         "`kettle done` without a number raises IndexError; the usage should be shown instead.",
         (("Read", 10), ("Grep", 39), ("Bash", 480))),
        (1, "claude-code", "claude-opus-4-5", "What would it take to sync between two machines?",
         "Thoughts on syncing",
         "Tasks need ids that do not collide: a random one each, and the time of their change.",
         (("Read", 8), ("WebSearch", 3120), ("Read", 15))),
    )  # fmt: skip
    for days, name, model, question, title, answer, tools in stories:
        moment = now_s() - days * DAY_SECONDS
        entries = [NewEntry(USER_INPUT, question, created_at=_at(moment))]
        for number, (tool, taken) in enumerate(tools, 1):
            failed = tool == "Bash" and number == 2
            data = {
                "name": tool,
                "input": {},
                "output": "",
                "status": "error" if failed else SUCCESS,
                "duration": taken,
                "call": f"call_{number}",
            }
            entries.append(NewEntry(TOOL_CALL, "", data, created_at=_at(moment + number * 20)))
        entries.append(
            NewEntry(ASSISTANT_OUTPUT, answer, model=model, created_at=_at(moment + 200))
        )
        # As an import has them: with times of their own.
        known = Session(
            f"kettle-{days}",
            title=title,
            model=model,
            created_at=_at(moment),
            updated_at=_at(moment + 200),
        )
        source = Source(os.fsdecode(workspace.root))
        target = Target(
            workspace.project.journal, workspace.project.location, source, known, name, known.id
        )
        target.write(list(entries))


def _at(seconds: float) -> str:
    return rfc3339(int(seconds * 1e9))
