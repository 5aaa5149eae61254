"""No text of a session or a file reaches a terminal as a command to it, be it C0, DEL or C1."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from screen import running

import mulligan
from mulligan.core.entries import NewEntry
from run import quick, write

CONTROLS = "\x9b31m\x1b]0;x\x07\x7f\x85\x90q\x9c"
SESSION = f"i{CONTROLS}"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
COMMANDS = (
    ("sessions",), ("sessions", "--all"), ("session", "show", SESSION),
    ("session", "show", "--full", SESSION), ("tree", SESSION), ("log",), ("show", "@"),
    ("status",), ("operations",), ("pending",), ("search", "hello"), ("stats",), ("doctor",),
    ("export", SESSION, "--format", "markdown"), ("export", SESSION, "--format", "html"),
    ("export", SESSION), ("goto", f"e{CONTROLS}", "--preview"), ("restore", "@", "--preview"),
    ("undo", "--preview"), ("session", "show", f"nothing{CONTROLS}"), ("goto", f"x{CONTROLS}"),
)  # fmt: skip


@pytest.fixture
def hostile(project: Path) -> Path:
    """A project in which every name and every text holds control characters."""
    write(project, {f"f{CONTROLS}": f"a{CONTROLS}\nb\n"})
    call = {"name": f"n{CONTROLS}", "input": {"command": CONTROLS}, "output": CONTROLS}
    with mulligan.open(project) as workspace:
        workspace.checkpoint(f"m{CONTROLS}")
        workspace.sessions.create(
            id=SESSION, agent=f"a{CONTROLS}", title=f"t{CONTROLS}", model=f"m{CONTROLS}", process=0
        )
        first, *_ = workspace.sessions.append(
            SESSION,
            NewEntry("user_input", f"hello{CONTROLS}"),
            NewEntry("assistant_output", f"hello{CONTROLS}"),
            NewEntry("tool_call", "", call | {"status": "error", "call": CONTROLS}),
            NewEntry("file_edit", "", {"path": f"f{CONTROLS}", "diff": f"+x{CONTROLS}"}),
            NewEntry("branch_summary", f"z{CONTROLS}"),
            NewEntry("user_input", f"again{CONTROLS}", id=f"e{CONTROLS}"),
        )
        workspace.sessions.label(first.id, f"l{CONTROLS}")
        workspace.sessions.begin_turn(SESSION, f"go{CONTROLS}")
        write(project, {f"f{CONTROLS}": f"A{CONTROLS}\nb\n", f"g{CONTROLS}": CONTROLS})
        workspace.sessions.end_turn(SESSION)
    return project


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_no_command_prints_a_control_character(hostile: Path, arguments: tuple[str, ...]) -> None:
    ran = quick(*arguments, project=hostile, code=None)
    assert ran.stdout or ran.stderr
    assert not UNSAFE.findall(ran.stdout.decode() + ran.stderr)


@pytest.mark.parametrize("arguments", [("show", f"@:f{CONTROLS}"), ("diff",)], ids=["show", "diff"])
def test_a_file_is_harmless_on_a_terminal_and_exact_elsewhere(
    hostile: Path, arguments: tuple[str, ...]
) -> None:
    exact = quick(*arguments, project=hostile).stdout
    assert CONTROLS.encode() in exact
    with running(*arguments, cwd=hostile, rows=60) as screen:
        assert screen.wait() == 0
        shown = re.sub("\x1b\\[[0-9;]*[mK]|\r", "", screen.written.decode())
    assert "\\xc2\\x9b31m" in shown and not UNSAFE.findall(shown)
