"""Restore: each kind of change, applied once or twice, and no byte lost on the way.

The moments between two system calls are reached by hooks: a test's "user" writes at exactly the
moment when `apply` is about to call, or has just called, what is hooked.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.tree import DIRECTORY, EMPTY_ID, Change, Entry, file_entry, link_entry
from mulligan.errors import Corrupt, OutOfSpace
from mulligan.worktree.fs.rename import NoExchange
from mulligan.worktree.restore import apply as applying
from mulligan.worktree.restore import staging_recovery
from mulligan.worktree.restore.apply import Applied, apply
from mulligan.worktree.restore.readback import verify
from mulligan.worktree.restore.staging_recovery import rescue
from mulligan.worktree.restore.unnamed_files import MIN_FILES_FOR_THREAD

TAG = "7"
STAGING = f".mulligan-tmp-{TAG}"
Hook = Callable[[], None]


class Contents:
    """The store as `apply` sees it: contents by id."""

    def __init__(self) -> None:
        self.known: dict[bytes, bytes] = {}
        self.broken: set[bytes] = set()

    def file(self, content: bytes, mode: int = 0o644) -> Entry:
        id = sha256(content).digest()
        self.known[id] = content
        return file_entry(b"", mode, len(content), id)

    def link(self, target: bytes) -> Entry:
        id = sha256(target).digest()
        self.known[id] = target
        return link_entry(b"", len(target), id)

    def folder(self, mode: int = 0o755) -> Entry:
        return Entry(DIRECTORY, mode, 0, 0, EMPTY_ID, b"")

    def read(self, id: bytes) -> Iterator[bytes]:
        content = self.known[id]
        half = len(content) // 2
        yield content[:half]
        if id in self.broken:
            raise Corrupt("The object is damaged.")
        yield content[half:]


@pytest.fixture
def store() -> Contents:
    return Contents()


def run(project: Path, store: Contents, *changes: Change) -> Applied:
    done = apply(os.fsencode(project), TAG, changes, store.read)
    done.wait_durable()
    return done


def picture(project: Path) -> dict[str, object]:
    """Return all below a directory: file contents, link targets, directory modes."""
    found: dict[str, object] = {}
    for path in sorted(project.rglob("*")):
        name = str(path.relative_to(project))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("folder", stat.S_IMODE(path.stat().st_mode))
        elif path.is_file():
            found[name] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        else:
            found[name] = "special"
    return found


def make(path: Path, entry: Entry | None, store: Contents) -> None:
    if entry is None:
        return
    if entry.is_directory:
        path.mkdir()
        path.chmod(entry.mode)
    elif entry.kind == b"l":
        path.symlink_to(os.fsdecode(store.known[entry.id]))
    else:
        path.write_bytes(store.known[entry.id])
        path.chmod(entry.mode)


STATES: dict[str, Callable[[Contents], Entry | None]] = {
    "nothing": lambda store: None,
    "file": lambda store: store.file(b"one"),
    "other file": lambda store: store.file(b"two, and longer"),
    "executable": lambda store: store.file(b"one", 0o755),
    "private": lambda store: store.file(b"two, and longer", 0o600),
    "setuid": lambda store: store.file(b"three", 0o4755),
    "empty": lambda store: store.file(b""),
    "link": lambda store: store.link(b"target"),
    "broken link": lambda store: store.link(b"no/such/thing"),
    "folder": lambda store: store.folder(),
    "sticky folder": lambda store: store.folder(0o1777),
    "closed folder": lambda store: store.folder(0o555),
}


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_every_kind_of_change_arrives_and_may_be_applied_again(
    project: Path, tmp_path: Path, store: Contents, before: str, after: str
) -> None:
    old, new = STATES[before](store), STATES[after](store)
    make(project / "x", old, store)
    make(tmp_path / "x", new, store)
    (project / "beside").write_text("untouched")
    (tmp_path / "beside").write_text("untouched")
    change = Change(b"x", old, new)
    for _ in range(2):
        done = run(project, store, change)
        assert done.skipped == {}
        assert done.done == [change]
        assert picture(project) == picture(tmp_path)
        assert verify(os.fsencode(project), [change]) == []


def test_a_tree_becomes_another_in_one_go(project: Path, store: Contents) -> None:
    (project / "a").mkdir()
    (project / "a/f").write_bytes(b"1")
    (project / "b").write_bytes(b"2")
    done = run(
        project,
        store,
        Change(b"a", store.folder(), store.file(b"now a file")),
        Change(b"a/f", store.file(b"1"), None),
        Change(b"b", store.file(b"2"), store.folder(0o555)),
        Change(b"b/c", None, store.folder(0o500)),
        Change(b"b/c/g", None, store.file(b"deep", 0o400)),
        Change(b"b/l", None, store.link(b"c/g")),
    )
    assert done.skipped == {}
    assert picture(project) == {
        "a": (b"now a file", 0o644),
        "b": ("folder", 0o555),
        "b/c": ("folder", 0o500),
        "b/c/g": (b"deep", 0o400),
        "b/l": ("link", "c/g"),
    }


def test_many_files_are_staged_and_placed(project: Path, store: Contents) -> None:
    changes = [Change(b"f%d" % number, None, store.file(b"%d" % number)) for number in range(200)]
    seen: list[tuple[int, int]] = []
    done = apply(os.fsencode(project), TAG, changes, store.read, lambda *each: seen.append(each))
    assert done.done == changes
    assert seen[-1] == (200, 200)
    assert len(picture(project)) == 200


def test_a_folder_with_files_that_are_out_of_scope_stays(project: Path, store: Contents) -> None:
    (project / "d").mkdir()
    (project / "d/f").write_bytes(b"1")
    (project / "d/ignored.log").write_bytes(b"mine")
    done = run(
        project,
        store,
        Change(b"d", store.folder(), None),
        Change(b"d/f", store.file(b"1"), None),
    )
    assert list(done.skipped) == [b"d"]
    assert picture(project) == {"d": ("folder", 0o755), "d/ignored.log": (b"mine", 0o644)}


def test_a_folder_with_files_that_are_out_of_scope_does_not_become_a_file(
    project: Path, store: Contents
) -> None:
    (project / "d").mkdir()
    (project / "d/ignored.log").write_bytes(b"mine")
    done = run(project, store, Change(b"d", store.folder(), store.file(b"file")))
    assert list(done.skipped) == [b"d"]
    assert picture(project) == {"d": ("folder", 0o755), "d/ignored.log": (b"mine", 0o644)}


def theirs_file(path: Path) -> None:
    path.write_bytes(b"the user's")


def theirs_same_size(path: Path) -> None:
    path.write_bytes(b"ONE")


def theirs_folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_bytes(b"the user's")


def theirs_link(path: Path) -> None:
    path.symlink_to("elsewhere")


def theirs_fifo(path: Path) -> None:
    os.mkfifo(path)


THEIRS = [theirs_file, theirs_same_size, theirs_folder, theirs_link, theirs_fifo]


@pytest.mark.parametrize("theirs", THEIRS)
@pytest.mark.parametrize("after", ["nothing", "other file", "link", "folder"])
@pytest.mark.parametrize("before", ["nothing", "file"])
def test_what_matches_neither_side_is_left_alone_and_named(
    project: Path,
    store: Contents,
    theirs: Callable[[Path], None],
    after: str,
    before: str,
) -> None:
    old, new = STATES[before](store), STATES[after](store)
    if old is None and (new is None or (new.is_directory and theirs is theirs_folder)):
        return
    if old is not None and new is not None and new.is_directory and theirs is theirs_folder:
        return
    theirs(project / "x")
    expected = picture(project)
    done = run(project, store, Change(b"x", old, new))
    assert list(done.skipped) == [b"x"]
    assert done.skipped[b"x"]
    assert done.done == []
    assert picture(project) == expected


def test_one_path_that_is_left_alone_does_not_keep_the_others_from_changing(
    project: Path, store: Contents
) -> None:
    for name in "abc":
        (project / name).write_bytes(b"one")
    (project / "b").write_bytes(b"the user's")
    one, two = store.file(b"one"), store.file(b"two")
    done = run(project, store, *[Change(name, one, two) for name in (b"a", b"b", b"c")])
    assert list(done.skipped) == [b"b"]
    assert [path.read_bytes() for path in sorted(project.iterdir())] == [
        b"two",
        b"the user's",
        b"two",
    ]


def test_a_file_deleted_in_the_meantime_is_brought_to_what_is_wanted(
    project: Path, store: Contents
) -> None:
    done = run(
        project,
        store,
        Change(b"gone", store.file(b"one"), None),
        Change(b"x", store.file(b"one"), store.file(b"two")),
    )
    assert done.skipped == {}
    assert picture(project) == {"x": (b"two", 0o644)}


def test_a_path_below_what_is_no_folder_any_more_is_left_alone(
    project: Path, store: Contents
) -> None:
    (project / "d").write_bytes(b"a file now")
    done = run(
        project,
        store,
        Change(b"d/new", None, store.file(b"1")),
        Change(b"d/old", store.file(b"1"), None),
        Change(b"d/same", store.file(b"1"), store.file(b"2")),
        Change(b"d/mode", store.file(b"1"), store.file(b"1", 0o755)),
    )
    # Whether `d/old` counts as removed or as left alone does not matter: it is not there.
    assert set(done.skipped) - {b"d/old"} == {b"d/new", b"d/same", b"d/mode"}
    assert not done.failed
    assert picture(project) == {"d": (b"a file now", 0o644)}


def test_a_damaged_content_is_named_and_the_rest_is_done(project: Path, store: Contents) -> None:
    (project / "x").write_bytes(b"one")
    bad = store.file(b"a content that cannot be read to its end")
    store.broken.add(bad.id)
    bad_link = store.link(b"a target that cannot be read to its end")
    store.broken.add(bad_link.id)
    done = run(
        project,
        store,
        Change(b"link", None, bad_link),
        Change(b"new", None, bad),
        Change(b"x", store.file(b"one"), bad),
        Change(b"y", None, store.file(b"fine")),
    )
    assert set(done.skipped) == {b"link", b"new", b"x"} == done.failed
    assert "damaged" in done.skipped[b"x"]
    assert picture(project) == {"x": (b"one", 0o644), "y": (b"fine", 0o644)}


@pytest.mark.parametrize("count", [1, 12])
def test_nothing_is_changed_when_the_new_contents_do_not_fit(
    project: Path, store: Contents, count: int
) -> None:
    (project / "old").write_bytes(b"one")
    (project / "x0").write_bytes(b"one")
    full = store.file(b"too much")

    def read(id: bytes) -> Iterator[bytes]:
        if id == full.id:
            raise OSError(errno.ENOSPC, "No space left on device")
        return store.read(id)

    changes = [
        Change(b"old", store.file(b"one"), None),
        Change(b"x0", store.file(b"one"), store.file(b"two")),
        *[Change(b"y%d" % number, None, full) for number in range(count)],
    ]
    with pytest.raises(OutOfSpace):
        apply(os.fsencode(project), TAG, changes, read)
    assert picture(project) == {"old": (b"one", 0o644), "x0": (b"one", 0o644)}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owner_and_mode_of_a_replaced_file_stay(project: Path, store: Contents) -> None:
    path = project / "x"
    path.write_bytes(b"one")
    os.chown(path, 65534, 65534)
    path.chmod(0o4755)
    done = run(project, store, Change(b"x", store.file(b"one", 0o4755), store.file(b"two", 0o4755)))
    assert done.skipped == {}
    status = path.stat()
    assert (status.st_uid, status.st_gid) == (65534, 65534)
    assert stat.S_IMODE(status.st_mode) == 0o4755


def test_the_other_name_of_a_hard_link_is_not_changed(
    project: Path, tmp_path: Path, store: Contents
) -> None:
    (project / "x").write_bytes(b"one")
    os.link(project / "x", tmp_path / "outside")
    os.link(project / "x", project / "inside")
    run(project, store, Change(b"x", store.file(b"one"), store.file(b"two")))
    assert (project / "x").read_bytes() == b"two"
    assert (project / "inside").read_bytes() == b"one"
    assert (tmp_path / "outside").read_bytes() == b"one"


@pytest.mark.parametrize(
    "path", [b".git/hooks/post-commit", b".git/config", b"sub/.git/config", b".git"]
)
def test_nothing_is_ever_written_in_a_git_directory(
    project: Path, store: Contents, path: bytes
) -> None:
    for folder in (".git/hooks", "sub/.git"):
        (project / folder).mkdir(parents=True)
        (project / folder / "config").write_bytes(b"git's")
    (project / ".git/config").write_bytes(b"git's")
    expected = picture(project)
    try:
        done = run(
            project,
            store,
            Change(path, store.file(b"git's"), store.file(b"evil")),
            Change(path + b"x", None, store.file(b"evil"))
            if path != b".git"
            else Change(b".git/new", None, store.file(b"evil")),
            Change(b"sub/.git/config", store.file(b"git's"), None),
        )
    except Corrupt:
        pass
    else:
        assert path in done.skipped
    assert picture(project) == expected


class Hooked:
    """Run a user's action right before or after the n-th call of a function of apply."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def before(self, name: str, action: Hook, call: int = 1) -> None:
        self._hook(name, call, action, None)

    def after(self, name: str, action: Hook, call: int = 1) -> None:
        self._hook(name, call, None, action)

    def refuse_exchange(self) -> None:
        def refuse(*given: Any) -> None:
            raise NoExchange(errno.ENOSYS, "no exchange here")

        self._replace("exchange", refuse)

    def _hook(self, name: str, call: int, first: Hook | None, last: Hook | None) -> None:
        real = getattr(applying, name)
        calls = 0

        def hooked(*given: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == call and first is not None:
                first()
            result = real(*given)
            if calls == call and last is not None:
                last()
            return result

        self._replace(name, hooked)

    def _replace(self, name: str, function: Callable[..., Any]) -> None:
        for module in (applying, staging_recovery):
            if hasattr(module, name):
                self.monkeypatch.setattr(module, name, function)


@pytest.fixture
def hooked(monkeypatch: pytest.MonkeyPatch) -> Hooked:
    return Hooked(monkeypatch)


def all_bytes(project: Path) -> set[bytes]:
    """Return every content of the directory, staging directories included."""
    found = set()
    for folder, _folders, files in os.walk(project):
        for name in files:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                found.add(Path(path).read_bytes())
    return found


def in_place(path: Path, content: bytes) -> Hook:
    return lambda: path.write_bytes(content) and None


def with_the_same_times(path: Path, content: bytes) -> Hook:
    def write() -> None:
        status = path.stat()
        path.write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return write


def by_rename(path: Path, content: bytes) -> Hook:
    """Save as many editors do."""

    def save() -> None:
        beside = path.with_name("editor's own")
        beside.write_bytes(content)
        os.rename(beside, path)

    return save


def appended(path: Path, content: bytes) -> Hook:
    def append() -> None:
        with path.open("ab") as file:
            file.write(content)

    return append


SAVES = [in_place, with_the_same_times, by_rename]


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("moment", ["could_match", "exchange"])
@pytest.mark.parametrize("with_exchange", [True, False])
def test_a_save_between_comparison_and_replacement_wins(
    project: Path,
    store: Contents,
    hooked: Hooked,
    save: Callable[[Path, bytes], Hook],
    moment: str,
    with_exchange: bool,
) -> None:
    path = project / "x"
    path.write_bytes(b"one")
    if not with_exchange:
        hooked.refuse_exchange()
    if moment == "could_match":
        # The last stat before the exchange; the bytes are compared after it.
        hooked.after("could_match", save(path, b"USR"))
    else:
        hooked.before("exchange", save(path, b"USR"))
    done = run(project, store, Change(b"x", store.file(b"one"), store.file(b"two")))
    assert picture(project) == {"x": (b"USR", 0o644)}
    assert list(done.skipped) == [b"x"]


@pytest.mark.parametrize("save", [in_place, by_rename, appended])
@pytest.mark.parametrize("with_exchange", [True, False])
def test_a_save_right_after_the_replacement_wins(
    project: Path,
    store: Contents,
    hooked: Hooked,
    save: Callable[[Path, bytes], Hook],
    with_exchange: bool,
) -> None:
    path = project / "x"
    path.write_bytes(b"one")
    if with_exchange:
        hooked.after("exchange", save(path, b"USR"))
    else:
        hooked.refuse_exchange()
        hooked.after("move_if_free", save(path, b"USR"))
    change = Change(b"x", store.file(b"one"), store.file(b"two"))
    done = run(project, store, change)
    assert path.read_bytes().endswith(b"USR")
    assert [each.name for each in project.iterdir()] == ["x"]
    assert list(done.skipped) == [b"x"] or verify(os.fsencode(project), [change]) == [b"x"]


@pytest.mark.parametrize("second", SAVES)
def test_two_saves_around_the_exchange_are_both_kept(
    project: Path,
    store: Contents,
    hooked: Hooked,
    second: Callable[[Path, bytes], Hook],
) -> None:
    path = project / "x"
    path.write_bytes(b"one")
    hooked.before("exchange", in_place(path, b"first save"))
    hooked.after("exchange", second(path, b"second save"), call=1)
    done = run(project, store, Change(b"x", store.file(b"one"), store.file(b"two")))
    assert list(done.skipped) == [b"x"]
    assert {b"first save", b"second save"} <= all_bytes(project)


def test_bytes_that_could_not_be_put_back_are_not_hidden_in_a_staging_folder(
    project: Path, store: Contents, hooked: Hooked
) -> None:
    path = project / "x"
    path.write_bytes(b"one")
    hooked.before("exchange", in_place(path, b"first save"))
    hooked.after("exchange", by_rename(path, b"second save"))
    run(project, store, Change(b"x", store.file(b"one"), store.file(b"two")))
    assert not (project / STAGING).exists()
    visible = {each.read_bytes() for each in project.iterdir() if each.is_file()}
    assert {b"first save", b"second save"} <= visible


@pytest.mark.parametrize("save", SAVES)
def test_a_save_right_before_a_removal_wins(
    project: Path, store: Contents, hooked: Hooked, save: Callable[[Path, bytes], Hook]
) -> None:
    path = project / "x"
    path.write_bytes(b"one")
    hooked.after("could_match", save(path, b"USR"))
    done = run(project, store, Change(b"x", store.file(b"one"), None))
    assert list(done.skipped) == [b"x"]
    assert picture(project) == {"x": (b"USR", 0o644)}


def test_a_save_before_and_one_after_a_removal_are_both_kept(
    project: Path, store: Contents, hooked: Hooked
) -> None:
    path = project / "x"
    path.write_bytes(b"one")
    hooked.after("could_match", in_place(path, b"first save"))
    hooked.before("move_if_free", by_rename(path, b"second save"))
    done = run(project, store, Change(b"x", store.file(b"one"), None))
    assert list(done.skipped) == [b"x"]
    assert path.read_bytes() == b"second save"
    assert b"first save" in all_bytes(project)


@pytest.mark.parametrize("how", ["exchanged", "in two steps", "removed"])
def test_what_a_program_writes_to_a_file_that_it_holds_open_is_kept_while_others_are_changed(
    project: Path, store: Contents, hooked: Hooked, how: str
) -> None:
    """The file was compared and displaced; other changes follow."""
    one, two = store.file(b"one"), store.file(b"two")
    for name in ("a", "b"):
        (project / name).write_bytes(b"one")
    held = os.open(project / "a", os.O_WRONLY | os.O_APPEND)
    if how == "in two steps":
        hooked.refuse_exchange()
        hooked.before("move_if_free", lambda: os.write(held, b" and more") and None, call=2)
    else:
        # For `b`, when `a` is done with.
        hooked.before(
            "exchange", lambda: os.write(held, b" and more") and None, call=1 + (how != "removed")
        )
    after = None if how == "removed" else two
    done = run(project, store, Change(b"a", one, after), Change(b"b", one, two))
    os.close(held)
    assert b"one and more" in all_bytes(project)
    assert not (project / STAGING).exists()
    assert b"a" in done.skipped or done.rescued


@pytest.mark.parametrize("after", ["other file", "link"])
def test_a_file_created_right_before_a_new_one_is_placed_wins(
    project: Path, store: Contents, hooked: Hooked, after: str
) -> None:
    path = project / "x"
    hooked.before("move_if_free", in_place(path, b"USR"))
    done = run(project, store, Change(b"x", None, STATES[after](store)))
    assert list(done.skipped) == [b"x"]
    assert picture(project) == {"x": (b"USR", 0o644)}


def test_a_file_saved_while_its_name_is_free_wins_where_nothing_can_be_exchanged(
    project: Path, store: Contents, hooked: Hooked
) -> None:
    path = project / "x"
    path.write_bytes(b"one")
    hooked.refuse_exchange()
    hooked.before("move_if_free", in_place(path, b"USR"))
    done = run(project, store, Change(b"x", store.file(b"one"), store.file(b"two")))
    assert list(done.skipped) == [b"x"]
    assert picture(project) == {"x": (b"USR", 0o644)}


@pytest.mark.parametrize("with_exchange", [True, False])
@pytest.mark.parametrize("theirs", [theirs_folder, theirs_link, theirs_fifo])
def test_something_else_put_in_the_place_of_a_file_wins(
    project: Path,
    store: Contents,
    hooked: Hooked,
    with_exchange: bool,
    theirs: Callable[[Path], None],
) -> None:
    path = project / "x"
    path.write_bytes(b"one")
    if not with_exchange:
        hooked.refuse_exchange()

    def swap() -> None:
        path.unlink()
        theirs(path)

    hooked.after("could_match", swap)
    done = run(project, store, Change(b"x", store.file(b"one"), store.file(b"two")))
    assert list(done.skipped) == [b"x"]
    path.unlink() if not path.is_dir() else (path / "inside").unlink()
    assert all_bytes(project) == set()


@pytest.mark.parametrize("call", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("name", ["content_matches", "could_match", "exchange", "move_if_free"])
def test_a_folder_swapped_for_a_link_leads_nowhere_outside(
    project: Path, tmp_path: Path, store: Contents, hooked: Hooked, name: str, call: int
) -> None:
    outside = tmp_path / "outside"
    for folder in (project / "d", outside):
        folder.mkdir()
        for file in "abc":
            (folder / file).write_bytes(b"one")
    expected = picture(outside)

    def swap() -> None:
        (project / "d").rename(project / "moved")
        (project / "d").symlink_to(outside)

    hooked.before(name, swap, call)
    one, two = store.file(b"one"), store.file(b"two")
    changes = [
        Change(b"d/a", one, two),
        Change(b"d/b", one, None),
        Change(b"d/c", one, store.file(b"one", 0o777)),
        Change(b"d/new", None, two),
        Change(b"d/sub", None, store.folder()),
    ]
    apply(os.fsencode(project), TAG, changes, store.read)
    assert picture(outside) == expected


def test_a_link_that_was_there_all_the_time_is_not_followed(
    project: Path, tmp_path: Path, store: Contents
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(b"one")
    (outside / "b").write_bytes(b"one")
    (project / "d").symlink_to(outside)
    (project / "f").symlink_to(outside / "a")
    expected = picture(tmp_path)
    one, two = store.file(b"one"), store.file(b"two")
    done = run(
        project,
        store,
        Change(b"d/a", one, two),
        Change(b"d/b", one, None),
        Change(b"d/new", None, two),
        Change(b"d/sub", None, store.folder()),
        Change(b"f", one, two),
        Change(b"d", store.folder(0o700), store.folder(0o777)),
    )
    assert set(done.skipped) - {b"d/b"} == {b"d", b"d/a", b"d/new", b"d/sub", b"f"}
    assert picture(tmp_path) == expected
    assert picture(project) == {"d": ("link", str(outside)), "f": ("link", str(outside / "a"))}


@pytest.mark.parametrize("path", [b"../evil", b"d/../../evil", b"d/../../victim", b"/tmp/../evil"])
def test_a_path_that_leads_upwards_changes_nothing_outside(
    project: Path, store: Contents, path: bytes
) -> None:
    """No readable tree holds such a path; this is the last check."""
    root = project / "root"
    (root / "d").mkdir(parents=True)
    (project / "victim").write_bytes(b"one")
    before = store.file(b"one") if path.endswith(b"victim") else None
    expected = picture(project)
    try:
        done = run(root, store, Change(path, before, store.file(b"evil")))
    except Corrupt:
        pass
    else:
        assert list(done.skipped) == [path]
    assert picture(project) == expected


def staged(project: Path, name: str, content: bytes, mode: int = 0o644) -> None:
    (project / STAGING).mkdir(exist_ok=True)
    (project / STAGING / name).write_bytes(content)
    (project / STAGING / name).chmod(mode)


def save_stray(project: Path, store: Contents, *changes: Change) -> list[bytes]:
    return rescue(os.fsencode(project), TAG, changes, store.read)


def test_rescue_without_a_staging_folder_changes_nothing(project: Path, store: Contents) -> None:
    (project / "x").write_bytes(b"one")
    assert save_stray(project, store, Change(b"x", store.file(b"one"), None)) == []
    assert picture(project) == {"x": (b"one", 0o644)}


@pytest.mark.parametrize("present", [b"one", b"two", None])
@pytest.mark.parametrize("slot", ["w0", "r0"])
@pytest.mark.parametrize("content", [b"one", b"two"])
def test_rescue_drops_what_is_known_on_either_side(
    project: Path, store: Contents, present: bytes | None, slot: str, content: bytes
) -> None:
    if present is not None:
        (project / "x").write_bytes(present)
    staged(project, slot, content)
    change = Change(b"x", store.file(b"one"), store.file(b"two"))
    assert save_stray(project, store, change) == []
    assert not (project / STAGING).exists()
    assert len(list(project.iterdir())) == (present is not None)


@pytest.mark.parametrize("length", [0, 1, 9, 18])
def test_rescue_drops_what_was_being_written(project: Path, store: Contents, length: int) -> None:
    (project / "x").write_bytes(b"one")
    staged(project, "w0", b"the wanted content"[:length], 0o600)
    change = Change(b"x", store.file(b"one"), store.file(b"the wanted content"))
    assert save_stray(project, store, change) == []
    assert picture(project) == {"x": (b"one", 0o644)}


@pytest.mark.parametrize("slot", ["w0", "r0"])
def test_rescue_puts_the_users_bytes_back_in_place(
    project: Path, store: Contents, slot: str
) -> None:
    (project / "x").write_bytes(b"two")
    staged(project, slot, b"the user's")
    change = Change(b"x", store.file(b"one"), store.file(b"two"))
    assert save_stray(project, store, change) == []
    assert picture(project) == {"x": (b"the user's", 0o644)}


@pytest.mark.parametrize("slot", ["w0", "r0"])
def test_rescue_puts_the_users_bytes_back_where_nothing_is(
    project: Path, store: Contents, slot: str
) -> None:
    staged(project, slot, b"the user's")
    after = None if slot == "r0" else store.file(b"two")
    assert save_stray(project, store, Change(b"x", store.file(b"one"), after)) == []
    assert picture(project) == {"x": (b"the user's", 0o644)}


@pytest.mark.parametrize("present", [b"another save", b"one"])
def test_rescue_puts_the_users_bytes_beside_what_is_there(
    project: Path, store: Contents, present: bytes
) -> None:
    (project / "x").write_bytes(present)
    staged(project, "w0", b"the user's")
    change = Change(b"x", store.file(b"one"), store.file(b"two"))
    save_stray(project, store, change)
    assert not (project / STAGING).exists()
    assert {present, b"the user's"} >= all_bytes(project) >= {b"the user's"}
    if present != b"one":
        assert (project / "x").read_bytes() == present
        assert present in all_bytes(project)


def test_rescue_never_overwrites_what_it_rescued_before(project: Path, store: Contents) -> None:
    change = Change(b"d/x", store.file(b"one"), store.file(b"two"))
    for number in range(3):
        staged(project, "w0", b"save %d" % number)
        assert len(save_stray(project, store, change)) == 1
    assert all_bytes(project) == {b"save 0", b"save 1", b"save 2"}


def test_rescue_keeps_what_it_cannot_explain(project: Path, store: Contents) -> None:
    staged(project, "w99", b"of no known change")
    staged(project, "notes", b"of no known shape")
    strays = save_stray(project, store, Change(b"x", store.file(b"one"), store.file(b"two")))
    assert len(strays) == 2
    assert all_bytes(project) == {b"of no known change", b"of no known shape"}
    assert not (project / STAGING).exists()


@pytest.mark.parametrize("after", ["nothing", "other file", "folder"])
@pytest.mark.parametrize("slot", ["r0", "w0"])
def test_rescue_keeps_a_folder_that_was_caught(
    project: Path, store: Contents, after: str, slot: str
) -> None:
    (project / STAGING / slot).mkdir(parents=True)
    (project / STAGING / slot / "inside").write_bytes(b"the user's")
    save_stray(project, store, Change(b"x", store.file(b"one"), STATES[after](store)))
    assert all_bytes(project) == {b"the user's"}
    assert not (project / STAGING).exists()


def test_rescue_keeps_a_link_that_was_caught(project: Path, store: Contents) -> None:
    (project / STAGING).mkdir()
    (project / STAGING / "w0").symlink_to("the user's")
    save_stray(project, store, Change(b"x", store.file(b"one"), store.file(b"two")))
    assert picture(project) == {"x": ("link", "the user's")}


def test_rescue_finds_staging_folders_further_down(project: Path, store: Contents) -> None:
    """Staging directories are there if the top is read-only or on another file system."""
    (project / "d/e" / STAGING).mkdir(parents=True)
    (project / "d/e" / STAGING / "w0").write_bytes(b"the user's")
    save_stray(project, store, Change(b"d/e/f/x", store.file(b"one"), store.file(b"two")))
    assert all_bytes(project) == {b"the user's"}
    assert not (project / "d/e" / STAGING).exists()


@pytest.mark.parametrize("save", [in_place, by_rename])
def test_a_save_while_rescue_puts_bytes_back_is_kept(
    project: Path,
    store: Contents,
    hooked: Hooked,
    save: Callable[[Path, bytes], Hook],
) -> None:
    (project / "x").write_bytes(b"two")
    staged(project, "w0", b"first save")
    hooked.before("exchange", save(project / "x", b"second save"))
    save_stray(project, store, Change(b"x", store.file(b"one"), store.file(b"two")))
    assert {b"first save", b"second save"} <= all_bytes(project)


@pytest.mark.parametrize("present", ["before", "after", "nothing", "user"])
@pytest.mark.parametrize("slot", ["before", "after", "torn", "user", "nothing"])
def test_apply_goes_on_after_rescue_from_every_state(
    project: Path, store: Contents, present: str, slot: str
) -> None:
    before, after = store.file(b"one"), store.file(b"the wanted content")
    content = {
        "before": b"one",
        "after": b"the wanted content",
        "torn": b"the wan",
        "user": b"the user's",
    }
    if present in content:
        (project / "x").write_bytes(content[present])
    if slot in content:
        staged(project, "w0", content[slot])
    change = Change(b"x", before, after)
    save_stray(project, store, change)
    done = run(project, store, change)
    assert not (project / STAGING).exists()
    if "user" in (present, slot):
        assert b"the user's" in all_bytes(project)
    if present == "user":
        assert list(done.skipped) == [b"x"]
        assert (project / "x").read_bytes() == b"the user's"
    if "user" not in (present, slot):
        assert picture(project) == {"x": (b"the wanted content", 0o644)}


def test_verify_names_what_is_not_as_it_should_be(project: Path, store: Contents) -> None:
    (project / "right").write_bytes(b"one")
    (project / "bytes").write_bytes(b"two")
    (project / "mode").write_bytes(b"one")
    (project / "mode").chmod(0o755)
    (project / "there").write_bytes(b"")
    one = store.file(b"one")
    changes = [
        Change(b"right", None, one),
        Change(b"bytes", None, one),
        Change(b"mode", None, one),
        Change(b"there", one, None),
        Change(b"missing", None, one),
        Change(b"no/folder", None, one),
        Change(b"folder", None, store.folder()),
        Change(b"gone", one, None),
    ]
    assert verify(os.fsencode(project), changes) == [
        b"bytes",
        b"mode",
        b"there",
        b"missing",
        b"no/folder",
        b"folder",
    ]


def refuse_nameless(code: int) -> Callable[..., int]:
    real = os.open

    def refuse(path: Any, flags: int, *given: Any, **named: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(code, os.strerror(code))
        return real(path, flags, *given, **named)

    return refuse


def refuse_links(*given: Any, **named: Any) -> None:
    raise OSError(errno.ENOENT, "no /proc here")


@pytest.mark.parametrize(
    ("name", "refusing"),
    [
        ("open", refuse_nameless(errno.EOPNOTSUPP)),
        ("open", refuse_nameless(errno.EACCES)),
        ("link", refuse_links),
    ],
)
@pytest.mark.parametrize("count", [1, 2 * MIN_FILES_FOR_THREAD])
def test_where_no_file_can_be_made_without_a_name_it_is_made_with_one(
    project: Path,
    store: Contents,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    refusing: Callable[..., Any],
    count: int,
) -> None:
    (project / "d").mkdir()
    (project / "d" / "x").write_bytes(b"one")
    monkeypatch.setattr(os, name, refusing)
    one, two = store.file(b"one"), store.file(b"two, longer", 0o755)
    new = [Change(b"d/y%03d" % number, None, two) for number in range(count)]
    done = run(project, store, Change(b"d/x", one, two), *new)
    assert done.skipped == {}
    assert done.wrong == []
    expected = dict.fromkeys(["d/x", *(os.fsdecode(each.path) for each in new)])
    assert picture(project) == {"d": ("folder", 0o755)} | dict.fromkeys(
        expected, (b"two, longer", 0o755)
    )


@pytest.mark.parametrize("count", [1, 2 * MIN_FILES_FOR_THREAD])
def test_what_cannot_be_read_back_as_it_should_be_never_gets_to_its_place(
    project: Path, store: Contents, count: int
) -> None:
    (project / "x").write_bytes(b"one")
    one, two, good = store.file(b"one"), store.file(b"two, longer"), store.file(b"good")
    store.known[two.id] = b"two, l0nger"
    changes = [Change(b"x", one, two)]
    changes += [Change(b"y%03d" % number, None, good) for number in range(count)]
    done = run(project, store, *changes, Change(b"z", None, two))
    assert set(done.skipped) == {b"x", b"z"}
    assert "other bytes than were written" in done.skipped[b"x"]
    assert done.wrong == []
    expected = {f"y{number:03d}": (b"good", 0o644) for number in range(count)}
    assert picture(project) == {"x": (b"one", 0o644)} | expected


def test_what_was_touched_after_it_was_read_back_is_read_again(
    project: Path, store: Contents
) -> None:
    one = store.file(b"one")
    for name in ("same", "written", "replaced", "as it was"):
        (project / name).write_bytes(b"one")
    changes = [Change(os.fsencode(path.name), None, one) for path in sorted(project.iterdir())]
    known = {change.path: os.stat(project / os.fsdecode(change.path)) for change in changes}
    time.sleep(0.02)
    (project / "written").write_bytes(b"two")
    (project / "other").write_bytes(b"two")
    (project / "other").rename(project / "replaced")
    (project / "another").write_bytes(b"one")
    (project / "another").rename(project / "as it was")
    assert verify(os.fsencode(project), changes, known) == [b"replaced", b"written"]
    (project / "same").chmod(0o600)
    assert b"same" in verify(os.fsencode(project), changes, known)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder to any group")
def test_a_file_that_comes_back_has_the_group_that_its_folder_gives(
    project: Path, store: Contents
) -> None:
    (project / "shared").mkdir()
    os.chown(project / "shared", -1, 4321)
    (project / "shared").chmod(0o2775)
    run(project, store, Change(b"shared/x", None, store.file(b"one", 0o664)))
    found = (project / "shared" / "x").stat()
    assert (found.st_gid, stat.S_IMODE(found.st_mode)) == (4321, 0o664)
    assert (project / "shared" / "x").read_bytes() == b"one"


def unreadable(monkeypatch: pytest.MonkeyPatch, inode: int) -> None:
    """Make one file unreadable, as if its owner had changed its mode."""
    real = os.open

    def closed(path: Any, flags: int, *given: Any, **named: Any) -> int:
        fd = real(path, flags, *given, **named)
        if os.fstat(fd).st_ino == inode and not flags & getattr(os, "O_PATH", 0):
            os.close(fd)
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return fd

    monkeypatch.setattr(os, "open", closed)


@pytest.mark.parametrize("with_exchange", [True, False])
@pytest.mark.parametrize("removed", [True, False])
def test_a_file_that_cannot_be_read_any_more_stays_in_its_place(
    project: Path,
    store: Contents,
    hooked: Hooked,
    monkeypatch: pytest.MonkeyPatch,
    removed: bool,
    with_exchange: bool,
) -> None:
    path = project / "x"
    path.write_bytes(b"one")
    if not with_exchange:
        hooked.refuse_exchange()
    inode = path.stat().st_ino
    hooked.after("could_match", lambda: unreadable(monkeypatch, inode))
    after = None if removed else store.file(b"two")
    done = run(project, store, Change(b"x", store.file(b"one"), after))
    monkeypatch.undo()
    assert list(done.skipped) == [b"x"]
    assert picture(project) == {"x": (b"one", 0o644)}


def test_what_a_crash_left_and_cannot_be_read_goes_back(
    project: Path, store: Contents, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / STAGING).mkdir()
    for name in ("r0", "r1", "w2"):
        (project / STAGING / name).write_bytes(b"one")
        unreadable(monkeypatch, (project / STAGING / name).stat().st_ino)
    (project / "z").write_bytes(b"two")
    one, two = store.file(b"one"), store.file(b"two")
    changes = [Change(b"x", one, None), Change(b"y", one, two), Change(b"z", one, two)]
    rescue(os.fsencode(project), TAG, changes, store.read)
    monkeypatch.undo()
    assert not (project / STAGING).exists()
    # The new content is in the store; a file that could not be read may be the user's.
    assert {name: what[0] for name, what in picture(project).items()} == dict.fromkeys(
        "xyz", b"one"
    )
