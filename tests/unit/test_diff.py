"""Test diffs and hunks, one row for each shape."""

import difflib
import random

import pytest

from mulligan.core.diff import Range, changed_ranges, compare, is_binary, split_lines
from mulligan.core.hunks import Hunk, apply_hunks, hunks, revert_hunks


def check_ranges(old: list[bytes], new: list[bytes]) -> list[Range]:
    """Return the ranges, after checking that old plus ranges is new."""
    ranges = changed_ranges(old, new)
    i = j = 0
    for number, (old_start, old_end, new_start, new_end) in enumerate(ranges):
        assert old[i:old_start] == new[j:new_start]
        assert old_end > old_start or new_end > new_start
        assert number == 0 or old_start > i, "ranges touch"
        i, j = old_end, new_end
    assert old[i:] == new[j:]
    return ranges


def line_counts(old: bytes, new: bytes) -> tuple[int, int]:
    """Return additions and deletions."""
    return compare(old, new, old_name=b"a", new_name=b"b")[1:]


def diff(old: bytes, new: bytes, context: int = 3) -> bytes:
    text, _, _ = compare(old, new, old_name=b"a/p", new_name=b"b/p", context=context)
    header = b"--- a/p\n+++ b/p\n"
    assert not text or text.startswith(header)
    return text.removeprefix(header)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a\n"]),
        (b"\n\n", [b"\n", b"\n"]),
        (b"a\nb", [b"a\n", b"b"]),
        (b"a\r\nb\r\n", [b"a\r\n", b"b\r\n"]),
        (b"a\rb\n", [b"a\rb\n"]),
        (b"a\n\r", [b"a\n", b"\r"]),
        (b"\r\n\r", [b"\r\n", b"\r"]),
        (b"a\x0bb\x0cc\x1cd\xc2\x85e\n", [b"a\x0bb\x0cc\x1cd\xc2\x85e\n"]),
        (b"a\x0b\r\nb\x0c", [b"a\x0b\r\n", b"b\x0c"]),
    ],
)
def test_lines_end_after_a_newline_and_nowhere_else(data: bytes, lines: list[bytes]) -> None:
    assert split_lines(data) == lines


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"", False),
        (b"plain\n", False),
        ("größer €\n".encode(), False),
        (b"\xff\xfe", False),
        (b"caf\xe9", False),
        ("日本語\n".encode("shift_jis"), False),
        ("wide".encode("utf-16"), True),
        (b"a\0b", True),
        (b"x" * 8191 + b"\0", True),
        (b"x" * 8192 + b"\0", False),
    ],
)
def test_binary_content_has_an_early_nul_in_any_encoding(data: bytes, binary: bool) -> None:
    assert is_binary(data) is binary


@pytest.mark.parametrize(
    ("old", "new", "ranges"),
    [
        ("", "", []),
        ("abc", "abc", []),
        ("", "abc", [(0, 0, 0, 3)]),
        ("abc", "", [(0, 3, 0, 0)]),
        ("abc", "xyz", [(0, 3, 0, 3)]),
        ("abc", "aXc", [(1, 2, 1, 2)]),
        ("abc", "abXc", [(2, 2, 2, 3)]),
        ("abc", "ac", [(1, 2, 1, 1)]),
        ("abcdef", "AbcdeF", [(0, 1, 0, 1), (5, 6, 5, 6)]),
        ("aaa", "aaaa", [(3, 3, 3, 4)]),
        ("aaaa", "aaa", [(3, 4, 3, 3)]),
        # A unique line that moved over repeated ones does not drag them along.
        ("xaaaaaaaa", "aaaaaaaax", [(0, 1, 0, 0), (9, 9, 8, 9)]),
    ],
)
def test_changed_ranges_of_small_shapes(old: str, new: str, ranges: list[Range]) -> None:
    old_lines = [line.encode() + b"\n" for line in old]
    new_lines = [line.encode() + b"\n" for line in new]
    assert check_ranges(old_lines, new_lines) == ranges


def test_an_inserted_function_is_shown_whole_and_ends_at_its_blank_line() -> None:
    first = b"def a():\n    return 1\n\n"
    last = b"def c():\n    return 1\n"
    [hunk] = hunks(first + last, first + b"def b():\n    return 1\n\n" + last)
    assert b"".join(hunk.new_lines) == b"def b():\n    return 1\n\n"


def test_a_decorator_stays_with_the_function_that_was_inserted() -> None:
    def function(name: bytes) -> bytes:
        return b"@cached\ndef " + name + b"():\n    return 1\n\n"

    old, new = function(b"a") + function(b"c"), function(b"a") + function(b"b") + function(b"c")
    [hunk] = hunks(old, new)
    assert b"".join(hunk.new_lines) == function(b"b")


@pytest.mark.parametrize(
    ("old", "new", "groups"),
    [
        ("xaaay", "xaaaaay", 1),
        ("ab", "baaba", 2),
        ("cccbbad", "xacbbaax", 2),
        ("abad", "zbabaay", 2),
    ],
)
def test_groups_that_slide_into_each_other_become_one(old: str, new: str, groups: int) -> None:
    old_lines = [line.encode() + b"\n" for line in old]
    new_lines = [line.encode() + b"\n" for line in new]
    assert len(check_ranges(old_lines, new_lines)) == groups


def test_functions_in_another_order_are_not_interleaved() -> None:
    def function(name: bytes) -> list[bytes]:
        return [b"void " + name + b"()\n", b"{\n", b"    " + name + b" = 1;\n", b"}\n", b"\n"]

    one, two = function(b"one"), function(b"two")
    ranges = check_ranges(one + two, two + one)
    assert len(ranges) == 2
    assert sum(old_end - old_start for old_start, old_end, _, _ in ranges) == 5


def numbered(word: bytes, count: int) -> list[bytes]:
    return [b"%b %d\n" % (word, number) for number in range(count)]


def edited(lines: list[bytes], edits: int, words: list[bytes]) -> list[bytes]:
    dice = random.Random(7)
    result = list(lines)
    for _ in range(edits):
        place = dice.randrange(len(result))
        result[place : place + dice.randrange(2)] = [dice.choice(words)]
    return result


LARGE = {
    "few edits": (numbered(b"line", 20_000), edited(numbered(b"line", 20_000), 200, [b"new\n"])),
    "nothing in common": (numbered(b"old", 50_000), numbered(b"new", 50_000)),
    "one line repeated": ([b"}\n"] * 50_000, edited([b"}\n"] * 50_000, 20, [b"x\n", b"}\n"])),
    "two lines repeated": (
        [b"}\n", b"\n"] * 20_000,
        edited([b"}\n", b"\n"] * 20_000, 300, [b"}\n", b"\n"]),
    ),
    "no order in few lines": (
        random.Random(1).choices(numbered(b"w", 9), k=20_000),
        random.Random(2).choices(numbered(b"w", 9), k=20_000),
    ),
    "all lines moved": (numbered(b"line", 20_000), numbered(b"line", 20_000)[::-1]),
}


@pytest.mark.parametrize("shape", LARGE)
def test_large_and_awkward_contents_stay_exact(shape: str) -> None:
    old, new = LARGE[shape]
    check_ranges(old, new)
    check_ranges(new, old)


def test_edits_in_a_large_file_are_found_one_by_one() -> None:
    old = numbered(b"line", 20_000)
    new = list(old)
    for place in range(50, 20_000, 100):
        new[place] = b"edited %d\n" % place
    assert line_counts(b"".join(old), b"".join(new)) == (200, 200)
    assert len(changed_ranges(old, new)) == 200


def test_a_few_insertions_between_thousands_of_equal_lines_are_found_one_by_one() -> None:
    old = [b"}\n"] * 50_000
    new = list(old)
    for place in (40_000, 30_000, 20, 10):
        new.insert(place, b"x\n")
    assert [new_end - new_start for _, _, new_start, new_end in check_ranges(old, new)] == [1] * 4


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        (b"", b"", (0, 0)),
        (b"a\n", b"a\n", (0, 0)),
        (b"", b"a\nb", (2, 0)),
        (b"a\nb\n", b"", (0, 2)),
        (b"a", b"a\n", (1, 1)),
        (b"a\n", b"a\r\n", (1, 1)),
        (b"a\nb\nc\n", b"a\nc\nd\n", (1, 1)),
    ],
)
def test_line_counts_are_additions_and_deletions(
    old: bytes, new: bytes, counts: tuple[int, int]
) -> None:
    assert line_counts(old, new) == counts


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b"", b"", b""),
        (b"same\n", b"same\n", b""),
        (b"a\n", b"b\n", b"@@ -1 +1 @@\n-a\n+b\n"),
        (b"", b"a\n", b"@@ -0,0 +1 @@\n+a\n"),
        (b"", b"a\nb\n", b"@@ -0,0 +1,2 @@\n+a\n+b\n"),
        (b"a\n", b"", b"@@ -1 +0,0 @@\n-a\n"),
        (b"a\nb\n", b"a\n", b"@@ -1,2 +1 @@\n a\n-b\n"),
        (
            b"a",
            b"b",
            b"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
        ),
        (b"a", b"a\n", b"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        (b"a\n", b"a", b"@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"),
        (b"a\nb", b"c\nb", b"@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n", b"@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n"),
    ],
)
def test_unified_is_written_as_git_writes_it(old: bytes, new: bytes, text: bytes) -> None:
    assert diff(old, new) == text


@pytest.mark.parametrize(("between", "groups"), [(5, 1), (6, 1), (7, 2)])
def test_changes_share_a_group_while_their_context_meets(between: int, groups: int) -> None:
    middle = b"".join(numbered(b"m", between))
    text = diff(b"a\n" + middle + b"z\n", b"A\n" + middle + b"Z\n")
    assert text.count(b"@@ -") == groups


def test_without_context_an_empty_side_names_the_line_before() -> None:
    assert diff(b"a\nb\n", b"a\nx\nb\n", context=0) == b"@@ -1,0 +2 @@\n+x\n"
    assert diff(b"a\nx\nb\n", b"a\nb\n", context=0) == b"@@ -2 +1,0 @@\n-x\n"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        (b"a/p", b"a/p"),
        (b"/dev/null", b"/dev/null"),
        (b"a/two words", b"a/two words\t"),
        ("a/grün".encode(), "a/grün".encode()),
        (b'a/x\ny\t"\\\x01', b'"a/x\\ny\\t\\"\\\\\\001"'),
    ],
)
def test_a_name_never_breaks_the_header(name: bytes, written: bytes) -> None:
    text, _, _ = compare(b"a\n", b"b\n", old_name=name, new_name=b"b/p")
    assert text.startswith(b"--- " + written + b"\n+++ b/p\n@@ ")


SHAPES = [
    (b"", b""),
    (b"", b"a\n"),
    (b"", b"\n"),
    (b"a\n", b""),
    (b"a", b"a\n"),
    (b"a\n", b"a"),
    (b"a\nb", b"a\nb\nc"),
    (b"a\nb\nc", b"a\nb"),
    (b"\n\n\n", b"\n\n"),
    (b"a\n\nb\n", b"a\nb\n\n"),
    (b"a\r\nb\r\n", b"a\nb\r\n"),
    (b"a\r\n\r\nb", b"a\r\nb\r\n"),
    (b"a\rb\n", b"a\rc\n"),
    (b"\xff\0\n\xfe", b"\xff\0\n\xfd"),
    (b"1\n2\n3\n4\n5\n", b"0\n1\n2\nx\n4\n6"),
]


@pytest.mark.parametrize(("old", "new"), SHAPES)
def test_all_hunks_make_new_and_their_reverse_makes_old(old: bytes, new: bytes) -> None:
    found = hunks(old, new)
    assert apply_hunks(old, found) == new
    assert revert_hunks(new, found) == old
    assert apply_hunks(old, []) == old
    assert revert_hunks(new, []) == new
    counts = sum(hunk.additions for hunk in found), sum(hunk.deletions for hunk in found)
    assert counts == line_counts(old, new)


def test_each_hunk_can_be_taken_alone() -> None:
    old, new = b"1\n2\n3\n4\n5\n", b"1\n3\nx\n4\n6"
    found = hunks(old, new)
    assert found == [
        Hunk(1, (b"2\n",), 1, ()),
        Hunk(3, (), 2, (b"x\n",)),
        Hunk(4, (b"5\n",), 4, (b"6",)),
    ]
    assert [apply_hunks(old, [hunk]) for hunk in found] == [
        b"1\n3\n4\n5\n",
        b"1\n2\n3\nx\n4\n5\n",
        b"1\n2\n3\n4\n6",
    ]
    assert [revert_hunks(new, [hunk]) for hunk in found] == [
        b"1\n2\n3\nx\n4\n6",
        b"1\n3\n4\n6",
        b"1\n3\nx\n4\n5\n",
    ]
    assert apply_hunks(old, reversed(found)) == new


@pytest.mark.parametrize(
    ("content", "chosen"),
    [
        (b"x\n", [Hunk(0, (b"a\n",), 0, (b"b\n",))]),
        (b"a\n", [Hunk(1, (b"a\n",), 1, ())]),
        (b"a\n", [Hunk(0, (b"a\n", b"b\n"), 0, ())]),
        (b"a\n", [Hunk(2, (), 2, (b"b\n",))]),
        (b"a\n", [Hunk(-1, (), -1, (b"b\n",))]),
        # The user took the final newline away: the insertion would join two lines.
        (b"a", [Hunk(1, (), 1, (b"b\n",))]),
        # The same hunk twice.
        (b"a\n", [Hunk(1, (), 1, (b"b\n",)), Hunk(1, (), 1, (b"b\n",))]),
        (b"a\na\n", [Hunk(0, (b"a\n",), 0, ()), Hunk(0, (b"a\n",), 0, ())]),
    ],
)
def test_content_that_does_not_match_a_hunk_is_refused(content: bytes, chosen: list[Hunk]) -> None:
    with pytest.raises(ValueError):
        apply_hunks(content, chosen)
    turned = [
        Hunk(hunk.new_start, hunk.new_lines, hunk.old_start, hunk.old_lines) for hunk in chosen
    ]
    with pytest.raises(ValueError):
        revert_hunks(content, turned)


def test_random_edits_are_found_about_as_small_as_difflib_finds_them() -> None:
    lines = edited(numbered(b"line", 300), 60, [b"}\n", b"\n", b"return\n"])
    for seed in range(20):
        dice = random.Random(seed)
        new = list(lines)
        for _ in range(30):
            place = dice.randrange(len(new))
            new[place : place + dice.randrange(3)] = dice.choices(lines, k=dice.randrange(3))
        ours = sum(line_counts(b"".join(lines), b"".join(new)))
        matcher = difflib.SequenceMatcher(None, lines, new, autojunk=False)
        theirs = sum(
            old_end - old_start + new_end - new_start
            for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes()
            if tag != "equal"
        )
        assert ours <= 3 * theirs
