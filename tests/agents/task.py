"""The task that every agent is given: a small project, two turns of work on it, and the outcome.

The work touches what an undo can get wrong: a file written and one edited with the agent's tools,
files changed, made and deleted by its shell, an ignored file, a repository inside of the project,
a command that fails, and two commands side by side.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from script import Script, Step, Turn, edit, read, shell, write

FIRST = "Please tidy up the shop."
SECOND = "Please open the shop."

SCRIPT = Script(
    (
        Turn(
            FIRST,
            (
                Step((write("greeting.txt", "Good morning!\nCome in.\n"),), "First a greeting."),
                Step((read("prices.txt"),)),
                Step((edit("prices.txt", "pears 3", "pears 4"),), "Pears are dearer now."),
                Step((shell("rm old.txt && echo swept >> diary.txt && echo x > build/out.bin"),)),
                Step((shell("echo changed >> vendor/lib/lib.txt && rm vendor/lib/unused.txt"),)),
                Step((shell("cat missing.txt"),), "This one fails."),
                Step(
                    (shell("echo left > left.txt"), shell("echo right > right.txt")),
                    "Two at once.",
                ),
            ),
            "The shop is tidy.",
        ),
        Turn(
            SECOND,
            (
                Step((read("greeting.txt"),)),
                Step((edit("greeting.txt", "Come in.", "We are open."),)),
                Step((shell("mv left.txt door.txt && rm empty/.keep && rmdir empty"),)),
            ),
            "The shop is open.",
        ),
    )
)

_BEFORE = {
    ".gitignore": "build/\n",
    "prices.txt": "apples 2\npears 3\nplums 5\n",
    "old.txt": "nobody needs this\n",
    "diary.txt": "bought pears\n",
    "build/out.bin": "built before\n",
    "empty/.keep": "",
    "vendor/lib/lib.txt": "a library\n",
    "vendor/lib/unused.txt": "unused\n",
}
_AFTER_FIRST = {
    ".gitignore": "build/\n",
    "prices.txt": "apples 2\npears 4\nplums 5\n",
    "diary.txt": "bought pears\nswept\n",
    "build/out.bin": "x\n",
    "empty/.keep": "",
    "greeting.txt": "Good morning!\nCome in.\n",
    "left.txt": "left\n",
    "right.txt": "right\n",
    "vendor/lib/lib.txt": "a library\nchanged\n",
}
_AFTER_SECOND = {
    **{name: _AFTER_FIRST[name] for name in _AFTER_FIRST.keys() - {"left.txt", "empty/.keep"}},
    "door.txt": "left\n",
    "greeting.txt": "Good morning!\nWe are open.\n",
}
# The files before the first turn, after it, and after the second.
FILES = (_BEFORE, _AFTER_FIRST, _AFTER_SECOND)


def prepare(project: Path) -> None:
    """Makes the project: a repository with another one inside, both with a commit."""
    for name, text in _BEFORE.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # The inner one first: git would take its files into the outer one if it were not there yet.
    for repository in (project / "vendor/lib", project):
        _git(repository, "init", "-q")
        _git(repository, "add", ":(glob)*.txt")
        _git(repository, "commit", "-q", "-m", "Start")


def files(project: Path) -> dict[str, str]:
    """What the project holds, without what git keeps for itself."""
    paths = (path.relative_to(project) for path in project.rglob("*") if path.is_file())
    return {str(path): (project / path).read_text() for path in paths if ".git" not in path.parts}


def _git(repository: Path, *arguments: str) -> None:
    author = ("-c", "user.name=Ada Author", "-c", "user.email=ada@example.org")
    command = ["git", "-C", str(repository), *author, *arguments]
    subprocess.run(command, check=True, timeout=60)
