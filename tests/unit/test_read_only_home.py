"""A home that cannot be written to: what is stored there can be read, and not a byte is written.

Three ways: a home that belongs to another user, a read-only mount, and a full disk; each with the
databases closed properly, left by a killed process, and left without the index of their logs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
LEFT = ["closed", "killed", "killed, without the index of the log"]

BUILD = """
import os, sys, mulligan
project, left = sys.argv[1:]
os.umask(0o022)
workspace = mulligan.open(project)
open(project + "/a", "w").write("one\\n")
first = workspace.checkpoint("first").id
session = workspace.sessions.create(agent="test", title="A talk").id
workspace.sessions.begin_turn(session, "Change the aardvark")
open(project + "/a", "w").write("two\\n")
workspace.sessions.end_turn(session)
workspace.search("aardvark")
workspace.sessions.begin_turn(session, "Change the badger")
workspace.sessions.end_turn(session)
open(project + "/a", "w").write("three\\n")
if left == "closed":
    workspace.close()
os._exit(0)
"""

READ = """
import json, os, subprocess, sys, mulligan
from mulligan.workspace.search.search import search_everywhere
project = sys.argv[1]
found = {}
with mulligan.open(project) as workspace:
    session = workspace.sessions.list().sessions[0].id
    log = workspace.log()
    first = [each for each in log if each.message == "first"][0].id
    found["log"] = len(log)
    found["read"] = workspace.read(first, "a").decode()
    found["entries"] = [each.path for each in workspace.entries(first)]
    found["diff"] = [each.path for each in workspace.diff(first, log[0].id)]
    found["diff with the disk"] = [each.path for each in workspace.diff()]
    found["status"] = [each.path for each in workspace.status().changed_files]
    found["operations"] = len(workspace.operations())
    found["transcript"] = [each.content for each in workspace.sessions.transcript(session).entries
                           if each.content.startswith("Change")]
    found["search"] = [len(workspace.search(word).hits) for word in ("aardvark", "badger")]
    found["everywhere"] = len(search_everywhere(workspace.project.home, "badger").hits)
    found["export"] = "badger" in "".join(workspace.sessions.export(session, "jsonl"))
    try:
        workspace.checkpoint("cannot be")
    except mulligan.MulliganError as problem:
        found["checkpoint"] = type(problem).__name__
for command in (["log"], ["show", first], ["diff"], ["sessions"], ["status"], ["search", "badger"],
                ["sessions", "--all"], ["search", "--all", "badger"], ["export", session]):
    run = subprocess.run([sys.executable, "-m", "mulligan", "-C", project, *command],
                         capture_output=True, text=True)
    assert run.returncode == 0, (command, run)
print(json.dumps(found))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user can reach, unlike those of pytest."""
    found = Path(tempfile.mkdtemp(prefix="mulligan-test-"))
    found.chmod(0o755)
    (found / "project").mkdir()
    (found / "home").mkdir()
    yield found
    shutil.rmtree(found)


def shell(place: Path, script: str, *given: str) -> str:
    env = {
        **os.environ,
        "MULLIGAN_HOME": str(place / "home"),
        "HOME": str(place),
        "TMPDIR": str(place),
    }
    command = ["sh", "-e", "-c", script, "sh", sys.executable, str(place / "project"), *given]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(left: str) -> str:
    """In the shell's words: makes a history in the home, and leaves it in some state."""
    made = f"\"$1\" -c '{BUILD}' \"$2\" '{left}' >/dev/null\n"
    if "without" in left:
        made += 'find "$MULLIGAN_HOME" -name "*-shm" -delete\n'
    return made


def read() -> str:
    return f'"$1" -c \'{READ}\' "$2"\n'


def picture(place: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted((place / "home").rglob("*"))
    }


def check(answer: str, refusal: str) -> None:
    found: dict[str, Any] = json.loads(answer.splitlines()[-1])
    assert found["read"] == "one\n"
    assert found["entries"] == found["diff"] == found["diff with the disk"] == ["a"]
    assert found["status"] == ["a"]
    assert found["log"] >= 4 and found["operations"] >= 4
    assert found["transcript"] == ["Change the aardvark", "Change the badger"]
    assert found["search"] == [1, 1] and found["everywhere"] == 1
    assert found["export"]
    assert found["checkpoint"] == refusal


@pytest.mark.parametrize("left", LEFT)
def test_the_home_of_another_user_is_read_without_a_byte_written(place: Path, left: str) -> None:
    shell(place, build(left))
    script = read()
    if os.geteuid() == 0:
        # Root without its privileges over files: no other user may be able to start Python.
        if shutil.which("setpriv") is None:
            pytest.skip("needs setpriv")
        drop = "-dac_override,-dac_read_search,-fowner"
        script = f'set -- "setpriv" "$2" "$1"\n{script}'.replace(
            '"$1" -c', f'"$1" --bounding-set={drop} "$3" -c'
        )
    for path in [place / "home", *(place / "home").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    before = picture(place)
    try:
        check(shell(place, script), "NotWritable")
        assert picture(place) == before
    finally:
        for path in [place / "home", *(place / "home").rglob("*")]:
            path.chmod(0o755)


def in_namespace(place: Path, script: str) -> str:
    """Runs a script where it may mount things; they are gone when it ends."""
    probe = subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", str(place / "home")],
        capture_output=True,
        check=False,
    )
    if probe.returncode:
        pytest.skip("mounting needs to be root")
    kept = place / "script"
    kept.write_text(f"set -e\n{script}")
    return shell(place, f'unshare -m sh {kept} "$1" "$2"')


@pytest.mark.parametrize("left", LEFT)
def test_a_read_only_mount_is_read_without_a_byte_written(place: Path, left: str) -> None:
    mount = 'mount --bind "$MULLIGAN_HOME" "$MULLIGAN_HOME"\n'
    mount += 'mount -o remount,bind,ro "$MULLIGAN_HOME"\n'
    shell(place, build(left))
    before = picture(place)
    check(in_namespace(place, mount + read()), "NotWritable")
    assert picture(place) == before


@pytest.mark.parametrize("left", LEFT)
def test_a_full_disk_is_read(place: Path, left: str) -> None:
    mount = 'mount -t tmpfs -o size=3m tmpfs "$MULLIGAN_HOME"\n'
    fill = 'cat /dev/zero >"$MULLIGAN_HOME/filled" 2>/dev/null || true\n'
    check(in_namespace(place, mount + build(left) + fill + read()), "OutOfSpace")
