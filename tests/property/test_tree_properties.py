"""Test properties of trees: canonical bytes, differences, edits, refusals."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mulligan.core import tree
from mulligan.core.tree import EMPTY, EMPTY_ID, Change, Entry, Tree
from mulligan.errors import Corrupt

NAMES = st.one_of(
    st.sampled_from([b"a", b"b", b"c", b"a b", b"a-b", b"a\n", b"\xff", b"...", b"0"]),
    st.binary(min_size=1, max_size=4).filter(
        lambda name: name not in (b".", b"..", b".git") and b"/" not in name and b"\0" not in name
    ),
)
MODES = st.integers(0, 0o7777)
FILES = st.builds(lambda mode, content: (tree.FILE, mode, content), MODES, st.binary(max_size=2))
LINKS = st.builds(lambda content: (tree.LINK, 0, content), st.binary(max_size=2))
PLAIN = st.recursive(
    st.one_of(FILES, LINKS),
    lambda inner: st.builds(
        lambda mode, below: (tree.DIRECTORY, mode, below),
        MODES,
        st.dictionaries(NAMES, inner, max_size=4),
    ),
    max_leaves=12,
)
PICTURES = st.dictionaries(NAMES, PLAIN, max_size=5)


class Trees:
    """Trees in memory."""

    def __init__(self) -> None:
        self.data = {EMPTY_ID: EMPTY}

    def load(self, id: bytes) -> tree.Tree:
        return tree.decode(self.data[id])

    def save(self, data: bytes, *_replaced: object) -> bytes:
        id = sha256(data).digest()
        self.data[id] = data
        return id

    def build(self, picture: dict) -> bytes:
        return self.save(tree.encode(self._entries(picture)))

    def _entries(self, picture: dict) -> list[Entry]:
        entries = []
        for name, (kind, mode, content) in picture.items():
            if kind == tree.DIRECTORY:
                id = self.build(content)
                entries.append(Entry(tree.DIRECTORY, mode, *self.load(id).totals, id, name))
            elif kind == tree.LINK:
                entries.append(tree.link_entry(name, len(content), sha256(content).digest()))
            else:
                entries.append(tree.file_entry(name, mode, len(content), sha256(content).digest()))
        return entries


def flat(picture: dict, directory: bytes = b"") -> dict[bytes, tuple]:
    """Return entries by path; directories without their content."""
    found = {}
    for name, (kind, mode, content) in picture.items():
        path = tree.join(directory, name)
        if kind == tree.DIRECTORY:
            found[path] = (kind, mode)
            found |= flat(content, path)
        else:
            found[path] = (kind, mode, sha256(content).digest())
    return found


def seen(entry: Entry | None) -> tuple | None:
    if entry is None:
        return None
    return (entry.kind, entry.mode) if entry.is_directory else (entry.kind, entry.mode, entry.id)


@given(PICTURES, st.randoms(use_true_random=False))
def test_the_same_entries_in_any_order_are_the_same_bytes(picture, random) -> None:
    trees = Trees()
    entries = list(trees.load(trees.build(picture)))
    data = tree.encode(entries)
    random.shuffle(entries)
    assert tree.encode(entries) == data
    assert set(tree.decode(data)) == set(entries)
    assert tree.encode(tree.decode(data)) == data


@given(PICTURES, PICTURES)
def test_a_directory_with_other_entries_is_as_if_encoded_from_scratch(before, after) -> None:
    trees = Trees()
    old, new = trees.load(trees.build(before)), trees.load(trees.build(after))
    wanted = {entry.name: entry for entry in new}
    changes = {entry.name: wanted.get(entry.name) for entry in old} | wanted
    made = old.replaced(changes)
    # What it remembers of its making is what comparing it tells.
    assert made.since(old) == Tree(made.data).since(Tree(old.data))
    assert old.since(made) == [Change(name, now, was) for name, was, now in made.since(old)]
    assert made.data == new.data
    assert made.totals == new.totals
    assert len(made) == len(wanted)
    assert {name: made.get(name) for name in changes} == {
        name: wanted.get(name) for name in changes
    }
    assert old.replaced({}).data == old.data


@given(PICTURES)
def test_walk_lists_every_path_once_and_find_agrees(picture) -> None:
    trees = Trees()
    root = trees.build(picture)
    walked = list(tree.walk(root, trees.load))
    by_path = flat(picture)
    assert {path: seen(entry) for path, entry in walked} == by_path
    assert len(walked) == len(by_path)
    assert [path for path, _ in walked] == sorted(by_path, key=lambda path: path.split(b"/"))
    for path, entry in walked:
        assert tree.find(root, path, trees.load) == entry
        assert tree.find(root, path + b"/nothing here", trees.load) is None
    leaves = [entry for _, entry in walked if not entry.is_directory]
    assert sum(entry.files for entry in trees.load(root)) == len(leaves)
    assert sum(entry.size for entry in trees.load(root)) == sum(entry.size for entry in leaves)


@given(PICTURES, PICTURES)
def test_differences_name_exactly_the_paths_that_differ(before, after) -> None:
    trees = Trees()
    changes = list(tree.differences(trees.build(before), trees.build(after), trees.load))
    old, new = flat(before), flat(after)
    assert [change.path for change in changes] == sorted(
        (path for path in old.keys() | new.keys() if old.get(path) != new.get(path)),
        key=lambda path: path.split(b"/"),
    )
    for path, was, now in changes:
        assert seen(was) == old.get(path)
        assert seen(now) == new.get(path)


@given(PICTURES, PICTURES)
@example({b"x": (tree.FILE, 0o644, b"")}, {b"x": (tree.DIRECTORY, 0o700, {})})
@example({b"x": (tree.DIRECTORY, 0o700, {b"y": (tree.FILE, 0, b"")})}, {b"x": (tree.LINK, 0, b"")})
def test_edit_with_all_differences_gives_the_other_tree(before, after) -> None:
    trees = Trees()
    old, new = trees.build(before), trees.build(after)
    changes = {each.path: each.after for each in tree.differences(old, new, trees.load)}
    assert tree.edit(old, changes, trees.load, trees.save) == new


@given(PICTURES, PICTURES, st.randoms(use_true_random=False))
def test_edit_with_some_files_changes_only_those(before, after, random) -> None:
    trees = Trees()
    old, new = trees.build(before), trees.build(after)
    changes = [
        each
        for each in tree.differences(old, new, trees.load)
        # Only files for files: what to do about what is in the way, the caller decides.
        if all(side is None or not side.is_directory for side in (each.before, each.after))
    ]
    chosen = [each for each in changes if random.random() < 0.5 and _fits(old, each.path, trees)]
    edited = tree.edit(old, {each.path: each.after for each in chosen}, trees.load, trees.save)
    should = flat(before)
    for path, _was, now in chosen:
        if now is None:
            del should[path]
        else:
            should[path] = seen(now)
            for depth in range(1, path.count(b"/") + 1):
                above = b"/".join(path.split(b"/")[:depth])
                should.setdefault(above, (tree.DIRECTORY, 0o755))
    assert {path: seen(entry) for path, entry in tree.walk(edited, trees.load)} == should


def _fits(root: bytes, path: bytes, trees: Trees) -> bool:
    """True if each parent of the path is a directory or missing."""
    parts = path.split(b"/")
    above = (b"/".join(parts[:depth]) for depth in range(1, len(parts)))
    entries = [tree.find(root, each, trees.load) for each in above]
    return all(entry is None or entry.is_directory for entry in entries)


@given(PICTURES)
def test_edit_without_a_change_stores_nothing(picture) -> None:
    trees = Trees()
    root = trees.build(picture)

    def refuse(*given: object) -> bytes:
        raise AssertionError("a tree was stored")

    changes = dict(tree.walk(root, trees.load))
    assert tree.edit(root, changes, trees.load, refuse) == root
    assert tree.edit(root, {b"absent": None, b"not/there": None}, trees.load, refuse) == root


@given(PICTURES)
def test_a_removed_directory_stays_while_it_holds_other_paths(picture) -> None:
    trees = Trees()
    root = trees.build(picture)
    full = {
        path
        for path, entry in tree.walk(root, trees.load)
        if entry.is_directory and entry.id != EMPTY_ID
    }
    removed = dict.fromkeys(full)
    assert tree.edit(root, removed, trees.load, trees.save) == root


ID = b"ab" * 32


@pytest.mark.parametrize(
    "record",
    [
        b"", b"f", b"f 644 1 1 " + ID, b"x 644 1 1 " + ID + b" n", b"f 644 1 1 " + ID + b" ",
        b"f 644 1 1 " + ID + b" .git",
        b"f 644 1 1 " + ID + b" .", b"f 644 1 1 " + ID + b" ..", b"f 644 1 1 " + ID + b" a/b",
        b"f 0644 1 1 " + ID + b" n", b"f +644 1 1 " + ID + b" n", b"f 0o644 1 1 " + ID + b" n",
        b"f 648 1 1 " + ID + b" n", b"f -644 1 1 " + ID + b" n", b"f \n644 1 1 " + ID + b" n",
        b"f 644 01 1 " + ID + b" n", b"f 644 1 -1 " + ID + b" n", b"f 644 1 1_0 " + ID + b" n",
        b"f 644 1 1 " + ID.upper() + b" n", b"f 644 1 1 " + ID[:-2] + b" n",
        b"f 644 1 1 " + ID + b"ab n", b"f 644 1 1 ab\t" + ID[2:] + b" n",
        b"f 644 1 1 " + b"zz" * 32 + b" n", b"f 644 1 1 " + b"\xff" * 64 + b" n",
        b"f  644 1 1 " + ID + b" n", b"f 644 x 1 " + ID + b" n",
    ],
)  # fmt: skip
def test_a_record_that_is_not_canonical_is_refused(record: bytes) -> None:
    with pytest.raises(Corrupt):
        tree.decode(record + b"\0")


@pytest.mark.parametrize("names", [[b"b", b"a"], [b"a", b"a"], [b"a", b"b", b"ab"]])
def test_names_out_of_order_or_doubled_are_refused(names: list[bytes]) -> None:
    with pytest.raises(Corrupt):
        tree.decode(b"".join(b"f 644 1 1 " + ID + b" " + name + b"\0" for name in names))


@given(PICTURES, st.data())
def test_damaged_bytes_are_refused_or_are_another_canonical_tree(picture, data) -> None:
    trees = Trees()
    good = tree.encode(trees.load(trees.build(picture)))
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, len(good)))
    bad = good[:start] + data.draw(st.binary(max_size=4)) + good[end:]
    _refused_or_canonical(bad)


@given(st.binary(max_size=200))
@example(b"\0")
@example(b"f 644 1 1")
def test_any_bytes_are_refused_or_canonical(data: bytes) -> None:
    _refused_or_canonical(data)


def _refused_or_canonical(data: bytes) -> None:
    try:
        entries = tree.decode(data)
    except Corrupt:
        return
    assert tree.encode(entries) == data
    names = [entry.name for entry in entries]
    assert names == sorted(set(names))
