"""Programs that have files open for writing while a restore replaces or deletes these files.

The rest of what a program writes must end up in the project or in a checkpoint. Where a test needs
an exact moment, it hooks the step of the restore; where it needs another program, it starts one.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan import Workspace
from mulligan.core.tree import Change, Entry, file_entry
from mulligan.worktree.fs import leases
from mulligan.worktree.fs.deferred_unlink import DeferredUnlink
from mulligan.worktree.restore import apply as applying
from mulligan.worktree.restore import staging_recovery
from mulligan.worktree.restore.displaced import CHANGED_CONCURRENTLY, DisplacedFiles
from mulligan.worktree.restore.staging_area import Slot

pytestmark = pytest.mark.skipif(not leases.HAS_LEASES, reason="leases are Linux's")


class Program:
    """Another process that has files open for appending, and writes a line when told to."""

    def __init__(self, *paths: Path) -> None:
        script = """
            import sys
            files = [open(path, "a") for path in sys.argv[1:]]
            print("open", flush=True)
            for line in sys.stdin:
                for file in files:
                    file.write(line)
                    file.flush()
                print("written", flush=True)
        """
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), *map(str, paths)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._answer() == "open"

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self._answer() == "written"

    def end(self) -> None:
        self.process.communicate()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    with mulligan.open(project) as opened:
        yield opened


@pytest.fixture
def first(project: Path, workspace: Workspace) -> str:
    """A checkpoint in which `changed` and `other` are older, and `new` is not there yet."""
    (project / "changed").write_text("first\n")
    (project / "other").write_text("first\n")
    taken = workspace.checkpoint().id
    for name in ("changed", "other", "new"):
        (project / name).write_text("second\n")
    return taken


def reasons(result: Any) -> dict[str, str]:
    return {each.path: each.reason for each in result.skipped}


def test_files_that_a_program_has_open_are_left_alone_and_named_with_the_program(
    project: Path, workspace: Workspace, first: str
) -> None:
    program = Program(project / "changed", project / "new")
    try:
        for result in (workspace.restore(first, preview=True), workspace.restore(first)):
            assert set(reasons(result)) == {"changed", "new"}
            for reason in reasons(result).values():
                assert reason.startswith("open for writing by python")
                assert reason.endswith(f"(process {program.process.pid}); --force replaces it")
            assert result.restored == ("other",)
        program.write("after the restore")
    finally:
        program.end()
    assert (project / "changed").read_text() == "second\nafter the restore\n"
    assert (project / "new").read_text() == "second\nafter the restore\n"
    assert (project / "other").read_text() == "first\n"
    assert workspace.restore(first).skipped == ()
    assert not (project / "new").exists()
    assert workspace.maintenance.verify().clean


def test_force_replaces_an_open_file_and_keeps_what_is_written_to_it_later_beside_it(
    project: Path, workspace: Workspace, first: str
) -> None:
    program = Program(project / "changed", project / "new")
    try:
        result = workspace.restore(first, force=True)
        assert result.skipped == () and result.verified
        assert set(result.rescued) == {"changed.rescued-1", "new.rescued-1"}
        program.write("after the restore")
    finally:
        program.end()
    assert (project / "changed").read_text() == "first\n"
    assert not (project / "new").exists()
    for name in result.rescued:
        assert (project / name).read_text() == "second\nafter the restore\n"
    assert not list(project.glob(".mulligan-tmp-*"))
    assert workspace.maintenance.verify().clean


@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_undo_and_redo_leave_open_files_alone_too(
    project: Path, workspace: Workspace, first: str, verb: str
) -> None:
    workspace.restore(first)
    if verb == "redo":
        workspace.undo()
    program = Program(project / "changed")
    try:
        result = getattr(workspace, verb)()
        assert set(reasons(result)) == {"changed"}
        program.write("later")
    finally:
        program.end()
    assert (project / "changed").read_text().endswith("later\n")


def test_a_hunk_in_an_open_file_is_not_called_undone(project: Path, workspace: Workspace) -> None:
    for name in ("a", "b"):
        (project / name).write_text("first\n")
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "change both")
    for name in ("a", "b"):
        (project / name).write_text("second\n")
    workspace.sessions.end_turn(session)
    hunks = {hunk.path: hunk.id for hunk in workspace.review.pending(session=session).hunks}
    program = Program(project / "a")
    try:
        done = workspace.review.discard(session=session)
    finally:
        program.end()
    assert (done.hunks, done.conflicts) == ((hunks["b"],), (hunks["a"],))
    assert [hunk.path for hunk in workspace.review.pending(session=session).hunks] == ["a"]


def test_a_mapped_file_is_left_alone_after_its_descriptor_was_closed(
    project: Path, workspace: Workspace, first: str
) -> None:
    with (project / "changed").open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    assert set(reasons(workspace.restore(first))) == {"changed"}
    mapped[:6] = b"MAPPED"
    mapped.close()
    assert (project / "changed").read_text() == "MAPPED\n"


def test_where_there_are_no_leases_the_processes_are_asked(
    project: Path, workspace: Workspace, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "HAS_LEASES", False)
    program = Program(project / "changed")
    with (project / "other").open("rb"):
        result = workspace.restore(first)
    program.end()
    assert set(reasons(result)) == {"changed"}
    assert f"(process {program.process.pid})" in reasons(result)["changed"]


def test_a_server_that_refuses_every_lease_does_not_make_every_file_open(
    project: Path, workspace: Workspace, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS and SMB refuse a lease with the same errno for other reasons."""

    def refused(*_given: object) -> int:
        raise BlockingIOError(11, "try again")

    monkeypatch.setattr(leases, "fcntl", refused)
    monkeypatch.setattr(leases, "_is_foreign", lambda fd: True)
    result = workspace.restore(first)
    assert result.skipped == () and result.verified


@pytest.mark.parametrize("name", ["changed", "new"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("in_two_steps", [False, True])
def test_a_file_that_is_opened_while_it_changes_places_goes_back(
    project: Path,
    workspace: Workspace,
    first: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    after: bool,
    in_two_steps: bool,
) -> None:
    """Opened between plan and exchange, so that only the lease on the displaced file shows it."""
    opened = []
    real = DisplacedFiles.accept

    def take(self: DisplacedFiles, change: Change, slot: Slot) -> str | None:
        # Opened by a name of before, and written to after it was compared.
        if change.path == name.encode():
            flags = os.O_WRONLY | os.O_APPEND
            opened.append(os.open(slot.name, flags, dir_fd=slot.fd))
            if after:
                os.write(opened[0], b"at once\n")
        return real(self, change, slot)

    if in_two_steps:
        monkeypatch.setattr(applying, "exchange", no_exchange)
    monkeypatch.setattr(DisplacedFiles, "accept", take)
    result = workspace.restore(first)
    os.write(opened[0], b"later\n")
    os.close(opened[0])
    expected = CHANGED_CONCURRENTLY if after else leases.reason_to_leave()
    assert reasons(result) == {name: expected}
    assert (project / name).read_text() == "second\n" + "at once\n" * after + "later\n"
    assert not list(project.glob(".mulligan-tmp-*"))
    assert workspace.maintenance.verify().clean


def no_exchange(*_given: object) -> None:
    raise applying.NoExchange(38, "no exchange here")


def test_a_file_that_a_program_waits_to_open_when_it_would_be_deleted_goes_back(
    project: Path, workspace: Workspace, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program opens it by another name after the exchange, and waits for the lease."""
    os.link(project / "changed", project.parent / "another-name")
    is_restored = threading.Event()

    def append() -> None:
        with (project.parent / "another-name").open("a") as file:
            is_restored.wait()
            file.write("later\n")

    writer = threading.Thread(target=append)
    real = DisplacedFiles.delete_all

    def drop(self: DisplacedFiles) -> Any:
        writer.start()
        [fd] = [each.fd for each in self._files if each.change.path == b"changed"]
        assert fd is not None
        while leases.is_unbroken(fd):
            time.sleep(0.001)
        return real(self)

    monkeypatch.setattr(DisplacedFiles, "delete_all", drop)
    result = workspace.restore(first)
    is_restored.set()
    writer.join()
    assert reasons(result) == {"changed": leases.reason_to_leave()}
    assert (project / "changed").read_text() == "second\nlater\n"
    assert workspace.maintenance.verify().clean


def entry(content: bytes) -> Entry:
    return file_entry(b"", 0o644, len(content), sha256(content).digest())


def test_without_room_for_its_descriptor_a_file_is_looked_at_again_before_it_is_deleted(
    project: Path,
) -> None:
    for name in ("r0", "r1"):
        (project / name).write_bytes(b"one")
    parent = os.open(project, os.O_RDONLY)
    with DeferredUnlink() as unlinker:
        unlinker.max_held = 0
        displaced = DisplacedFiles(unlinker)
        for name in (b"r0", b"r1"):
            assert displaced.accept(Change(name, entry(b"one"), None), Slot(parent, name)) is None
        with (project / "r0").open("a"):
            kept = list(displaced.delete_all())
    os.close(parent)
    assert [(each.change.path, each.reason) for each in kept] == [(b"r0", leases.reason_to_leave())]
    assert os.listdir(project) == ["r0"]


@pytest.mark.parametrize("present", [b"two", None, b"theirs"])
def test_after_a_crash_what_a_program_has_open_is_put_back_and_not_deleted(
    project: Path, present: bytes | None
) -> None:
    """Its bytes are in the store, but the program may write more."""
    if present is not None:
        (project / "x").write_bytes(present)
    folder = project / ".mulligan-tmp-7"
    folder.mkdir()
    (folder / "w0").write_bytes(b"one")
    change = Change(b"x", entry(b"one"), entry(b"two"))
    with (folder / "w0").open("a") as file:
        saved = staging_recovery.rescue(
            os.fsencode(project), "7", [change], lambda id: iter([b"two"])
        )
        file.write(" and more")
    assert saved == ([b"x.rescued-1"] if present == b"theirs" else [])
    assert (project / ("x.rescued-1" if saved else "x")).read_bytes() == b"one and more"
    assert not folder.exists()


WRITER = """
    import os, random, sys, time
    folder, mine = sys.argv[1:]
    number = 0
    print("ready", flush=True)
    while not os.path.exists(folder + "/../stop"):
        with open(f"{folder}/log{random.randrange(4)}", "a") as file:
            for _ in range(3):
                number += 1
                file.write(f"{mine} {number}\\n")
                file.flush()
                time.sleep(random.random() / 300)
    print(number, flush=True)
"""


def test_no_line_of_programs_that_append_all_the_time_is_lost(
    project: Path, workspace: Workspace
) -> None:
    without = workspace.checkpoint().id
    for number in range(4):
        (project / f"log{number}").write_text("start\n")
    start = workspace.checkpoint().id
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(project), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        for round in range(40):
            workspace.restore(start if round % 2 else without)
    finally:
        (project.parent / "stop").touch()
        counts = [int(writer.communicate()[0] or 0) for writer in writers]
    workspace.checkpoint()
    found: set[bytes] = set()
    for id in {each.id for row in workspace.log() for each in workspace.entries(row.id)}:
        found.update(workspace.project.store.get(bytes.fromhex(id)).splitlines())
    expected = {
        b"%d %d" % (writer, line)
        for writer, count in enumerate(counts)
        for line in range(1, count + 1)
    }
    assert expected - found == set()
    assert not list(project.glob(".mulligan-tmp-*"))
    assert workspace.maintenance.verify().clean
