"""What a scan covers, and that it names what it does not."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

import mulligan
from mulligan.core.coverage import Coverage
from mulligan.core.tree import Tree, decode, join
from mulligan.workspace.trust import accept, rule_files
from mulligan.worktree.scan import tree_builder
from mulligan.worktree.scan.classify import Limits
from mulligan.worktree.scan.scanner import Scanner
from mulligan.worktree.scan.stat_cache import StatCache

IS_ROOT = os.geteuid() == 0


@pytest.fixture
def workspace(project: Path) -> Iterator[mulligan.Workspace]:
    with mulligan.open(project) as workspace:
        yield workspace


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"content of {name}")


def paths(workspace: mulligan.Workspace, *, guarded: bool | None = False) -> set[str]:
    """The files of the latest checkpoint."""
    return {
        each.path
        for each in workspace.entries("@")
        if each.kind != "directory" and guarded in (None, each.guarded)
    }


def reasons(coverage: Coverage) -> dict[str, str]:
    return {os.fsdecode(path): reason for path, reason in coverage.skipped}


def excluded(coverage: Coverage) -> dict[str, int]:
    return {os.fsdecode(path): files for path, files, _reason in coverage.excluded}


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


# What is no ordinary file


def test_a_socket_and_a_pipe_are_named_and_nothing_waits_for_them(
    project: Path, workspace: mulligan.Workspace
) -> None:
    write(project, "a", "d/b")
    os.mkfifo(project / "d" / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(project / "socket"))
        taken = workspace.checkpoint()
    assert paths(workspace) == {"a", "d/b"}
    assert reasons(taken.coverage) == {"socket": "is a socket", "d/pipe": "is a named pipe"}
    assert not taken.coverage.complete
    result = workspace.restore(taken.id)
    assert result.operation is None
    assert stat.S_ISFIFO(os.lstat(project / "d" / "pipe").st_mode)


@pytest.mark.skipif(not IS_ROOT, reason="only root makes devices")
def test_a_device_is_named_and_never_opened(project: Path, workspace: mulligan.Workspace) -> None:
    write(project, "a")
    try:
        # /dev/zero: reading it never ends.
        os.mknod(project / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no devices in here")
    taken = workspace.checkpoint()
    assert paths(workspace) == {"a"}
    assert reasons(taken.coverage) == {"zero": "is a character device"}


def test_a_pipe_that_comes_in_the_place_of_a_file_is_left_alone_by_a_restore(
    project: Path, workspace: mulligan.Workspace
) -> None:
    write(project, "a", "b")
    first = workspace.checkpoint()
    (project / "a").unlink()
    os.mkfifo(project / "a")
    (project / "b").write_text("changed")
    assert [each.path for each in workspace.status().changed_files] == ["b"]
    result = workspace.restore(first.id)
    assert result.restored == ("b",)
    assert [skip.path for skip in result.skipped] == ["a"]
    assert stat.S_ISFIFO(os.lstat(project / "a").st_mode)
    (project / "a").unlink()
    assert workspace.restore(first.id).restored == ("a",)


def test_links_are_kept_as_links_wherever_they_point(
    project: Path, workspace: mulligan.Workspace, tmp_path: Path
) -> None:
    write(tmp_path, "outside/secret")
    for name, target in {
        "broken": "no such file",
        "outside": str(tmp_path / "outside"),
        "loop": "loop",
        "up": "..",
        "here": ".",
    }.items():
        (project / name).symlink_to(target)
    taken = workspace.checkpoint()
    assert paths(workspace) == {"broken", "outside", "loop", "up", "here"}
    assert workspace.read(taken.id, "loop") == b"loop"
    assert taken.coverage.complete


# What cannot be read


AS_ANOTHER = """
import json, os, shutil, sys, tempfile
import mulligan

def both(root, home):
    with mulligan.open(root, home=home) as workspace:
        taken = workspace.checkpoint()
        status = workspace.status()
        restored = workspace.restore(taken.id)
        return taken, [each.path for each in workspace.entries("@")], status, restored

if os.geteuid() == 0:
    # Import everything as root: other users may not be able to read the interpreter.
    place = tempfile.mkdtemp()
    open(place + "/a", "w").close()
    both(place, place + "-home")
    with mulligan.open(place, home=place + "-home") as warm:
        os.unlink(place + "/a")
        warm.restore("@")
    shutil.rmtree(place)
    shutil.rmtree(place + "-home")
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
taken, entries, status, restored = both(sys.argv[1], sys.argv[2])
print(json.dumps({
    "entries": entries, "coverage": taken.coverage.as_json(),
    "status": [each.path for each in status.changed_files], "operation": restored.operation,
}))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that another user may reach."""
    directory = Path(tempfile.mkdtemp(prefix="mulligan-scan-")).resolve()
    yield directory
    for path, names, _files in os.walk(directory):
        os.chmod(path, 0o700)
        for name in names:
            os.chmod(os.path.join(path, name), 0o700)
    shutil.rmtree(directory)


def as_another(place: Path, project: Path) -> dict:
    """What an unprivileged user sees."""
    if IS_ROOT:
        for path in (place, *place.rglob("*")):
            os.chown(path, 65534, 65534, follow_symlinks=False)
    done = subprocess.run(
        [sys.executable, "-c", AS_ANOTHER, str(project), str(place / "home")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_may_not_be_read_is_named_and_fails_nothing(place: Path) -> None:
    root = place / "project"
    write(root, "a", "secret", "closed/inside", "listed/inside", "d/b")
    (root / "secret").chmod(0)
    (root / "closed").chmod(0)
    (root / "listed").chmod(0o400)
    seen = as_another(place, root)
    assert set(seen["entries"]) >= {"a", "d", "d/b"}
    assert not {"secret", "closed/inside", "listed/inside"} & set(seen["entries"])
    skipped = {each["path"]: each["reason"] for each in seen["coverage"]["skipped"]}
    assert "secret" in skipped and "closed" in skipped
    assert any(path == "listed" or path.startswith("listed/") for path in skipped)
    assert all("Permission denied" in reason for reason in skipped.values())
    assert seen["coverage"]["complete"] is False
    assert seen["status"] == []
    assert seen["operation"] is None


def test_what_may_not_be_read_any_more_is_not_taken_for_deleted(place: Path) -> None:
    root = place / "project"
    write(root, "a", "secret", "closed/inside")
    as_another(place, root)
    (root / "secret").chmod(0)
    (root / "closed").chmod(0)
    seen = as_another(place, root)
    assert {"secret", "closed"} <= {each["path"] for each in seen["coverage"]["skipped"]}
    assert seen["status"] == []
    assert (root / "secret").exists()
    (root / "secret").chmod(0o600)
    (root / "closed").chmod(0o700)
    seen = as_another(place, root)
    assert {"secret", "closed/inside"} <= set(seen["entries"])
    assert seen["coverage"]["complete"] is True


# What does not hold still


class Sink:
    """A sink that only hashes, and runs an action at the first content."""

    def __init__(self, action: Callable[[], object] = lambda: None) -> None:
        self.kept: dict[bytes, bytes] = {}
        self._action: Callable[[], object] | None = action
        self._lock = threading.Lock()

    def put(self, content: bytes, *, base: bytes | None = None) -> bytes:
        with self._lock:
            action, self._action = self._action, None
            if action is not None:
                action()
        id = sha256(content).digest()
        self.kept[id] = content
        return id

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[bytes, int]:
        pieces = []
        while piece := read(1 << 16):
            pieces.append(piece)
            self.put(piece)
        content = b"".join(pieces)
        return self.put(content), len(content)

    def load(self, id: bytes) -> Tree:
        return decode(self.kept[id])


def look(root: Path, sink: Sink, cache: StatCache) -> dict[str, bytes]:
    """Scan once; return the files."""
    scan = Scanner(os.fsencode(root), cache, sink, limits=Limits())
    scan.scan_all()
    assert cache.root is not None
    made = tree_builder.build(cache.root, sink.load, lambda data, *_: sink.put(data), 1 << 30)
    assert made.tree in sink.kept
    coverage = tree_builder.describe(cache.root, made.guarded_files)
    found = {
        os.fsdecode(join(path, name)): sink.kept[seen[6]]
        for path, node in cache.root.walk()
        for name, seen in node.files.items()
        if seen[6]
    }
    assert not found.keys() & reasons(coverage).keys()
    return found


def test_files_that_vanish_while_they_are_looked_at_fail_nothing(project: Path) -> None:
    names = [f"d{number % 7}/file {number}" for number in range(120)]
    write(project, *names)
    (project / "link").symlink_to("d0")
    cache = StatCache()

    def vanish() -> None:
        for number in range(0, 7, 2):
            shutil.rmtree(project / f"d{number}")
        for name in names[1::14]:
            (project / name).unlink(missing_ok=True)

    sink = Sink(vanish)
    found = look(project, sink, cache)
    for name, content in found.items():
        assert name == "link" or content == f"content of {name}".encode()
    left = {name for name in names if (project / name).exists()}
    assert left <= found.keys()
    assert look(project, sink, cache).keys() == left | {"link"}


def test_files_that_become_something_else_while_they_are_looked_at_fail_nothing(
    project: Path, tmp_path: Path
) -> None:
    write(project, *(f"file {number:03}" for number in range(100)), "d/x", "e/y")
    write(tmp_path, "outside/x")
    (tmp_path / "secret").write_text("not of this project")
    cache = StatCache()

    def turn() -> None:
        for number in range(0, 100, 3):
            path = project / f"file {number:03}"
            path.unlink()
            if number % 2:
                path.symlink_to(tmp_path / "secret")
            else:
                os.mkfifo(path)
        (project / "file 001").unlink()
        write(project / "file 001", "inside")
        shutil.rmtree(project / "d")
        (project / "d").symlink_to(tmp_path / "outside")

    sink = Sink(turn)
    look(project, sink, cache)
    assert b"not of this project" not in sink.kept.values()
    assert b"content of outside/x" not in sink.kept.values()
    found = look(project, sink, cache)
    assert found["file 001/inside"] == b"content of inside"
    assert found["file 003"] == os.fsencode(tmp_path / "secret")
    assert "file 000" not in found
    assert b"not of this project" not in sink.kept.values()


def test_a_file_that_is_written_while_it_is_read_is_read_again(project: Path) -> None:
    large = project / "large"
    large.write_bytes(b"a" * (1 << 21))
    cache = StatCache()

    def edit() -> None:
        large.write_bytes(b"b" * (1 << 21))

    found = look(project, Sink(edit), cache)
    assert found["large"] == b"b" * (1 << 21)


def test_checkpoints_beside_a_busy_writer_hold_only_whole_states(
    project: Path, workspace: mulligan.Workspace
) -> None:
    """Each file is replaced atomically, so a scan must see one of two contents."""
    names = [f"file {number}" for number in range(20)]
    write(project, *names)
    stop = threading.Event()

    def busy() -> None:
        number = 0
        while not stop.is_set():
            name = names[number % len(names)]
            (project / ".new").write_text(f"content of {name}, {number % 3}")
            (project / ".new").replace(project / name)
            number += 1

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        ids = [workspace.checkpoint().id for _ in range(8)]
    finally:
        stop.set()
        thread.join()
    for id in ids:
        for name in names:
            assert workspace.read(id, name).startswith(f"content of {name}".encode())
    workspace.checkpoint()
    for name in names:
        assert workspace.read("@", name) == (project / name).read_bytes()
    assert workspace.maintenance.verify().clean


# Limits


def settings(**values: object) -> None:
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    home = Path(os.environ["MULLIGAN_HOME"])
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("[checkpoints]\n" + "\n".join(lines) + "\n")


def test_a_file_over_the_limit_is_named_and_a_restore_leaves_it_alone(project: Path) -> None:
    settings(max_file_size=1000)
    (project / "fits").write_bytes(b"x" * 1000)
    (project / "large").write_bytes(b"x" * 1001)
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
        assert paths(workspace) == {"fits"}
        assert list(reasons(taken.coverage)) == ["large"]
        assert "larger than the limit" in reasons(taken.coverage)["large"]
        (project / "large").write_bytes(b"y" * 2000)
        (project / "fits").write_bytes(b"x" * 1001)
        assert workspace.status().changed_files == ()
        workspace.restore(taken.id)
        assert (project / "large").read_bytes() == b"y" * 2000
        (project / "large").write_bytes(b"y")
        (project / "fits").write_bytes(b"y")
        assert workspace.checkpoint().coverage.complete
        assert paths(workspace) == {"fits", "large"}


def test_small_ignored_files_are_guarded_up_to_the_limits(project: Path) -> None:
    settings(guard_file_size=100, guard_total_size=250)
    (project / ".gitignore").write_text("*.env\nsecrets/\n*.log\n")
    for name in ("a.env", "b.env", "d/c.env", "d/d.env"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_bytes(b"k" * 100)
    (project / "large.env").write_bytes(b"k" * 101)
    (project / "noise.log").write_bytes(b"k")
    write(project, "secrets/f")
    os.mkfifo(project / "pipe.env")
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
        # Two of a hundred fit into 250; those that come first are kept.
        assert paths(workspace, guarded=True) == {"a.env", "b.env"}
        assert taken.coverage.guarded == 2
        assert taken.coverage.complete
        assert excluded(taken.coverage)["secrets/"] == 1
    settings(guard_file_size=100)
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        assert paths(workspace, guarded=True) == {"a.env", "b.env", "d/c.env", "d/d.env"}
    settings(guard=False)
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
        assert paths(workspace, guarded=True) == set()
        assert taken.coverage.guarded == 0
        assert workspace.maintenance.verify().clean


def test_a_guarded_file_comes_back_if_it_is_gone_and_only_by_name_if_it_is_not(
    project: Path, workspace: mulligan.Workspace
) -> None:
    (project / ".gitignore").write_text(".env\n")
    write(project, ".env", "d/.env", "a")
    first = workspace.checkpoint()
    (project / ".env").write_text("new key")
    (project / "d" / ".env").unlink()
    workspace.restore(first.id)
    assert (project / ".env").read_text() == "new key"
    assert (project / "d" / ".env").read_text() == "content of d/.env"
    workspace.restore(first.id, [".env"])
    assert (project / ".env").read_text() == "content of .env"
    workspace.undo()
    assert (project / ".env").read_text() == "new key"


# What is left out, and what is not


def test_what_is_left_out_is_counted_by_its_topmost_folder(
    project: Path, workspace: mulligan.Workspace
) -> None:
    (project / ".gitignore").write_text("ign/\n*.tmp\n")
    write(
        project, "a", "node_modules/x/y/z", "node_modules/x/w", "d/ign/one", "d/ign/deep/two",
        "d/a.tmp", "d/b.tmp", "c.log", ".git/config", "d/node_modules/m",
    )  # fmt: skip
    taken = workspace.checkpoint()
    assert paths(workspace) == {".gitignore", "a"}
    found = {(os.fsdecode(path), files, reason) for path, files, reason in taken.coverage.excluded}
    assert found == {
        ("node_modules/", 2, "excluded by default"),
        ("d/node_modules/", 1, "excluded by default"),
        ("d/ign/", 2, "ignored by git's rules"),
        ("d", 2, "ignored by git's rules"),
        (".", 1, "excluded by default"),
    }
    assert taken.coverage.complete


@pytest.mark.parametrize("watch", [False, True])
def test_what_lies_beside_a_file_that_is_in_all_the_same_is_counted(
    project: Path, watch: bool
) -> None:
    write(project, "build/in", "build/out", "build/deep/in", "build/deep/out", "build/deep/d/out")
    (project / ".gitignore").write_text("ign/\n")
    write(project, "ign/in", "ign/out")
    asked = [str(project / each) for each in ("build/in", "build/deep/in", "ign/in")]
    with mulligan.open(project, watch=watch) as workspace:
        taken = workspace.checkpoint(include=asked)
        assert paths(workspace) == {".gitignore", "build/in", "build/deep/in", "ign/in"}
        beside = {"build": 1, "build/deep": 1, "build/deep/d/": 1, "ign": 1}
        assert excluded(taken.coverage) == beside
        why = {os.fsdecode(path): reason for path, _files, reason in taken.coverage.excluded}
        assert why["build/deep"] == "excluded by default"
        assert why["ign"] == "ignored by git's rules"
        write(project, "build/deep/more")
        assert excluded(workspace.checkpoint().coverage) == beside | {"build/deep": 2}
        (project / "build/deep/more").unlink()
        (project / "build/out").unlink()
        del beside["build"]
        assert excluded(workspace.checkpoint().coverage) == beside
    with mulligan.open(project, watch=watch) as workspace:
        assert excluded(workspace.checkpoint().coverage) == beside


def test_a_path_asked_for_by_name_is_kept_from_then_on(
    project: Path, workspace: mulligan.Workspace
) -> None:
    write(project, "a", "build/deep/kept", "build/deep/other", "build/x", "logs/a.log", "logs/b/c")
    workspace.checkpoint()
    assert paths(workspace) == {"a"}
    workspace.checkpoint(include=["build/deep/kept", "logs"])
    assert paths(workspace) == {"a", "build/deep/kept", "logs/a.log", "logs/b/c"}
    (project / "build" / "deep" / "kept").write_text("changed")
    write(project, "logs/new.log", "build/deep/new")
    assert {each.path for each in workspace.status().changed_files} == {
        "build/deep/kept",
        "logs/new.log",
    }
    workspace.checkpoint()
    assert workspace.read("@", "build/deep/kept") == b"changed"
    shutil.rmtree(project / "build")
    taken = workspace.checkpoint()
    assert taken.changes is not None and taken.changes.deleted == 1
    workspace.restore("@1")
    assert (project / "build" / "deep" / "kept").read_text() == "changed"
    assert not (project / "build" / "deep" / "other").exists()


def test_a_folder_in_scope_that_is_asked_for_by_name_is_kept_with_what_was_ignored_in_it(
    project: Path, workspace: mulligan.Workspace
) -> None:
    (project / ".gitignore").write_text(".env\n*.tmp\n")
    write(project, "d/.env", "d/e/x.tmp", "d/y", "other/.env")
    workspace.checkpoint()
    workspace.checkpoint(include=["d"])
    assert paths(workspace) == {".gitignore", "d/.env", "d/e/x.tmp", "d/y"}
    assert paths(workspace, guarded=True) == {"other/.env"}


def test_a_file_in_scope_that_is_asked_for_by_name_stays_when_a_rule_ignores_it_later(
    project: Path, workspace: mulligan.Workspace
) -> None:
    write(project, "a", "b")
    workspace.checkpoint()
    workspace.checkpoint(include=["a"])
    (project / ".gitignore").write_text("a\nb\n")
    workspace.checkpoint()
    assert paths(workspace) == {".gitignore", "a"}


def test_a_restore_to_before_a_file_was_asked_for_by_name_leaves_what_it_held_then(
    project: Path, workspace: mulligan.Workspace
) -> None:
    """The file existed but the checkpoint did not cover it; later files did not exist."""
    write(project, "a", "build/changed", "build/same", "logs/old.log", "not asked for/x")
    first = workspace.checkpoint()
    workspace.checkpoint(include=["build/changed", "build/same", "build/made", "logs"])
    (project / "build" / "changed").write_text("changed")
    write(project, "build/made", "logs/new.log")
    workspace.checkpoint()
    plan = workspace.restore(first.id, preview=True)
    assert (plan.restored, plan.deleted) == (("build/changed",), ("build/made", "logs/new.log"))
    workspace.restore(first.id)
    assert (project / "build" / "changed").read_text() == "content of build/changed"
    assert (project / "build" / "same").exists() and (project / "logs" / "old.log").exists()
    assert not (project / "build" / "made").exists()
    assert workspace.restore(first.id, preview=True).restored == ()
    workspace.undo()
    assert (project / "build" / "changed").read_text() == "changed"
    assert (project / "build" / "made").exists() and (project / "logs" / "new.log").exists()


def test_what_was_asked_for_by_name_and_has_gone_since_comes_back_as_it_came_into_view(
    project: Path, workspace: mulligan.Workspace
) -> None:
    write(project, "a", "build/gone", "build/deep/gone", "logs/gone")
    first = workspace.checkpoint()
    workspace.checkpoint(include=["build", "logs/gone"])
    shutil.rmtree(project / "build")
    (project / "build").write_text("a file")
    (project / "logs" / "gone").unlink()
    workspace.checkpoint()
    assert workspace.restore(first.id, ["logs/gone"]).restored == ("logs/gone",)
    assert set(workspace.restore(first.id).restored) == {"build/deep/gone", "build/gone"}
    assert (project / "build" / "deep" / "gone").read_text() == "content of build/deep/gone"
    workspace.undo()
    assert (project / "build").read_text() == "a file"


def test_what_was_made_in_a_folder_that_was_asked_for_before_goes_though_it_was_named_later(
    project: Path, workspace: mulligan.Workspace
) -> None:
    write(project, "build/old")
    covered = workspace.checkpoint(include=["build"])
    write(project, "build/new")
    workspace.checkpoint(include=["build/new"])
    assert workspace.restore(covered.id).deleted == ("build/new",)


@needs_git
@pytest.mark.parametrize("include", [True, False])
def test_a_folder_that_rules_outside_of_the_project_left_out_stays_when_those_change(
    project: Path, workspace: mulligan.Workspace, include: bool
) -> None:
    git(project, "init", "-q")
    git(project, "init", "-q", "inner")
    for place in ("", "inner/"):
        (project / f"{place}.git/info/exclude").write_text("notes/\n")
        write(project, f"{place}a", f"{place}notes/n")
    first = workspace.checkpoint()
    if include:
        workspace.checkpoint(include=["notes", "inner/notes"])
    for place in ("", "inner/"):
        (project / f"{place}.git/info/exclude").write_text("")
    write(project, "new")
    workspace.checkpoint()
    assert workspace.restore(first.id).deleted == ("new",)
    assert (project / "notes/n").exists() and (project / "inner/notes/n").exists()


def test_what_could_not_be_read_when_it_came_into_view_is_left_alone(
    project: Path, workspace: mulligan.Workspace
) -> None:
    write(project, "build/x")
    os.mkfifo(project / "build" / "pipe")
    first = workspace.checkpoint()
    workspace.checkpoint(include=["build"])
    (project / "build" / "pipe").unlink()
    write(project, "build/pipe")
    done = workspace.restore(first.id)
    assert done.deleted == ()
    assert [skip.path for skip in done.skipped] == ["build/pipe"]


def test_what_an_older_version_was_asked_for_is_not_deleted_for_that(
    project: Path, workspace: mulligan.Workspace
) -> None:
    write(project, "a", "build/x")
    first = workspace.checkpoint()
    workspace.checkpoint(include=["build"])
    workspace.close()
    with closing(sqlite3.connect(workspace.project.location.path("journal.sqlite"))) as db:
        db.execute("ALTER TABLE forced DROP COLUMN since")
        db.execute("PRAGMA user_version = 2")
        db.commit()
    with mulligan.open(project) as later:
        write(project, "b")
        assert later.restore(first.id).deleted == ("b",)
    assert (project / "build" / "x").exists()


@pytest.mark.parametrize("include", ["d/.env", "d"])
@pytest.mark.parametrize("named", [(), ("d",), ("d/.env",)])
def test_what_was_only_guarded_then_and_is_asked_for_by_name_now_comes_back_as_it_was(
    project: Path, workspace: mulligan.Workspace, include: str, named: tuple[str, ...]
) -> None:
    (project / ".gitignore").write_text(".env\n")
    write(project, "d/.env")
    first = workspace.checkpoint()
    workspace.checkpoint(include=[include])
    (project / "d" / ".env").write_text("the agent's")
    assert workspace.restore(first.id, named).restored == ("d/.env",)
    assert (project / "d" / ".env").read_text() == "content of d/.env"
    workspace.undo()
    assert (project / "d" / ".env").read_text() == "the agent's"


def test_git_directories_are_never_looked_into_even_by_name(
    project: Path, workspace: mulligan.Workspace
) -> None:
    write(project, "a", ".git/config", "sub/.git/config", "sub/b", "dist/.git/x", "dist/y")
    workspace.checkpoint(include=[".git", "sub/.git/config", "dist"])
    assert paths(workspace, guarded=None) == {"a", "sub/b", "dist/y"}


@needs_git
def test_what_git_tracks_is_kept_although_the_defaults_leave_it_out(
    project: Path, workspace: mulligan.Workspace
) -> None:
    git(project, "init", "-q")
    write(
        project, "a", "dist/tracked.js", "dist/untracked.js", "vendor/lib/x", "vendor/lib/y",
        "keep.log", "other.log", "ign.txt", "node_modules/m",
    )  # fmt: skip
    (project / ".gitignore").write_text("ign.txt\nvendor/\n")
    git(project, "add", "-f", "a", "dist/tracked.js", "vendor/lib/x", "keep.log", "ign.txt")
    should = {".gitignore", "a", "dist/tracked.js", "vendor/lib/x", "keep.log", "ign.txt"}
    workspace.checkpoint()
    assert paths(workspace) == should
    # Tracked later, while nothing else changes.
    git(project, "add", "-f", "other.log", "node_modules/m")
    workspace.checkpoint()
    assert paths(workspace) == should | {"other.log", "node_modules/m"}
    (project / "node_modules" / "m").write_text("changed")
    assert [each.path for each in workspace.status().changed_files] == ["node_modules/m"]
    git(project, "rm", "-q", "--cached", "other.log", "dist/tracked.js", "ign.txt")
    workspace.checkpoint()
    assert paths(workspace) == {
        ".gitignore", "a", "vendor/lib/x", "keep.log", "node_modules/m",
    }  # fmt: skip
    assert paths(workspace, guarded=True) == {"ign.txt"}
    assert workspace.maintenance.verify().clean


@needs_git
def test_our_own_ignore_file_overrules_what_git_tracks(
    project: Path, workspace: mulligan.Workspace
) -> None:
    git(project, "init", "-q")
    write(project, "a", "data/huge")
    (project / ".mulliganignore").write_text("data/\n")
    accept(workspace.project, rule_files(workspace.project))
    git(project, "add", "-f", "a", "data/huge")
    workspace.checkpoint()
    assert paths(workspace) == {".mulliganignore", "a"}


@needs_git
def test_a_restore_leaves_the_repository_alone(
    project: Path, workspace: mulligan.Workspace
) -> None:
    git(project, "init", "-q")
    write(project, "a", "dist/t")
    git(project, "add", "-f", "a", "dist/t")
    git(project, "commit", "-q", "-m", "first")
    first = workspace.checkpoint()
    (project / "a").write_text("changed")
    shutil.rmtree(project / "dist")
    git(project, "commit", "-q", "-a", "-m", "second")
    before = {path: path.read_bytes() for path in (project / ".git").rglob("*") if path.is_file()}
    workspace.restore(first.id)
    assert (project / "dist" / "t").read_text() == "content of dist/t"
    assert before == {
        path: path.read_bytes() for path in (project / ".git").rglob("*") if path.is_file()
    }


@needs_git
def test_a_nested_repository_is_kept_like_any_folder_under_its_own_rules(
    project: Path, workspace: mulligan.Workspace
) -> None:
    git(project, "init", "-q")
    inner = project / "libs" / "inner"
    write(inner, "b", "x.skip", "y.tmp", "z.out")
    git(inner, "init", "-q")
    (inner / ".git" / "info" / "exclude").write_text("*.skip\n")
    (inner / ".gitignore").write_text("*.tmp\n")
    (project / ".git" / "info" / "exclude").write_text("*.out\n")
    write(project, "a", "a.skip")
    workspace.checkpoint()
    # The inner repository's exclude file takes the place of the outer one's below it.
    assert paths(workspace) == {
        "a", "a.skip", "libs/inner/.gitignore", "libs/inner/b", "libs/inner/z.out",
    }  # fmt: skip
    first = workspace.find("@")
    shutil.rmtree(inner)
    workspace.restore(first.id)
    assert (inner / "b").read_text() == "content of b"


@needs_git
def test_a_project_inside_a_larger_work_tree_obeys_the_rules_above_it(
    project: Path, mulligan_home: Path
) -> None:
    git(project, "init", "-q")
    inner = project / "apps" / "one"
    write(inner, "a", "skip.me", "x.tmp", "dist/tracked", "dist/other", "deep/y.tmp")
    write(project, "apps/outside")
    (project / ".gitignore").write_text("*.tmp\n/apps/one/skip.me\n")
    (inner / ".mulligan.toml").write_text("")
    git(project, "add", "-f", "apps/one/dist/tracked", "apps/outside")
    with mulligan.open(inner) as workspace:
        assert workspace.root == str(inner)
        workspace.checkpoint()
        assert paths(workspace) == {".mulligan.toml", "a", "dist/tracked"}
        assert paths(workspace, guarded=True) == {"skip.me", "x.tmp", "deep/y.tmp"}
        time.sleep(0.06)
        workspace.checkpoint()
        (project / ".gitignore").write_text("")
        workspace.checkpoint()
        assert "x.tmp" in paths(workspace)


def test_our_own_ignore_file_switches_defaults_back_on(
    project: Path, workspace: mulligan.Workspace
) -> None:
    write(project, "a", "dist/x", "dist/y.log", "build/z", "secret", "d/.env")
    (project / ".gitignore").write_text(".env\n")
    (project / ".mulliganignore").write_text("!dist/\n!*.log\nsecret\n!.env\n")
    accept(workspace.project, rule_files(workspace.project))
    taken = workspace.checkpoint()
    assert paths(workspace) == {
        ".gitignore", ".mulliganignore", "a", "d/.env", "dist/x", "dist/y.log",
    }  # fmt: skip
    assert paths(workspace, guarded=True) == set()
    assert ("secret" not in paths(workspace, guarded=None)) and excluded(taken.coverage) == {
        "build/": 1,
        ".": 1,
    }


@pytest.mark.parametrize("where", [".", "home", "deep/down/home", "node_modules/home"])
def test_a_home_inside_the_project_is_never_part_of_it(project: Path, where: str) -> None:
    write(project, "a", "deep/b")
    home = str(project / where)
    with mulligan.open(project, home=home) as workspace:
        first = workspace.checkpoint()
        assert paths(workspace, guarded=None) == {"a", "deep/b"}
        (project / "a").write_text("changed")
        (project / "deep" / "new").write_text("new")
        workspace.checkpoint(include=[where] if where != "." else [])
        assert paths(workspace, guarded=None) == {"a", "deep/b", "deep/new"}
        workspace.restore(first.id)
        assert (project / "a").read_text() == "content of a"
        workspace.undo()
        assert (project / "a").read_text() == "changed"
        assert workspace.maintenance.verify().clean
    with mulligan.open(project, home=home, watch=sys.platform == "linux") as workspace:
        assert workspace.status().changed_files == ()


@pytest.mark.parametrize("name", [b"\xff\xfe", b"new\nline", b" ", b"\t", b"a" * 255, b"-rf", b"*"])
def test_any_name_is_kept_exactly(
    project: Path, workspace: mulligan.Workspace, name: bytes
) -> None:
    root = os.fsencode(project)
    os.mkdir(root + b"/d" + name[:254])
    inside = root + b"/d" + name[:254] + b"/" + name
    with open(inside, "wb") as file:
        file.write(name)
    os.symlink(name, root + b"/l" + name[:254])
    first = workspace.checkpoint()
    assert workspace.read(first.id, os.fsdecode(inside[len(root) + 1 :])) == name
    shutil.rmtree(root + b"/d" + name[:254])
    os.unlink(root + b"/l" + name[:254])
    assert len(workspace.status().changed_files) == 2
    workspace.restore(first.id)
    with open(inside, "rb") as file:
        assert file.read() == name
    assert os.readlink(root + b"/l" + name[:254]) == name


def test_very_deep_folders_are_kept_or_named(project: Path, workspace: mulligan.Workspace) -> None:
    deep = project
    for _ in range(300):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "file").write_text("deep")
    write(project, "a")
    taken = workspace.checkpoint()
    assert "a" in paths(workspace)
    kept = any(path.endswith("/file") for path in paths(workspace))
    assert kept or any(path.startswith("d/d") for path in reasons(taken.coverage))
    (project / "a").write_text("changed")
    workspace.restore(taken.id)
    assert (deep / "file").read_text() == "deep"


def test_a_deletion_is_listed_although_something_else_has_the_name_now(
    project: Path, workspace: mulligan.Workspace
) -> None:
    write(project, "a", "d/x", "build")
    workspace.checkpoint()
    (project / "build").unlink()
    write(project, "build/ignored")
    (project / "d").rename(project / "e")
    (project / "d").symlink_to("e")
    found = {each.path: each.status for each in workspace.status().changed_files}
    assert found == {"build": "deleted", "d": "added", "d/x": "deleted", "e/x": "added"}
