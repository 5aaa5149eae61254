"""Test properties of diffs for any pair of contents; git judges the patches."""

import difflib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulligan.core.diff import changed_ranges, compare, split_lines
from mulligan.core.hunks import apply_hunks, hunks, revert_hunks

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")

# Few different lines, so that repetitions, moves and near misses are common.
WORDS = [b"a", b"b", b"c", b"", b"}", b"-- a", b"++ b", b"\\ No", b"\xff\xfe", b"x\ry"]
ENDS = [b"\n", b"\n", b"\r\n"]
line = st.builds(lambda word, end: word + end, st.sampled_from(WORDS), st.sampled_from(ENDS))
contents = st.builds(
    lambda lines, last: b"".join(lines) + last,
    st.lists(line, max_size=25),
    st.sampled_from([b"", b"", b"a", b"b", b"\r"]),
)


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Draw a content and an edited version of it."""
    old = draw(contents)
    lines = split_lines(old)
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(lines)))
        removed = draw(st.integers(0, 3))
        lines[place : place + removed] = draw(st.lists(line, max_size=3))
    return old, b"".join(lines)


pairs = st.one_of(edited(), st.tuples(contents, contents))


def line_counts(old: bytes, new: bytes) -> tuple[int, int]:
    """Return additions and deletions."""
    return compare(old, new, old_name=b"a", new_name=b"b")[1:]


@given(contents)
@settings(deadline=None)
def test_lines_joined_are_the_content(data: bytes) -> None:
    lines = split_lines(data)
    assert b"".join(lines) == data
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines[:-1])


@given(pairs)
@settings(max_examples=400, deadline=None)
def test_ranges_rebuild_new_from_old(pair: tuple[bytes, bytes]) -> None:
    old, new = split_lines(pair[0]), split_lines(pair[1])
    rebuilt: list[bytes] = []
    position = 0
    for number, (old_start, old_end, new_start, new_end) in enumerate(changed_ranges(old, new)):
        assert old_start > position or number == 0
        assert old_end > old_start or new_end > new_start
        rebuilt += old[position:old_start]
        assert len(rebuilt) == new_start
        rebuilt += new[new_start:new_end]
        position = old_end
    assert rebuilt + old[position:] == new


@given(pairs, st.data())
@settings(max_examples=300, deadline=None)
def test_applying_some_hunks_is_reverting_the_others(
    pair: tuple[bytes, bytes], data: st.DataObject
) -> None:
    old, new = pair
    found = hunks(old, new)
    keep = data.draw(st.lists(st.booleans(), min_size=len(found), max_size=len(found)))
    chosen = [hunk for hunk, kept in zip(found, keep, strict=True) if kept]
    others = [hunk for hunk, kept in zip(found, keep, strict=True) if not kept]
    partly = apply_hunks(old, chosen)
    assert partly == revert_hunks(new, others)
    assert apply_hunks(partly, hunks(partly, new)) == new
    assert revert_hunks(partly, hunks(old, partly)) == old


@given(pairs)
@settings(max_examples=300, deadline=None)
def test_differences_are_never_far_from_the_smallest(pair: tuple[bytes, bytes]) -> None:
    old, new = split_lines(pair[0]), split_lines(pair[1])
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    theirs = sum(
        old_end - old_start + new_end - new_start
        for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes()
        if tag != "equal"
    )
    assert sum(line_counts(*pair)) <= 3 * theirs


REPEATED = [b"a\n", b"b\n", b"c\n"]
repeated = st.lists(st.sampled_from(REPEATED), max_size=15)


@given(repeated, repeated)
@settings(max_examples=200, deadline=None)
def test_where_every_line_is_repeated_the_difference_is_the_smallest(
    first: list[bytes], second: list[bytes]
) -> None:
    # Both ends differ, so nothing is set aside, and no line is unique.
    old = [b"old\n", *REPEATED, *first, *REPEATED, b"end of old\n"]
    new = [b"new\n", *second, b"end of new\n"]
    ours = sum(line_counts(b"".join(old), b"".join(new)))
    assert ours == len(old) + len(new) - 2 * longest_common(old, new)


def longest_common(old: list[bytes], new: list[bytes]) -> int:
    """Return the length of the longest common subsequence."""
    above = [0] * (len(new) + 1)
    for line in old:
        row = [0]
        for place, other in enumerate(new):
            row.append(above[place] + 1 if line == other else max(above[place + 1], row[place]))
        above = row
    return above[-1]


def git(folder: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git outside any repository, without the user's configuration."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": folder,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(Path(folder).parent),
        "LC_ALL": "C",
    }
    assert GIT is not None
    return subprocess.run(
        [GIT, *arguments],
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
    )


@needs_git
@given(st.lists(pairs, min_size=1, max_size=30), st.sampled_from([0, 1, 3]))
@settings(max_examples=30, deadline=None)
def test_git_applies_the_diff(batch: list[tuple[bytes, bytes]], context: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        patch = b""
        for number, (old, new) in enumerate(batch):
            Path(folder, f"f{number}").write_bytes(old)
            name = b"f%d" % number
            if old != new:
                patch += b"diff --git a/%b b/%b\n" % (name, name)
                patch += compare(
                    old, new, old_name=b"a/" + name, new_name=b"b/" + name, context=context
                )[0]
        if patch:
            options = ["--whitespace=nowarn", *(["--unidiff-zero"] if context == 0 else [])]
            done = git(folder, "apply", *options, "-", stdin=patch)
            assert done.returncode == 0, done.stderr
        for number, (_, new) in enumerate(batch):
            assert Path(folder, f"f{number}").read_bytes() == new


@st.composite
def plainly_edited(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Draw unique lines with deletions and insertions: only one diff is smallest."""
    old: list[bytes] = []
    new: list[bytes] = []
    for number in range(draw(st.integers(0, 25))):
        kept = draw(st.sampled_from(["both", "both", "both", "old", "new"]))
        text = b"%d\n" % number
        if kept != "new":
            old.append(text)
        if kept != "old":
            new.append(text)
    cut_old, cut_new = draw(st.booleans()), draw(st.booleans())
    return (
        b"".join(old).removesuffix(b"\n" if cut_old else b" "),
        b"".join(new).removesuffix(b"\n" if cut_new else b" "),
    )


@needs_git
@given(st.lists(plainly_edited(), min_size=1, max_size=20), st.sampled_from([0, 1, 3]))
@settings(max_examples=20, deadline=None)
def test_the_diff_equals_gits(batch: list[tuple[bytes, bytes]], context: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        expected = b""
        for side in (0, 1):
            Path(folder, "ab"[side]).mkdir()
            for number, pair in enumerate(batch):
                Path(folder, "ab"[side], f"f{number:02}").write_bytes(pair[side])
        for number, (old, new) in enumerate(batch):
            name = b"f%02d" % number
            expected += compare(
                old, new, old_name=b"a/" + name, new_name=b"b/" + name, context=context
            )[0]
        done = git(folder, "diff", "--no-index", "--no-prefix", f"-U{context}", "a", "b")
        assert done.returncode in (0, 1), done.stderr
        # Git may add the nearest heading after the second @@; we do not.
        theirs = re.sub(rb"^(@@ [^@]* @@).*$", rb"\1", done.stdout, flags=re.MULTILINE)
        theirs = re.sub(rb"^(diff|index) .*\n", b"", theirs, flags=re.MULTILINE)
        assert theirs == expected
