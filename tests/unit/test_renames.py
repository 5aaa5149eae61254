"""Test exact and similar renames."""

import hashlib
import random

import pytest

from mulligan.core import renames
from mulligan.core.renames import Candidate, exact_renames, similar_renames


class Files:
    """The contents of one side of a rename, by path."""

    def __init__(self, contents: dict[bytes, bytes]) -> None:
        self.contents = {hashlib.sha256(data).digest(): data for data in contents.values()}
        self.candidates = [
            Candidate(path, hashlib.sha256(data).digest(), len(data))
            for path, data in contents.items()
        ]


def exact(deleted: dict[bytes, bytes], added: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return exact_renames(Files(deleted).candidates, Files(added).candidates)


def similar(
    deleted: dict[bytes, bytes], added: dict[bytes, bytes], **options: float
) -> list[tuple[bytes, bytes, float]]:
    old, new = Files(deleted), Files(added)
    contents = old.contents | new.contents
    return similar_renames(old.candidates, new.candidates, contents.get, **options)  # type: ignore[arg-type]


def same(*paths: bytes) -> dict[bytes, bytes]:
    return dict.fromkeys(paths, b"content\n")


@pytest.mark.parametrize(
    ("deleted", "added", "renames"),
    [
        ({}, {}, []),
        (same(b"a"), {}, []),
        (same(b"a"), same(b"b"), [(b"a", b"b")]),
        (same(b"a"), {b"b": b"other\n"}, []),
        ({b"a": b""}, {b"b": b""}, []),
        # The same file name wins over the same directory.
        (same(b"src/a.py"), same(b"src/b.py", b"lib/a.py"), [(b"src/a.py", b"lib/a.py")]),
        # Then the nearest directory.
        (
            same(b"x/y/a.py"),
            same(b"q/r/a.py", b"x/z/a.py", b"w/a.py"),
            [(b"x/y/a.py", b"x/z/a.py")],
        ),
        # A directory that moved takes each of its files along.
        (
            same(b"old/one/__init__.py", b"old/two/__init__.py"),
            same(b"new/two/__init__.py", b"new/one/__init__.py"),
            [
                (b"old/one/__init__.py", b"new/one/__init__.py"),
                (b"old/two/__init__.py", b"new/two/__init__.py"),
            ],
        ),
        # Each path once.
        (same(b"a", b"b"), same(b"c"), [(b"a", b"c")]),
        (same(b"a"), same(b"b", b"c"), [(b"a", b"b")]),
        (same(b"new\nline\xff"), same(b"d/\xfe"), [(b"new\nline\xff", b"d/\xfe")]),
    ],
)
def test_equal_contents_are_renames(
    deleted: dict[bytes, bytes],
    added: dict[bytes, bytes],
    renames: list[tuple[bytes, bytes]],
) -> None:
    assert exact(deleted, added) == renames


def test_exact_renames_do_not_depend_on_the_order_of_their_input() -> None:
    deleted = Files(same(*[b"d%d/f%d" % (n % 3, n) for n in range(12)])).candidates
    added = Files(same(*[b"e%d/f%d" % (n % 4, n + 3) for n in range(12)])).candidates
    expected = exact_renames(deleted, added)
    for seed in range(5):
        dice = random.Random(seed)
        dice.shuffle(deleted)
        dice.shuffle(added)
        assert exact_renames(deleted, added) == expected


def test_thousands_of_equal_files_that_moved_together_keep_their_places() -> None:
    paths = [b"pkg%04d/__init__.py" % number for number in range(3000)]
    moved = exact(same(*paths), same(*[b"src/" + path for path in paths]))
    assert moved == [(path, b"src/" + path) for path in paths]


def text(word: bytes, count: int = 40) -> bytes:
    return b"".join(b"%b is line %d of this text\n" % (word, number) for number in range(count))


def test_an_edited_text_is_still_found() -> None:
    [(old, new, score)] = similar({b"a.txt": text(b"a")}, {b"b.txt": text(b"a") + b"one more\n"})
    assert (old, new) == (b"a.txt", b"b.txt")
    assert 0.9 < score < 1


def test_the_most_similar_pairs_are_taken_and_each_path_once() -> None:
    found = similar(
        {b"one": text(b"a"), b"two": text(b"b")},
        {
            b"three": text(b"b") + b"more\n",
            b"four": text(b"a") + b"more\n",
            b"five": text(b"a", 30),
        },
    )
    assert [(old, new) for old, new, _ in found] == [(b"one", b"four"), (b"two", b"three")]


def test_among_equally_similar_ones_the_same_file_name_wins() -> None:
    edited = text(b"a") + b"more\n"
    found = similar({b"old/a.txt": text(b"a")}, {b"new/a.txt": edited, b"old/b.txt": edited})
    assert [(old, new) for old, new, _ in found] == [(b"old/a.txt", b"new/a.txt")]


def test_a_small_edit_in_one_long_line_is_still_found() -> None:
    line = b",".join(b"%d" % number for number in range(1000))
    assert similar({b"a.json": line}, {b"b.json": line + b",1000"})


def test_converted_line_ends_do_not_hide_a_rename() -> None:
    [(_, _, score)] = similar({b"a": text(b"a")}, {b"b": text(b"a").replace(b"\n", b"\r\n")})
    assert score == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (text(b"a"), text(b"b")),
        (text(b"a"), text(b"a", 10)),
        (b"\0" + text(b"a"), b"\0" + text(b"a") + b"x"),
        (b"", b""),
        (b"", b"x"),
    ],
)
def test_unlike_binary_and_empty_contents_are_not_renames(old: bytes, new: bytes) -> None:
    assert similar({b"a": old}, {b"b": new}) == []


def test_the_threshold_decides() -> None:
    deleted, added = {b"a": text(b"a", 40)}, {b"b": text(b"a", 30)}
    assert similar(deleted, added, threshold=0.7)
    assert not similar(deleted, added, threshold=0.8)


def test_contents_that_cannot_be_read_are_left_alone() -> None:
    old, new = Files({b"a": text(b"a")}), Files({b"b": text(b"a") + b"x"})
    assert similar_renames(old.candidates, new.candidates, lambda id: None) == []


def test_no_more_than_the_limit_is_read_and_shared_names_come_first() -> None:
    old = Files({b"old/%02d" % number: text(b"%d" % number) for number in range(30)})
    new = Files({b"new/%02d" % number: text(b"%d" % number) + b"x\n" for number in range(20, 50)})
    contents = old.contents | new.contents
    asked: list[bytes] = []

    def read(id: bytes) -> bytes | None:
        asked.append(id)
        return contents[id]

    found = similar_renames(old.candidates, new.candidates, read, limit=10)
    assert [(a, b) for a, b, _ in found] == [
        (b"old/%02d" % number, b"new/%02d" % number) for number in range(20, 30)
    ]
    assert len(asked) <= 20
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("seed", range(6))
def test_the_upper_bound_rules_out_no_similar_pair(
    seed: int, threshold: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    lines = [bytes(chance.choices(b"ab", k=chance.choice((1, 3, 15, 16, 90)))) for _ in range(60)]

    def texts(side: bytes) -> dict[bytes, bytes]:
        return {
            b"%b%d" % (side, number): b"\n".join(chance.choices(lines, k=chance.randint(1, 12)))
            for number in range(25)
        }

    old, new = texts(b"o"), texts(b"n")
    found = similar(old, new, threshold=threshold)
    glances = []
    monkeypatch.setattr(
        renames._Text, "max_similarity", lambda *asked: glances.append(asked) or 1.0
    )
    assert similar(old, new, threshold=threshold) == found
    assert glances


def test_just_enough_in_common_is_enough_at_every_threshold() -> None:
    short = b"short line\n" * 5
    old, new = {b"old": short + b"A" * 44 + b"\n"}, {b"new": short + b"B" * 44 + b"\n"}
    assert similar(old, new, threshold=0.55) == [(b"old", b"new", 0.55)]
