"""The sample project of `mulligan demo`: a small list of tasks, before the agents come."""

from __future__ import annotations

from typing import Final

README: Final = """\
# Kettle

A list of tasks for people who would rather be drinking tea.

    python -m kettle add "Water the ferns"
    python -m kettle list

Tasks are kept in `tasks.json`, one object a task.
"""

MAIN: Final = '''\
"""The command line of Kettle."""

import sys

from kettle.store import Store


def main(arguments):
    store = Store("tasks.json")
    if not arguments:
        print("usage: kettle add TITLE | list | done NUMBER")
        return 2
    command, *rest = arguments
    if command == "add":
        task = store.add(" ".join(rest))
        print(f"Added {task['number']}: {task['title']}")
    elif command == "list":
        for task in store.all():
            mark = "x" if task["done"] else " "
            print(f"[{mark}] {task['number']}  {task['title']}")
    elif command == "done":
        store.finish(int(rest[0]))
    else:
        print("unknown command: " + command)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''

STORE: Final = '''\
"""Where tasks are kept: a file of JSON, read and written whole."""

import json
import os


class Store:
    def __init__(self, path):
        self.path = path

    def all(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path) as file:
            return json.load(file)

    def add(self, title):
        tasks = self.all()
        task = {"number": len(tasks) + 1, "title": title, "done": False}
        tasks.append(task)
        self.save(tasks)
        return task

    def finish(self, number):
        tasks = self.all()
        for task in tasks:
            if task["number"] == number:
                task["done"] = True
        self.save(tasks)

    def save(self, tasks):
        with open(self.path, "w") as file:
            json.dump(tasks, file, indent=2)
'''

PAGE: Final = """\
<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>Kettle</title>
    <link rel="stylesheet" href="style.css" />
  </head>
  <body>
    <h1>Kettle</h1>
    <ul id="tasks"></ul>
    <script src="tasks.js" type="module"></script>
  </body>
</html>
"""

SCRIPT: Final = """\
const list = document.querySelector("#tasks");

async function load() {
  const answer = await fetch("/tasks.json");
  return answer.json();
}

function draw(tasks) {
  list.replaceChildren(
    ...tasks.map((task) => {
      const item = document.createElement("li");
      item.textContent = task.title;
      item.classList.toggle("done", task.done);
      return item;
    }),
  );
}

draw(await load());
"""

STYLE: Final = """\
body {
  font: 16px/1.5 system-ui, sans-serif;
  margin: 2rem auto;
  max-width: 40rem;
}

.done {
  color: #888;
  text-decoration: line-through;
}
"""

TESTS: Final = '''\
"""What the store promises."""

from kettle.store import Store


def test_added_tasks_are_listed(tmp_path):
    store = Store(tmp_path / "tasks.json")
    store.add("Water the ferns")
    assert [task["title"] for task in store.all()] == ["Water the ferns"]


def test_finished_tasks_are_done(tmp_path):
    store = Store(tmp_path / "tasks.json")
    store.add("Water the ferns")
    store.finish(1)
    assert store.all()[0]["done"]
'''

NOTES: Final = """\
Things to do before the first release:

- due dates
- a colour for overdue tasks
- ask Ada about the name
"""

FILES: Final = {
    "README.md": README,
    "kettle/__init__.py": "",
    "kettle/__main__.py": MAIN,
    "kettle/store.py": STORE,
    "web/index.html": PAGE,
    "web/tasks.js": SCRIPT,
    "web/style.css": STYLE,
    "tests/test_store.py": TESTS,
    "notes/release.txt": NOTES,
    "notes/ideas.txt": "A kettle that whistles when a task is late.\n",
    ".gitignore": "__pycache__/\n*.log\n",
}

DATES: Final = '''\
"""Due dates: how people write them, and whether they have passed."""

from datetime import date, timedelta

WORDS = {"today": 0, "tomorrow": 1}


def parse(text, today=None):
    """A date from `2026-11-20`, `today`, `tomorrow` or `+3`; raises ValueError."""
    today = today or date.today()
    if text in WORDS:
        return today + timedelta(days=WORDS[text])
    if text.startswith("+"):
        return today + timedelta(days=int(text[1:]))
    return date.fromisoformat(text)


def is_overdue(task, today=None):
    due = task.get("due")
    return bool(due) and not task["done"] and due < str(today or date.today())
'''

SQLITE: Final = '''\
"""Where tasks are kept: a table in SQLite."""

import sqlite3


class Store:
    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.db.row_factory = sqlite3.Row
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS tasks"
            " (number INTEGER PRIMARY KEY, title TEXT NOT NULL, done INTEGER NOT NULL DEFAULT 0)"
        )

    def all(self):
        return [dict(row) for row in self.db.execute("SELECT * FROM tasks ORDER BY number")]

    def add(self, title):
        with self.db:
            cursor = self.db.execute("INSERT INTO tasks (title) VALUES (?)", (title,))
        return {"number": cursor.lastrowid, "title": title, "done": False}

    def finish(self, number):
        with self.db:
            self.db.execute("UPDATE tasks SET done = 1 WHERE number = ?", (number,))
'''
