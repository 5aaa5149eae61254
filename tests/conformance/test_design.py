"""What the systems before this one get wrong, by the numbers of the design's seventh section."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from acts import fingerprint, picture, run, store_size, unprivileged, write

import mulligan
from mulligan import Workspace

CLI = [sys.executable, "-m", "mulligan"]


def changed(workspace: Workspace) -> dict[str, str]:
    return {each.path: each.status for each in workspace.status().changed_files}


def test_design_7_1_what_is_derived_can_be_deleted_and_everything_is_still_there(
    project: Path, mulligan_home: Path
) -> None:
    write(project, {f"d/f{number}": f"{number}\n" * 50 for number in range(20)})
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        write(project, {"d/f3": "edited\n" * 51})
        second = workspace.checkpoint()
    (data,) = mulligan_home.glob("projects/*")
    for derived in (data / "index", *data.glob("objects/index.sqlite*")):
        derived.unlink()
    with mulligan.open(project) as workspace:
        assert [each.id for each in workspace.log()] == [second.id, first.id]
        assert workspace.read(first.id, "d/f3") == b"3\n" * 50
        assert changed(workspace) == {}
        workspace.restore(first.id)
        assert (project / "d/f3").read_text() == "3\n" * 50
        assert workspace.maintenance.verify().clean


def test_design_7_2_changes_by_commands_are_shown_like_all_others(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"edited": "1", "removed": "1", "mode": "1", "same": "1"})
    workspace.checkpoint()
    run(project, "echo x > edited; rm removed; chmod +x mode; touch same; mkdir -p n; date > n/n")
    assert changed(workspace) == {
        "edited": "modified",
        "removed": "deleted",
        "mode": "modified",
        "n/n": "added",
    }


def test_design_7_3_every_name_kind_mode_and_byte_comes_back_exactly(
    project: Path, workspace: Workspace
) -> None:
    top = os.fsencode(project)
    contents = {
        b"crlf.txt": b"one\r\ntwo\r\nthree",
        b"mixed.txt": b"a\nb\r\nc\rd",
        b"binary": bytes(range(256)),
        b"utf-16": "text".encode("utf-16"),
        b"latin-\xff\xfe": b"not a UTF-8 name",
        b"new\nline": b"a newline in the name",
        b"tab\tquote\"back\\slash'": b"odd",
        b" leading and trailing ": b"spaces",
        b"-rf": b"a dash first",
        b"\xe2\x80\xae rtl": b"a control character",
        "café".encode(): b"composed",
        "cafe\u0301".encode(): b"decomposed",
        b"empty": b"",
        b"x" * 255: b"the longest name",
    }
    for name, content in contents.items():
        with open(os.path.join(top, name), "wb") as file:
            file.write(content)
    os.chmod(os.path.join(top, b"binary"), 0o755)
    os.chmod(os.path.join(top, b"empty"), 0o400)
    os.mkdir(os.path.join(top, b"empty directory"))
    os.makedirs(os.path.join(top, b"dir\xff/deeper\n"))
    os.symlink(b"crlf.txt", os.path.join(top, b"link"))
    os.symlink(b"no\xffwhere", os.path.join(top, b"dangling"))
    os.symlink(b"/etc", os.path.join(top, b"out of the project"))
    before = picture(project)
    taken = workspace.checkpoint()
    assert taken.coverage.complete
    run(project, "find . -mindepth 1 -delete")
    assert picture(project) == {}
    done = workspace.restore(taken.id)
    assert done.verified and done.skipped == ()
    assert picture(project) == before
    assert workspace.status().changed_files == ()


def test_design_7_3_files_with_odd_names_have_status_and_differences(
    project: Path, workspace: Workspace
) -> None:
    name = os.fsdecode(b"latin-\xff")
    write(project, {name: "one\n", "new\nline": "one\n"})
    workspace.checkpoint()
    write(project, {name: "two\n", "new\nline": "two\n"})
    assert changed(workspace) == {name: "modified", "new\nline": "modified"}
    assert {each.path for each in workspace.diff()} == {name, "new\nline"}
    assert all(each.additions == each.deletions == 1 for each in workspace.diff())
    assert [each.path for each in workspace.diff(paths=[name])] == [name]


def test_design_7_4_what_cannot_be_read_never_fails_a_checkpoint_and_is_named(
    project: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {"fine": "1"})
    monkeypatch.chdir(project)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        os.mkfifo("pipe")
        os.symlink("nowhere", "broken")
        os.symlink("loop", "loop")
        taken = workspace.checkpoint()
        before = picture(project)
        reasons = {each.path: each.reason for each in taken.coverage.skipped}
        assert reasons == {b"socket": "is a socket", b"pipe": "is a named pipe"}
        kept = {each.path for each in workspace.entries(taken.id)}
        assert kept == {"fine", "broken", "loop"}
        write(project, {"fine": "2", "new": "2"})
        done = workspace.restore(taken.id)
        assert done.restored == ("fine",) and done.deleted == ("new",)
        assert picture(project) == before


def test_design_7_4_unreadable_files_and_folders_are_named_and_never_shown_as_deleted(
    project: Path,
) -> None:
    write(project, {"a": "1", "file": "1", "folder/inner": "1"})
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
    (project / "file").chmod(0)
    (project / "folder").chmod(0)
    script = (
        "import mulligan, sys\n"
        "with mulligan.open(sys.argv[1]) as workspace:\n"
        "    print(sorted(path.decode() for path, _ in workspace.checkpoint().coverage.skipped))\n"
        "    print([each.path for each in workspace.status().changed_files])\n"
        "    print([each.path for each in workspace.diff(sys.argv[2])])\n"
    )
    done = unprivileged("-c", script, str(project), first.id)
    (project / "file").chmod(0o644)
    (project / "folder").chmod(0o755)
    if done.returncode == 99:
        pytest.skip("privileges cannot be dropped here")
    assert done.stdout.splitlines() == ["['file', 'folder']", "[]", "[]"], done.stderr
    with mulligan.open(project) as workspace:
        # A checkpoint that could not see a path says nothing about it: it is not deleted.
        workspace.restore("@")
        assert (project / "file").exists() and (project / "folder/inner").exists()


def test_design_7_4_files_that_vanish_while_they_are_looked_at_do_not_fail_it(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"stays": "1"})
    stop = threading.Event()

    def flicker() -> None:
        while not stop.is_set():
            for number in range(20):
                (project / f"passing{number}").write_text("x")
            for number in range(20):
                (project / f"passing{number}").unlink()

    thread = threading.Thread(target=flicker)
    thread.start()
    try:
        for _ in range(15):
            taken = workspace.checkpoint()
            assert workspace.read(taken.id, "stays") == b"1"
    finally:
        stop.set()
        thread.join()


def test_design_7_5_a_forced_path_is_read_at_each_checkpoint_and_never_stale(
    project: Path, workspace: Workspace
) -> None:
    write(project, {".gitignore": "out.html\n", "out.html": "first"})
    first = workspace.checkpoint(include=["out.html"])
    write(project, {"out.html": "other"})
    second = workspace.checkpoint()
    (project / "out.html").unlink()
    third = workspace.checkpoint()
    write(project, {"out.html": "again"})
    fourth = workspace.checkpoint()
    read = [workspace.read(each.id, "out.html") for each in (first, second, fourth)]
    assert read == [b"first", b"other", b"again"]
    with pytest.raises(mulligan.NotFound):
        workspace.read(third.id, "out.html")


def test_design_7_5_a_path_can_be_forced_before_it_exists(
    project: Path, workspace: Workspace
) -> None:
    write(project, {".gitignore": "dist/\n"})
    workspace.checkpoint(include=["dist/late"])
    write(project, {"dist/late": "here now", "dist/other": "not asked for"})
    taken = workspace.checkpoint()
    assert workspace.read(taken.id, "dist/late") == b"here now"
    with pytest.raises(mulligan.NotFound):
        workspace.read(taken.id, "dist/other")


def test_design_7_6_edits_of_the_same_size_right_after_the_look_are_seen(
    project: Path, workspace: Workspace
) -> None:
    path = project / "f"
    for number in range(40):
        overwrite(path, f"first {number:04}")
        taken = workspace.checkpoint()
        overwrite(path, f"after {number:04}")
        assert changed(workspace) == {"f": "modified"}
        assert workspace.read(taken.id, "f") == f"first {number:04}".encode()
        overwrite(path, f"first {number:04}")
        assert changed(workspace) == {}


def overwrite(path: Path, content: str) -> None:
    """In place, with the same modification time as always: only the change time may differ."""
    with open(path, "r+" if path.exists() else "w") as file:
        file.write(content)
    os.utime(path, ns=(10**18, 10**18))


def test_design_7_6_a_file_swapped_for_one_with_the_same_size_and_times_is_seen(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"f": "one", "d/g": "one"})
    workspace.checkpoint()
    run(project, "printf two > t; touch -r f t; mv t f; printf two > t; touch -r d/g t; mv t d/g")
    assert changed(workspace) == {"f": "modified", "d/g": "modified"}


def test_design_7_7_restore_removes_what_commands_created_again_and_again(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1"})
    target = workspace.checkpoint()
    before = picture(project)
    for number in range(12):
        run(project, f"mkdir -p made/by; echo {number} > made/by/command; echo {number} > a")
        if number % 2:
            workspace.checkpoint()
        made = picture(project)
        workspace.restore(target.id)
        assert picture(project) == before
        workspace.undo()
        assert picture(project) == made
        workspace.redo()
        assert picture(project) == before
    times = [each.created_at for each in workspace.log()]
    assert times == sorted(set(times), reverse=True)


def test_design_7_7_everything_a_restore_removed_is_in_the_safety_checkpoint(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1"})
    target = workspace.checkpoint()
    run(project, "echo precious > never-checkpointed; echo edit > a")
    done = workspace.restore(target.id)
    assert done.safety_checkpoint is not None
    assert workspace.read(done.safety_checkpoint, "never-checkpointed") == b"precious\n"
    assert workspace.read(done.safety_checkpoint, "a") == b"edit\n"


def test_design_7_8_undo_of_a_created_file_deletes_it(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "1", "created": "by the restore"})
    first = workspace.checkpoint()
    (project / "created").unlink()
    workspace.restore(first.id)
    done = workspace.undo()
    assert done.deleted == ("created",) and not (project / "created").exists()


def test_design_7_8_undo_spares_a_created_file_that_was_edited_since_or_keeps_the_edit_safe(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1", "created": "by the restore"})
    first = workspace.checkpoint()
    (project / "created").unlink()
    workspace.restore(first.id)
    write(project, {"created": "edited by the user"})
    spared = workspace.undo(keep_dirty=True, preview=True)
    assert [skip.path for skip in spared.skipped] == ["created"] and spared.deleted == ()
    done = workspace.undo()
    assert done.dirty == ("created",) and done.safety_checkpoint is not None
    assert workspace.read(done.safety_checkpoint, "created") == b"edited by the user"
    workspace.redo()
    assert (project / "created").read_text() == "edited by the user"


def test_design_7_8_an_operation_is_recorded_only_if_the_disk_changed(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1"})
    taken = workspace.checkpoint()
    workspace.restore(taken.id)
    assert [each.kind for each in workspace.operations()] == ["checkpoint"]
    with pytest.raises(mulligan.NothingToUndo):
        workspace.undo()
    write(project, {"a": "2"})
    workspace.restore(taken.id, keep_dirty=True)
    assert (project / "a").read_text() == "2"
    assert not any(each.changed for each in workspace.operations())


def test_design_7_9_forgotten_objects_are_freed_and_reachable_ones_never(
    project: Path, workspace: Workspace, mulligan_home: Path
) -> None:
    shared = "line of text\n" * 3000
    kept = {}
    for number in range(12):
        write(
            project,
            {
                "random": os.urandom(60_000),
                "text": shared + f"{number}\n",
                f"own/{number}": f"{number}" * 200,
            },
        )
        kept[workspace.checkpoint().id] = picture(project)
    full = store_size(mulligan_home)
    workspace.maintenance.forget(keep_last=4)
    found = workspace.maintenance.gc()
    assert found.freed_bytes > 7 * 60_000 and store_size(mulligan_home) < full / 2
    left = [each.id for each in workspace.log()]
    assert left == list(kept)[:-5:-1]
    for id in left:
        workspace.restore(id)
        assert picture(project) == kept[id]
        workspace.maintenance.gc()
    assert workspace.maintenance.verify().clean


def test_design_7_9_gc_is_safe_beside_running_agents(project: Path) -> None:
    write(project, {"f": "0"})
    agent = (
        "import mulligan, os, sys\n"
        "name = sys.argv[2]\n"
        "with mulligan.open(sys.argv[1]) as workspace:\n"
        "    for number in range(12):\n"
        "        content = os.urandom(3000)\n"
        "        with open(os.path.join(sys.argv[1], name), 'wb') as file: file.write(content)\n"
        "        taken = workspace.checkpoint(name)\n"
        "        assert workspace.read(taken.id, name) == content\n"
    )
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        agents = [
            subprocess.Popen([sys.executable, "-c", agent, str(project), name]) for name in "ab"
        ]
        while any(each.poll() is None for each in agents):
            workspace.maintenance.forget(keep_last=30)
            workspace.maintenance.gc()
        assert [each.returncode for each in agents] == [0, 0]
        assert len(workspace.log()) == 25
        assert workspace.maintenance.verify().clean


def test_design_7_14_a_wait_for_another_process_has_an_end(project: Path) -> None:
    write(project, {"a": "1"})
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import mulligan, sys\n"
            "with mulligan.open(sys.argv[1]) as workspace, workspace.project.locked():\n"
            "    print('held', flush=True); sys.stdin.read()",
            str(project),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None and holder.stdin is not None
    assert holder.stdout.readline() == b"held\n"
    try:
        with mulligan.open(project, wait=0.1) as workspace:
            with pytest.raises(mulligan.Busy, match=str(holder.pid)):
                workspace.checkpoint()
            assert workspace.log() == []
    finally:
        holder.stdin.close()
        holder.wait(timeout=30)
    with mulligan.open(project, wait=0.1) as workspace:
        assert workspace.checkpoint().files == 1


def test_design_7_14_a_killed_process_leaves_no_lock_behind(project: Path) -> None:
    write(project, {"a": "1"})
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import mulligan, sys, time\n"
            "with mulligan.open(sys.argv[1]) as workspace, workspace.project.locked():\n"
            "    print('held', flush=True); time.sleep(600)",
            str(project),
        ],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    holder.send_signal(signal.SIGKILL)
    holder.wait(timeout=30)
    with mulligan.open(project, wait=0.1) as workspace:
        assert workspace.checkpoint().files == 1


def test_design_7_14_closing_leaves_no_thread_and_no_open_file(project: Path) -> None:
    write(project, {f"f{number}": os.urandom(30_000) for number in range(200)})
    mulligan.open(project).close()
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for watch in (False, True):
        with mulligan.open(project, watch=watch) as workspace:
            taken = workspace.checkpoint()
            write(project, {"f1": "changed"})
            workspace.restore(taken.id)
        workspace.close()
        assert threading.active_count() == threads
        assert len(os.listdir("/proc/self/fd")) == files


def test_design_7_15_the_users_git_is_never_touched_and_never_needed(
    project: Path, mulligan_home: Path
) -> None:
    write(project, {"a": "1\n", "d/b": "1\n"})
    run(project, "git init -q && git add -A && git commit -qm one && git checkout -q -b side")
    write(project, {"a": "staged\n"})
    run(project, "git add a")
    write(project, {"a": "worktree\n"})
    before = fingerprint(project / ".git")
    commands = [
        ("checkpoint", "-m", "first"),
        ("status",),
        ("diff",),
        ("checkpoint",),
        ("restore", "@1"),
        ("undo",),
        ("redo",),
        ("forget", "--keep-last", "3"),
        ("gc",),
        ("verify",),
        ("doctor",),
    ]
    environment = {**os.environ, "PATH": "/nowhere"}
    for number, command in enumerate(commands):
        write(project, {"a": f"{number}\n", f"new{number}": "1"})
        done = subprocess.run(
            [*CLI, *command], cwd=project, env=environment, capture_output=True, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        assert fingerprint(project / ".git") == before, command


def test_design_7_15_nested_repositories_are_kept_without_their_git_folders(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"top": "1", "nested/inner": "1", "nested/deep/er/x": "1"})
    for folder in (".", "nested", "nested/deep/er"):
        run(project / folder, "git init -q && git add -A 2>/dev/null && git commit -qm x")
    write(project, {"worktree/.git": "gitdir: /elsewhere\n", "worktree/file": "1"})
    gits = [project / each for each in (".git", "nested/.git", "nested/deep/er/.git")]
    before = [fingerprint(each) for each in gits]
    taken = workspace.checkpoint()
    kept = {each.path for each in workspace.entries(taken.id) if each.kind == "file"}
    assert kept == {"top", "nested/inner", "nested/deep/er/x", "worktree/file"}
    run(project, "echo 2 > nested/inner; echo 2 > nested/deep/er/x; echo 2 > worktree/file")
    run(project, "echo 2 > nested/new")
    workspace.restore(taken.id)
    assert (project / "nested/deep/er/x").read_text() == "1"
    assert not (project / "nested/new").exists()
    assert (project / "worktree/.git").read_text() == "gitdir: /elsewhere\n"
    assert [fingerprint(each) for each in gits] == before


def test_design_7_15_a_folder_that_holds_a_repository_is_not_removed_with_it(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1"})
    target = workspace.checkpoint()
    write(project, {"cloned/file": "1"})
    run(project / "cloned", "git init -q && git add -A && git commit -qm x")
    before = fingerprint(project / "cloned/.git")
    workspace.restore(target.id)
    assert not (project / "cloned/file").exists()
    assert fingerprint(project / "cloned/.git") == before


def test_design_7_15_a_plain_folder_and_a_repository_have_the_same_tree(tmp_path: Path) -> None:
    trees = []
    for name in ("plain", "repository"):
        write(tmp_path / name, {".gitignore": "*.tmp\n", "a": "1", "b.tmp": "2", "d/c": "3"})
        if name == "repository":
            run(tmp_path / name, "git init -q && git add -A && git commit -qm x")
        with mulligan.open(tmp_path / name) as workspace:
            trees.append(workspace.checkpoint().tree)
    assert trees[0] == trees[1]


def test_design_7_15_without_git_on_the_machine_ignore_rules_still_hold(
    project: Path, tmp_path: Path
) -> None:
    write(project, {".gitignore": "*.tmp\n", "a": "1", "b.tmp": "2"})
    done = subprocess.run(
        [*CLI, "checkpoint", "--json"],
        cwd=project,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        check=True,
    )
    assert b'"files": 2' in done.stdout
    assert shutil.which("git", path=str(tmp_path)) is None


def test_design_7_16_several_processes_lose_no_update(project: Path) -> None:
    write(project, {"shared": "0"})
    agent = (
        "import mulligan, os, sys\n"
        "root, name = sys.argv[1:]\n"
        "for number in range(6):\n"
        "    with mulligan.open(root) as workspace:\n"
        "        with open(os.path.join(root, name), 'a') as file: file.write(f'{number}\\n')\n"
        "        workspace.checkpoint(f'{name} {number}')\n"
        "        workspace.status()\n"
    )
    agents = [subprocess.Popen([sys.executable, "-c", agent, str(project), name]) for name in "abc"]
    assert [each.wait(timeout=120) for each in agents] == [0, 0, 0]
    with mulligan.open(project) as workspace:
        log = workspace.log()
        assert sorted(each.message for each in log) == sorted(
            f"{name} {number}" for name in "abc" for number in range(6)
        )
        times = [each.created_at for each in log]
        assert times == sorted(set(times), reverse=True)
        for each in log:
            name, number = each.message.split()
            expected = "".join(f"{count}\n" for count in range(int(number) + 1))
            assert workspace.read(each.id, name) == expected.encode()
        assert [each.number for each in workspace.operations()] == list(range(18, 0, -1))
        assert workspace.maintenance.verify().clean


def test_design_7_16_status_answers_while_another_process_is_at_work(
    project: Path,
) -> None:
    large = b"a" * (1 << 20)
    write(project, {"a": "1\n", "one-mib": large, "d/larger": large + b"a"})
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
    write(project, {"a": "2\n", "one-mib": b"b" + large[1:], "new": "n\n", "d/larger": b"b"})
    with (
        mulligan.open(project) as workspace,
        mulligan.open(project) as other,
        other.project.locked(),
    ):
        found = {each.path: each for each in workspace.status().changed_files}
        assert {path: each.status for path, each in found.items()} == {
            "a": "modified",
            "d/larger": "modified",
            "new": "added",
            "one-mib": "modified",
        }
        assert found["a"].diff is not None and "+2\n" in found["a"].diff
        assert {each.path for each in workspace.diff()} == set(found)
