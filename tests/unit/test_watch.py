"""The watcher reports every change in watched directories, or that events were lost.

`Mirror` is the smallest honest user of a watcher: it keeps a picture of a tree, looks again only
where events point, and must end up with what is on the disk.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mulligan.errors import Busy, Unsupported, UsageError
from mulligan.worktree.watch import remote
from mulligan.worktree.watch.inotify import Changes, Watcher

if sys.platform != "linux":

    def test_elsewhere_the_watcher_says_that_it_cannot_work(project: Path) -> None:
        with pytest.raises(Unsupported, match="inotify"):
            Watcher(os.fsencode(project))

    pytest.skip("the watcher needs inotify", allow_module_level=True)


@pytest.fixture
def root(project: Path) -> bytes:
    path = os.fsencode(project) + b"/root"
    os.mkdir(path)
    return path


@pytest.fixture
def watcher(root: bytes) -> Iterator[Watcher]:
    with Watcher(root) as watcher:
        assert watcher.add(b"")
        yield watcher


def write(root: bytes, path: bytes, content: bytes = b"x") -> None:
    full = root + b"/" + path
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as file:
        file.write(content)


def changes(watcher: Watcher, action: Callable[[], object]) -> Changes:
    """Return what the watcher reports of an action."""
    token = watcher.peek(None).token
    action()
    return watcher.since(token)


# One change, one report


@pytest.mark.parametrize(
    "name",
    [b"plain", b"with space", b"new\nline", b"not-\xff\xfe-utf8", b"a" * 255, b".gitignore", b"\\"],
)
@pytest.mark.parametrize("place", [b"", b"sub\xff/"])
def test_every_kind_of_change_is_reported_under_its_exact_name(
    root: bytes, watcher: Watcher, name: bytes, place: bytes
) -> None:
    os.mkdir(root + b"/sub\xff")
    assert watcher.add(b"sub\xff")
    path = place + name
    full = root + b"/" + path
    other = place + b"other"
    steps: list[tuple[Callable[[], object], set[bytes]]] = [
        (lambda: write(root, path), {path}),
        (lambda: write(root, path, b"longer"), {path}),
        (lambda: os.chmod(full, 0o755), {path}),
        (lambda: os.utime(full), {path}),
        (lambda: os.rename(full, root + b"/" + other), {path, other}),
        (lambda: os.rename(root + b"/" + other, full), {path, other}),
        (lambda: os.unlink(full), {path}),
        (lambda: os.symlink(b"nowhere", full), {path}),
        (lambda: os.unlink(full), {path}),
        (lambda: os.mkdir(full), {path}),
        (lambda: os.rmdir(full), {path}),
    ]
    watcher.since(None)
    for action, expected in steps:
        assert changes(watcher, action) == Changes(
            frozenset(expected), False, watcher.since(None).token
        )


def test_nothing_happened_means_no_paths_and_the_same_token(watcher: Watcher) -> None:
    token = watcher.since(None).token
    assert watcher.since(token) == Changes(frozenset(), False, token)


def test_reading_a_file_is_no_change(root: bytes, watcher: Watcher) -> None:
    write(root, b"file")

    def read() -> None:
        os.listdir(root)
        with open(root + b"/file", "rb") as file:
            file.read()

    assert changes(watcher, read).paths == frozenset()


def test_a_chmod_of_the_root_names_the_root(root: bytes, watcher: Watcher) -> None:
    found = changes(watcher, lambda: os.chmod(root, 0o700))
    assert found.paths == {b""} and not found.lost


def test_our_own_temporary_files_are_not_reported_and_git_only_as_the_folder_it_is_in(
    root: bytes, watcher: Watcher
) -> None:
    write(root, b"sub/file")
    watcher.add(b"sub")

    def work() -> None:
        for place in (b"", b"sub/"):
            os.mkdir(root + b"/" + place + b".git")
            write(root, place + b".mulligan-tmp-1", b"new")
            os.rename(root + b"/" + place + b".mulligan-tmp-1", root + b"/" + place + b"file")
            os.rmdir(root + b"/" + place + b".git")

    assert changes(watcher, work).paths == {b"file", b"sub", b"sub/file"}


def test_each_reader_gets_what_is_new_to_them(root: bytes, watcher: Watcher) -> None:
    first = watcher.since(None).token
    write(root, b"one")
    second = watcher.since(first)
    assert second.paths == {b"one"}
    write(root, b"two")
    assert watcher.since(second.token).paths == {b"two"}
    assert watcher.since(first).paths == {b"one", b"two"}
    write(root, b"one", b"again")
    assert watcher.since(second.token).paths == {b"one", b"two"}


def test_many_events_on_few_files_are_few_paths(root: bytes, watcher: Watcher) -> None:
    files = [os.open(b"%b/%d" % (root, n), os.O_CREAT | os.O_WRONLY) for n in range(10)]

    def work() -> None:
        for _ in range(1000):
            for file in files:
                os.write(file, b"x")

    found = changes(watcher, work)
    assert found.paths == {b"%d" % n for n in range(10)} and not found.lost
    for file in files:
        os.close(file)


# Directories


def test_only_what_was_added_is_watched(root: bytes, watcher: Watcher) -> None:
    write(root, b"seen/a")
    write(root, b"ignored/a")
    assert watcher.add(b"seen")
    watcher.since(None)

    def work() -> None:
        write(root, b"seen/b")
        write(root, b"ignored/b")

    assert changes(watcher, work).paths == {b"seen/b"}


def test_add_twice_is_add_once_and_forget_ends_it(root: bytes, watcher: Watcher) -> None:
    write(root, b"a/b/c/file")
    for directory in (b"a", b"a/b", b"a/b/c", b"a", b"a/b"):
        assert watcher.add(directory)
    assert changes(watcher, lambda: write(root, b"a/b/c/file")).paths == {b"a/b/c/file"}
    watcher.forget(b"a/b")
    assert changes(watcher, lambda: write(root, b"a/b/c/file")).paths == frozenset()
    assert changes(watcher, lambda: write(root, b"a/file")).paths == {b"a/file"}
    assert not watcher.since(watcher.since(None).token).lost
    assert watcher.add(b"a/b/c")
    assert changes(watcher, lambda: write(root, b"a/b/c/file")).paths == {b"a/b/c/file"}


def test_forget_leaves_a_neighbour_with_a_longer_name(root: bytes, watcher: Watcher) -> None:
    write(root, b"a/file")
    write(root, b"ab/file")
    assert watcher.add(b"a") and watcher.add(b"ab")
    watcher.forget(b"a")
    assert changes(watcher, lambda: write(root, b"ab/file")).paths == {b"ab/file"}


@pytest.mark.parametrize("path", [b"missing", b"file", b"link", b"file/below", b"a\0b"])
def test_what_is_no_directory_is_refused_without_loss(
    root: bytes, watcher: Watcher, path: bytes
) -> None:
    write(root, b"file")
    os.mkdir(root + b"/a")
    os.symlink(b"a", root + b"/link")
    token = watcher.since(None).token
    assert not watcher.add(path)
    assert not watcher.since(token).lost


def test_what_appears_between_add_and_listing_is_reported(root: bytes, watcher: Watcher) -> None:
    token = watcher.since(None).token
    write(root, b"a/b/c/file")  # the whole chain, before anybody could watch it
    found = watcher.since(token)
    assert found.paths == {b"a"}
    assert watcher.add(b"a")
    write(root, b"a/late")
    assert watcher.since(found.token).paths == {b"a/late"}


def test_a_directory_moved_inside_never_reports_under_its_old_path(
    root: bytes, watcher: Watcher
) -> None:
    write(root, b"old/sub/file")
    assert watcher.add(b"old") and watcher.add(b"old/sub")

    def move() -> None:
        os.rename(root + b"/old", root + b"/new")
        write(root, b"new/sub/file", b"changed")

    assert changes(watcher, move).paths == {b"old", b"new"}
    assert watcher.add(b"new") and watcher.add(b"new/sub")
    assert changes(watcher, lambda: write(root, b"new/sub/file")).paths == {b"new/sub/file"}
    write(root, b"old/sub/file")
    watcher.since(None)
    assert watcher.add(b"old") and watcher.add(b"old/sub")
    assert changes(watcher, lambda: write(root, b"old/sub/file")).paths == {b"old/sub/file"}


def test_a_move_that_add_meets_before_its_event_was_read(root: bytes, watcher: Watcher) -> None:
    write(root, b"old/file")
    assert watcher.add(b"old")
    token = watcher.since(None).token
    os.rename(root + b"/old", root + b"/new")
    assert watcher.add(b"new")
    write(root, b"old/file")
    assert watcher.add(b"old")
    found = watcher.since(token)
    assert found.paths >= {b"old", b"new"} and not found.lost
    for directory in (b"old", b"new"):
        # A reported directory stands for all below it; the scanner adds it again.
        assert watcher.add(directory)
    write(root, b"old/file")
    write(root, b"new/file")
    assert watcher.since(found.token).paths == {b"old/file", b"new/file"}


def test_two_directories_that_trade_places(root: bytes, watcher: Watcher) -> None:
    write(root, b"a/inner/of-a")
    write(root, b"b/inner/of-b")
    both = [b"a", b"b", b"a/inner", b"b/inner"]
    assert all(map(watcher.add, both))
    assert changes(watcher, lambda: exchange(root + b"/a", root + b"/b")).paths == {b"a", b"b"}
    assert all(map(watcher.add, both))
    assert changes(watcher, lambda: write(root, b"a/inner/x")).paths == {b"a/inner/x"}
    assert changes(watcher, lambda: write(root, b"b/inner/x")).paths == {b"b/inner/x"}


def test_directories_that_leave_and_arrive(root: bytes, watcher: Watcher) -> None:
    outside = os.path.dirname(root) + b"/outside"
    write(root, b"d/sub/file")
    assert watcher.add(b"d") and watcher.add(b"d/sub")
    assert changes(watcher, lambda: os.rename(root + b"/d", outside)).paths == {b"d"}
    assert changes(watcher, lambda: write(outside, b"sub/file")).paths == frozenset()
    assert changes(watcher, lambda: os.rename(outside, root + b"/e")).paths == {b"e"}
    assert changes(watcher, lambda: shutil.rmtree(root + b"/e")).paths == {b"e"}


def test_a_directory_made_anew_is_watched_anew(root: bytes, watcher: Watcher) -> None:
    write(root, b"d/sub/file")
    assert watcher.add(b"d") and watcher.add(b"d/sub")

    def replace() -> None:
        shutil.rmtree(root + b"/d")
        write(root, b"d/sub/file")

    assert b"d" in changes(watcher, replace).paths
    assert watcher.add(b"d") and watcher.add(b"d/sub")
    assert changes(watcher, lambda: write(root, b"d/sub/file")).paths == {b"d/sub/file"}


def test_a_move_is_seen_although_the_parent_is_not_watched(root: bytes, watcher: Watcher) -> None:
    write(root, b"a/b/file")
    assert watcher.add(b"a/b")
    found = changes(watcher, lambda: os.rename(root + b"/a/b", root + b"/a/c"))
    assert found.paths == {b"a/b"} and not found.lost
    assert changes(watcher, lambda: write(root, b"a/c/file")).paths == frozenset()


def test_a_whole_forest_that_moves_loses_nothing(root: bytes, watcher: Watcher) -> None:
    directories = [b"top"] + [b"top/%d" % n for n in range(2500)]
    for directory in directories:
        os.mkdir(root + b"/" + directory)
        assert watcher.add(directory)
    found = changes(watcher, lambda: os.rename(root + b"/top", root + b"/new"))
    assert found.paths == {b"top", b"new"}
    found = watcher.since(found.token)
    assert not found.lost and not found.paths


# Loss


def test_tokens_that_mean_nothing_here_are_lost(root: bytes, watcher: Watcher) -> None:
    token = watcher.since(None).token
    instance, _, number = token.partition(":")
    with Watcher(root) as other:
        other.add(b"")
        assert other.instance != watcher.instance
        foreign = other.since(None).token
    for bad in (None, "", ":", "0", foreign, f"{instance}:", f"{instance}:x", f"{instance}:-1"):
        assert watcher.since(bad).lost
    for bad in (f"{instance}:{int(number) + 1}", f"{instance}:{'9' * 5000}", f"{instance}:²"):
        assert watcher.since(bad).lost
    assert not watcher.since(token).lost


def test_more_paths_than_are_remembered_make_old_tokens_lost(root: bytes) -> None:
    with Watcher(root, max_paths=10) as watcher:
        watcher.add(b"")
        tokens = [watcher.since(None).token]
        for n in range(30):
            write(root, b"%d" % n)
            tokens.append(watcher.since(tokens[-1]).token)
        answers = [watcher.since(token) for token in tokens]
        assert answers[0].lost and not answers[-1].lost
        for n, answer in enumerate(answers):
            assert answer.lost or answer.paths == {b"%d" % m for m in range(n, 30)}
        assert sum(not answer.lost for answer in answers) > 5


def test_a_queue_that_overflows_is_a_loss_and_then_over(root: bytes, watcher: Watcher) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 200_000:
        pytest.skip("too long a queue to fill")
    for name in (b"a", b"b", b"dir/file"):
        write(root, name)
    assert watcher.add(b"dir")
    before = watcher.since(None).token
    for n in range(limit // 2 + 100):
        os.chmod(root + b"/a", 0o600 + n % 2)
        os.chmod(root + b"/b", 0o600 + n % 2)
    os.rename(root + b"/dir", root + b"/moved")  # its event is not to be had
    found = watcher.since(before)
    assert found.lost
    assert watcher.since(before).lost, "for every token from before"
    assert watcher.add(b"") and watcher.add(b"moved")
    assert watcher.since(before).lost
    assert watcher.since(found.token) == Changes(frozenset(), False, found.token)
    write(root, b"moved/file")
    assert watcher.since(found.token).paths == {b"moved/file"}


@pytest.mark.parametrize("moved", ["root", "parent", "deleted"])
def test_a_root_that_moves_is_a_loss_until_it_is_watched_again(project: Path, moved: str) -> None:
    root = os.fsencode(project) + b"/parent/root"
    write(root, b"sub/file")
    with Watcher(root) as watcher:
        assert watcher.add(b"") and watcher.add(b"sub")
        before = watcher.since(None).token
        if moved == "root":
            os.rename(root, root + b"-elsewhere")
        elif moved == "parent":
            os.rename(project / "parent", project / "elsewhere")
        else:
            shutil.rmtree(root)
        found = watcher.since(before)
        assert found.lost
        assert watcher.since(found.token).lost, "nobody watches the root now"
        assert not watcher.add(b"")
        write(root, b"sub/file")
        found = watcher.since(None)
        assert watcher.add(b"") and watcher.add(b"sub")
        write(root, b"sub/file")
        assert watcher.since(before).lost
        assert watcher.since(found.token) == Changes(
            frozenset({b"sub/file"}), False, watcher.since(None).token
        )


def test_a_root_replaced_behind_our_back_is_noticed_by_add(project: Path) -> None:
    root = os.fsencode(project) + b"/parent/root"
    write(root, b"file")
    with Watcher(root) as watcher:
        watcher.add(b"")
        before = watcher.since(None).token
        os.rename(project / "parent", project / "elsewhere")
        write(root, b"file")
        assert watcher.add(b"")
        found = watcher.since(before)
        assert found.lost
        write(root, b"file")
        assert watcher.since(found.token).paths == {b"file"}


def test_a_directory_too_deep_for_the_kernel_is_a_loss_while_it_is_there(
    root: bytes, watcher: Watcher
) -> None:
    deep = b"/".join([b"d" * 250] * 17)
    token = watcher.since(None).token
    assert not watcher.add(deep)
    for _ in range(2):
        found = watcher.since(token)
        assert found.lost
        token = found.token
    watcher.forget(b"d" * 250)
    assert not watcher.since(token).lost


LIMIT_OF_WATCHES = """
import os, sys
from mulligan.worktree.watch.inotify import Watcher
with open("/proc/sys/user/max_inotify_watches", "w") as file:
    file.write("3")
root = os.fsencode(sys.argv[1])
for name in (b"a", b"b", b"c"):
    os.mkdir(root + b"/" + name)
with Watcher(root) as watcher:
    assert watcher.add(b"") and watcher.add(b"a") and watcher.add(b"b")
    early = watcher.since(None).token
    assert not watcher.add(b"c")
    found = watcher.since(early)
    assert found.lost
    found = watcher.since(found.token)
    assert found.lost, "as long as there is an unwatched directory"
    watcher.forget(b"b")
    assert watcher.add(b"c")
    assert watcher.since(found.token).paths == {b"c"}, "nobody saw what happened there"
    found = watcher.since(found.token)
    open(root + b"/c/file", "w").close()
    assert watcher.since(found.token).paths == {b"c/file"}
    assert not watcher.add(b"b")
    os.rmdir(root + b"/b")
    assert watcher.since(found.token).paths == {b"b", b"c/file"}, "gone, so no longer missed"
"""

UNMOUNT = """
import os, subprocess, sys
from mulligan.worktree.watch.inotify import Watcher
root = os.fsencode(sys.argv[1])
os.mkdir(root + b"/mount")
subprocess.run(["mount", "-t", "tmpfs", "none", root + b"/mount"], check=True)
os.mkdir(root + b"/mount/sub")
with Watcher(root) as watcher:
    assert watcher.add(b"") and watcher.add(b"mount") and watcher.add(b"mount/sub")
    token = watcher.since(None).token
    assert not watcher.since(token).lost
    subprocess.run(["umount", root + b"/mount"], check=True)
    found = watcher.since(token)
    assert found.lost
    assert watcher.add(b"") and watcher.add(b"mount")
    open(root + b"/mount/file", "w").close()
    assert watcher.since(found.token).paths == {b"mount/file"}
"""

MOUNT_OVER = """
import os, subprocess, sys
from mulligan.worktree.watch.inotify import Watcher
root = os.fsencode(sys.argv[1])
os.makedirs(root + b"/a/sub")
with Watcher(root) as watcher:
    assert watcher.add(b"") and watcher.add(b"a") and watcher.add(b"a/sub")
    token = watcher.since(None).token
    subprocess.run(["mount", "-t", "tmpfs", "none", root + b"/a"], check=True)
    assert watcher.add(b"a")
    found = watcher.since(token)
    assert found.paths == {b"a"} and not found.lost
    open(root + b"/a/file", "w").close()
    assert watcher.since(found.token).paths == {b"a/file"}
"""

BIND_MOUNT = """
import os, subprocess, sys
from mulligan.worktree.watch.inotify import Watcher
root = os.fsencode(sys.argv[1])
os.mkdir(root + b"/a")
os.mkdir(root + b"/b")
subprocess.run(["mount", "--bind", root + b"/a", root + b"/b"], check=True)
with Watcher(root) as watcher:
    assert watcher.add(b"")
    token = watcher.since(None).token
    for _ in range(3):
        assert watcher.add(b"a") and watcher.add(b"b")
        open(root + b"/a/file", "w").close()
        found = watcher.since(token)
        for directory in (b"a", b"b"):
            assert {directory, directory + b"/file"} & found.paths, found
        token = found.token
"""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(LIMIT_OF_WATCHES, id="the limit of watches is a loss while it lasts"),
        pytest.param(UNMOUNT, id="an unmount is a loss"),
        pytest.param(MOUNT_OVER, id="a mount over a directory is reported by the next full scan"),
        pytest.param(BIND_MOUNT, id="one directory in two places is reported in both"),
    ],
)
def test_in_a_namespace_of_its_own(root: bytes, script: str) -> None:
    unshare = ["unshare", "--user", "--map-root-user", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("no namespaces here")
    result = subprocess.run(
        [*unshare, sys.executable, "-c", script, os.fsdecode(root)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_a_closed_watcher_promises_nothing(root: bytes) -> None:
    watcher = Watcher(root)
    watcher.add(b"")
    token = watcher.since(None).token
    assert not watcher.broken and watcher.fileno() >= 0
    watcher.close()
    watcher.close()
    assert watcher.since(token).lost
    assert not watcher.add(b"")
    assert not watcher.wait(None)
    watcher.forget(b"")
    assert watcher.broken and watcher.fileno() == -1


# Waiting


def test_wait_returns_when_something_happens_and_not_before(root: bytes, watcher: Watcher) -> None:
    token = watcher.since(None).token
    assert not watcher.wait(0.01)
    os.mkdir(root + b"/.git")
    assert not watcher.wait(0.01), "git's own work is nothing to wake up for"
    timer = threading.Timer(0.05, write, (root, b"file"))
    timer.start()
    assert watcher.wait(None)
    timer.join()
    assert watcher.since(token).paths == {b"file"}
    assert not watcher.wait(0)


def test_wait_hears_of_what_another_reader_took_from_the_queue(
    root: bytes, watcher: Watcher
) -> None:
    token = watcher.since(None).token
    write(root, b"file")
    assert watcher.peek(token).paths == {b"file"}
    assert watcher.wait(0)
    assert not watcher.wait(0)


def test_close_ends_a_wait(root: bytes) -> None:
    watcher = Watcher(root)
    watcher.add(b"")
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(watcher.wait(None)))
    thread.start()
    watcher.close()
    thread.join(30)
    assert answers == [False]


# All together


@pytest.mark.parametrize("seed", range(60))
def test_a_mirror_that_follows_events_ends_up_equal_to_the_disk(root: bytes, seed: int) -> None:
    random_ = random.Random(seed)
    mischief = Mischief(root, random_)
    with Watcher(root) as watcher:
        mirror = Mirror(root, watcher, meanwhile=mischief.now_and_then)
        for _ in range(12):
            for _ in range(random_.randrange(8)):
                mischief()
            mirror.update()
            if random_.random() < 0.1:
                watcher.peek(None)  # a prefetch
        mischief.pause = True
        mirror.update()
        assert mirror.picture == Mirror.of(root)
        assert mirror.full_looks < 3


def test_a_mirror_keeps_up_with_a_writer_in_another_thread(root: bytes) -> None:
    mischief = Mischief(root, random.Random(1))
    stop = threading.Event()

    def work() -> None:
        for _ in range(3000):
            mischief()
        stop.set()

    with Watcher(root) as watcher:
        mirror = Mirror(root, watcher)
        thread = threading.Thread(target=work)
        thread.start()
        while not stop.is_set():
            mirror.update()
        thread.join()
        mirror.update()
        assert mirror.picture == Mirror.of(root)


class Mirror:
    """A copy of a tree, path to contents, updated where the watcher says."""

    def __init__(
        self, root: bytes, watcher: Watcher, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        self.root = root
        self.watcher = watcher
        self.meanwhile = meanwhile
        self.picture: dict[bytes, object] = {}
        self.full_looks = 0
        self.token: str | None = None

    @staticmethod
    def of(root: bytes) -> dict[bytes, object]:
        with Watcher(root) as watcher:
            mirror = Mirror(root, watcher)
            mirror.update()
            return mirror.picture

    def update(self) -> None:
        found = self.watcher.since(self.token)
        self.full_looks += found.lost
        for path in {b""} if found.lost else found.paths:
            for old in list(self.picture):
                if old == path or not path or old.startswith(path + b"/"):
                    del self.picture[old]
            self.look(path)
        self.token = found.token

    def look(self, path: bytes) -> None:
        parent = os.path.dirname(path)
        while parent:
            if os.path.islink(self.root + b"/" + parent):
                return
            parent = os.path.dirname(parent)
        full = self.root + b"/" + path
        try:
            status = os.lstat(full)
            if stat.S_ISLNK(status.st_mode):
                self.picture[path] = os.readlink(full)
            elif stat.S_ISREG(status.st_mode):
                self.meanwhile()
                with open(full, "rb") as file:
                    self.picture[path] = (status.st_mode, file.read())
            else:
                self.picture[path] = status.st_mode
                self.meanwhile()
                self.watcher.add(path)
                self.meanwhile()
                for name in os.listdir(full):
                    self.look(path + b"/" + name if path else name)
        except OSError:
            return  # gone or replaced meanwhile: an event will tell


class Mischief:
    """Make random changes in a tree."""

    names = (b"a", b"b", b"\xff\n")

    def __init__(self, root: bytes, random_: random.Random) -> None:
        self.root = root
        self.random = random_
        self.pause = False

    def now_and_then(self) -> None:
        if not self.pause and self.random.random() < 0.1:
            self()

    def place(self) -> bytes:
        depth = self.random.choice((1, 1, 2, 2, 3))
        return self.root + b"/" + b"/".join(self.random.choices(self.names, k=depth))

    def __call__(self) -> None:
        path, other = self.place(), self.place()
        outside = self.root + b"-outside"
        act = self.random.choice(
            [
                lambda: write(*os.path.split(path), self.random.randbytes(3)),
                lambda: write(path, b"file", self.random.randbytes(3)),
                lambda: os.makedirs(path),
                lambda: os.rename(path, other),
                lambda: os.rename(path, other),
                lambda: exchange(path, other),
                lambda: (os.rename(path, outside), os.rename(outside, other)),
                lambda: (os.mkdir(outside), os.rename(path, outside + b"/away")),
                lambda: os.chmod(path, self.random.choice((0o700, 0o750)), follow_symlinks=True),
                lambda: os.symlink(self.random.choice(self.names), path),
                lambda: os.unlink(path),
                lambda: shutil.rmtree(path),
            ]
        )
        try:
            act()
        except OSError:
            pass  # there is nothing there, or something that is in the way
        shutil.rmtree(outside, ignore_errors=True)


def exchange(one: bytes, other: bytes) -> None:
    """Exchange two names atomically."""
    libc = ctypes.CDLL(None, use_errno=True)
    at_cwd, rename_exchange = -100, 2
    if libc.renameat2(at_cwd, one, at_cwd, other, rename_exchange):
        raise OSError(ctypes.get_errno(), "renameat2")


# The socket


@pytest.fixture
def address(project: Path) -> str:
    return str(project / "watch.sock")


@pytest.fixture
def server(watcher: Watcher, address: str) -> Iterator[remote.Server]:
    with remote.serve(watcher, address) as server:
        yield server


def connected(address: str) -> remote.RemoteWatcher:
    client = remote.connect(address, timeout=30)
    assert client is not None
    return client


def ask(address: str, request: bytes) -> bytes:
    """Return all that the server answers to these bytes until it closes."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(address)
        try:
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = b""
        try:
            while data := client.recv(1 << 16):
                answer += data
        except ConnectionResetError:
            pass
        return answer


@pytest.mark.usefixtures("server")
def test_a_remote_watcher_tells_what_the_watcher_knows(root: bytes, address: str) -> None:
    write(root, b"sub/\xff\n")
    with connected(address) as client:
        token = client.since(None).token
        assert client.add(b"sub") and client.add(b"sub")
        assert not client.add(b"missing")
        write(root, b"sub/\xff\n", b"changed")
        found = client.since(token)
        assert found.paths == {b"sub/\xff\n"} and not found.lost
        assert client.since(found.token) == Changes(frozenset(), False, found.token)
        assert client.since("other:1").lost
        assert not client.broken


@pytest.mark.usefixtures("server")
def test_a_remote_mirror_ends_up_equal_to_the_disk(root: bytes, address: str) -> None:
    mischief = Mischief(root, random.Random(3))
    with connected(address) as client:
        mirror = Mirror(root, client, meanwhile=mischief.now_and_then)  # type: ignore[arg-type]
        for _ in range(20):
            for _ in range(10):
                mischief()
            mirror.update()
        mischief.pause = True
        mirror.update()
        assert mirror.picture == Mirror.of(root)
        assert mirror.full_looks < 3


@pytest.mark.usefixtures("server")
def test_many_directories_go_in_requests_that_the_server_takes(root: bytes, address: str) -> None:
    directories = [b"%d" % n + b"x" * 200 for n in range(3000)]
    for directory in directories:
        os.mkdir(root + b"/" + directory)
    with connected(address) as client:
        token = client.since(None).token
        assert client.add_many(directories)
        assert not client.add_many([b"missing", *directories[:3]])
        write(root, directories[-1] + b"/file")
        assert client.since(token).paths == {directories[-1] + b"/file"}


@pytest.mark.usefixtures("server")
def test_several_clients_at_once_each_get_everything(root: bytes, address: str) -> None:
    found: list[frozenset[bytes]] = []
    ready = threading.Barrier(9, timeout=30)

    def work() -> None:
        with connected(address) as client:
            token = client.since(None).token
            ready.wait()
            ready.wait()
            found.append(client.since(token).paths)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    ready.wait()
    for n in range(50):
        write(root, b"%d" % n)
    ready.wait()
    for thread in threads:
        thread.join(30)
    assert found == [frozenset(b"%d" % n for n in range(50))] * 8


@pytest.mark.usefixtures("server")
def test_a_silent_client_is_hung_up_on_and_keeps_nobody_waiting(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as silent, connected(address) as client:
        silent.settimeout(30)
        silent.connect(address)
        token = client.since(None).token
        assert not client.since(token).lost
        assert silent.recv(1) == b""
        # The patient one was hung up on as well, and does not notice.
        assert not client.since(token).lost
        assert client.add(b"") and not client.broken


@pytest.mark.usefixtures("server")
def test_more_clients_than_are_welcome_are_turned_away(address: str) -> None:
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(remote.MAX_CONNECTIONS)]
    for one in crowd:
        one.settimeout(30)
        one.connect(address)
    assert ask(address, b"{}\n") == b""
    for one in crowd:
        one.close()
    while not ask(address, b"{}\n"):  # until the server has seen that they are gone
        pass


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    "request_",
    [
        b"\n",
        b"hello\n",
        b"\xff\xfe\n",
        b"[]\n",
        b'{"since": 5}\n',
        b'{"add": "61"}\n',
        b'{"add": ["not hex"]}\n',
        b'{"add": ["2e2e"]}\n',
        b'{"add": ["2f657463"]}\n',
        b'{"add": ["' + b"61" * (1 << 20) + b'"]}\n',
        b"x" * (3 << 20),
        b"[" * 100_000 + b"\n",
    ],
    ids=range(12),
)
def test_garbage_gets_an_error_and_harms_nobody(address: str, request_: bytes) -> None:
    answer = ask(address, request_)
    assert not answer or json.loads(answer)["error"]
    with connected(address) as client:
        token = client.since(None).token
        assert not client.since(token).lost


@pytest.mark.usefixtures("server")
def test_several_requests_in_one_breath_are_answered_in_order(address: str) -> None:
    answers = ask(address, b'{"since":null,"add":[""]}\n{"add":["61"]}\n{"since":"x","new":1}\n')
    first, second, third = map(json.loads, answers.splitlines())
    assert second == {"refused": ["61"]}
    for answer in (first, third):
        assert answer["lost"] and answer["token"] and answer["paths"] == []


def test_the_socket_is_for_the_user_alone_and_goes_with_the_server(
    watcher: Watcher, address: str
) -> None:
    old = os.umask(0)
    try:
        server = remote.serve(watcher, address)
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(address).st_mode) == 0o600
    client = connected(address)
    token = client.since(None).token
    server.close()
    server.close()
    assert not os.path.exists(address)
    assert client.since(token).lost and client.broken
    assert not client.add(b"") and not client.add_many([b""])
    assert remote.connect(address) is None
    assert not watcher.since(token).lost, "the watcher itself goes on"


@pytest.mark.usefixtures("server")
def test_a_second_server_is_refused_while_the_first_lives(watcher: Watcher, address: str) -> None:
    with pytest.raises(Busy):
        remote.serve(watcher, address)
    with connected(address) as client:
        assert client.add(b"")


def test_a_stale_socket_is_replaced(watcher: Watcher, address: str) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(address)
        dead.listen()
    assert remote.connect(address) is None
    with remote.serve(watcher, address), connected(address) as client:
        assert client.add(b"")


def test_of_many_servers_that_start_at_once_one_wins(watcher: Watcher, address: str) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(address)
    servers: list[remote.Server] = []
    refused: list[Busy] = []

    def start() -> None:
        try:
            servers.append(remote.serve(watcher, address))
        except Busy as error:
            refused.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(servers) == 1 and len(refused) == 7
    with connected(address) as client:
        assert client.add(b"")
    servers[0].close()


def test_a_file_that_is_no_socket_is_left_alone(watcher: Watcher, address: str) -> None:
    Path(address).write_text("mine")
    with pytest.raises(UsageError):
        remote.serve(watcher, address)
    assert Path(address).read_text() == "mine"
    assert remote.connect(address) is None


def test_a_server_does_not_remove_the_socket_of_its_successor(
    watcher: Watcher, address: str
) -> None:
    first = remote.serve(watcher, address)
    os.unlink(address)
    with remote.serve(watcher, address):
        first.close()
        with connected(address) as client:
            assert client.add(b"")


def test_a_path_too_long_for_a_socket_works_all_the_same(watcher: Watcher, project: Path) -> None:
    place = project / ("long" * 40) / ("longer" * 30)
    place.mkdir(parents=True)
    address = str(place / "watch.sock")
    assert remote.connect(address) is None
    with remote.serve(watcher, address):
        with connected(address) as client:
            assert client.add(b"")
        with pytest.raises(Busy):
            remote.serve(watcher, address)
    assert list(place.iterdir()) == []
    with pytest.raises(Unsupported, match="shorter"):
        remote.serve(watcher, str(place / ("name" * 40)))


def test_nobody_there_and_nobody_answering_both_have_an_end(address: str) -> None:
    assert remote.connect(address + "/missing/place") is None
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(address)
        mute.listen()
        client = remote.connect(address, timeout=0.05)
        assert client is not None
        assert not client.add(b"")
        assert client.broken
        assert client.since("x:1") == Changes(frozenset(), True, "")
        client.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"\n",
        b"nonsense\n",
        b"",
        b"[]\n",
        b"{}\n",
        b'{"error":"no"}\n',
        b'{"refused":[],"token":"x:1","lost":false,"paths":["z"]}\n',
        b'{"refused":[],"token":"x:1","lost":false,"paths":[5]}\n',
        b'{"refused":[],"token":"x:1","paths":[]}\n',
        b"[" * 100_000 + b"\n",
    ],
    ids=range(10),
)
def test_a_server_that_talks_nonsense_is_not_believed(address: str, answer: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as liar:
        liar.bind(address)
        liar.listen()

        def talk() -> None:
            for _ in range(2):
                try:
                    connection, _ = liar.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1000)
                    connection.sendall(answer)

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        with connected(address) as client:
            assert client.since("x:1") == Changes(frozenset(), True, "")
            assert client.broken
        liar.shutdown(socket.SHUT_RDWR)
        thread.join(30)


def test_two_processes_talk(root: bytes, address: str) -> None:
    script = (
        "import sys\n"
        "from mulligan.worktree.watch.remote import connect\n"
        "client = connect(sys.argv[1], 30)\n"
        "print('ctypes' in sys.modules, client.since(sys.argv[2]).paths)\n"
    )
    with Watcher(root) as watcher, remote.serve(watcher, address):
        watcher.add(b"")
        token = watcher.since(None).token
        write(root, b"file")
        answer = subprocess.run(
            [sys.executable, "-c", script, address, token],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    assert answer.stdout == "False frozenset({b'file'})\n"
