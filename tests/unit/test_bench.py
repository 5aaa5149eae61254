"""The benchmark measures what it says: equal trees, equal edits, honest arithmetic."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import corpora, report
from bench.contestant import Contestant, allocated
from bench.corpora import Corpus
from bench.peers import PEERS
from bench.report import LIBRARY, WATCHER, Bar
from bench.scenarios import SCENARIOS, Course, journey

TINY = Corpus("S", 300, 600_000, ignored=30, large=2, large_bytes=300_000)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tiny corpus is made once, for the tests that only copy it."""
    return tmp_path_factory.mktemp("cache")


def picture(root: Path) -> dict[str, tuple[str, int]]:
    """Every file by name, with its content's hash and its time."""
    return {
        str(path.relative_to(root)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in root.rglob("*")
        if path.is_file()
    }


def test_a_corpus_comes_out_the_same_every_time(tmp_path: Path) -> None:
    one = corpora.make(TINY, tmp_path / "one")
    other = corpora.make(TINY, tmp_path / "other")
    assert picture(one.root) == picture(other.root)
    assert one.texts == other.texts


def test_a_corpus_has_the_files_and_the_bytes_that_it_states(tmp_path: Path) -> None:
    tree = corpora.make(TINY, tmp_path)
    sizes = {path: path.stat().st_size for path in tree.root.rglob("*") if path.is_file()}
    plain = {
        path: size
        for path, size in sizes.items()
        if path.relative_to(tree.root).parts[0] in ("src", "lib", "tests")
    }
    assert len(plain) == TINY.files
    assert sum(plain.values()) == pytest.approx(TINY.bytes, rel=0.02)
    assert len(set(map(Path.read_bytes, plain))) == TINY.files
    assert [sizes[tree.root / path] for path in tree.large] == [300_000, 300_000]
    ignored = [path for path in sizes if {"node_modules", "build"} & set(path.parts)]
    assert len(ignored) == TINY.ignored


def test_a_corpus_is_kept_and_an_unfinished_one_is_made_again(tmp_path: Path) -> None:
    tree = corpora.make(TINY, tmp_path)
    before = tree.root.stat().st_ino
    assert corpora.make(TINY, tmp_path).root.stat().st_ino == before
    (tree.root.parent / "corpus.json").unlink()
    (tree.root / tree.texts[0]).unlink()
    assert (corpora.make(TINY, tmp_path).root / tree.texts[0]).exists()


def test_every_copy_gets_the_same_changes_and_the_corpus_none(cache: Path, tmp_path: Path) -> None:
    tree = corpora.make(TINY, cache)
    untouched = picture(tree.root)
    copies = [corpora.copy(tree, tmp_path / name) for name in ("one", "other")]
    assert picture(copies[0].root) == untouched
    for copy in copies:
        for label in ("first", "second"):
            corpora.plan(copy, label, edits=9, adds=4, deletes=5).apply(copy.root)
    contents = [{path: seen[0] for path, seen in picture(copy.root).items()} for copy in copies]
    assert contents[0] == contents[1]
    assert contents[0] != {path: seen[0] for path, seen in untouched.items()}
    assert picture(tree.root) == untouched


def test_a_change_edits_adds_and_deletes_as_many_as_asked(tmp_path: Path) -> None:
    tree = corpora.make(TINY, tmp_path)
    change = corpora.plan(tree, "count", edits=9, adds=4, deletes=5)
    kinds = [(change.before[path] is None, change.after[path] is None) for path in change.after]
    assert kinds.count((False, False)) == 9
    assert kinds.count((True, False)) == 4
    assert kinds.count((False, True)) == 5
    assert all(change.after[path] != change.before[path] for path in change.after)


def test_a_change_that_was_not_undone_is_noticed(tmp_path: Path) -> None:
    tree = corpora.make(TINY, tmp_path)
    change = corpora.plan(tree, "undo", edits=2, adds=2, deletes=2)
    assert change.not_undone(tree.root) == []
    change.apply(tree.root)
    assert sorted(change.not_undone(tree.root)) == sorted(change.after)
    edited = change.edited[0]
    (tree.root / edited).write_bytes(change.before[edited] or b"")
    assert change.not_undone(tree.root, edited) == []
    assert len(change.not_undone(tree.root)) == 5


def test_one_byte_changes_one_byte_in_the_middle(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes(1_001))
    corpora.change_one_byte(file)
    assert file.read_bytes() == bytes(500) + b"\xff" + bytes(500)


@pytest.mark.parametrize("name", ["git", "git-tuned", "opencode", "cline"])
def test_a_peer_goes_the_whole_way_and_restores_every_byte(
    name: str, cache: Path, tmp_path: Path
) -> None:
    kind = PEERS[name]
    if kind.missing():
        pytest.skip(f"{name}: {kind.missing()}")
    tree = corpora.copy(corpora.make(TINY, cache), tmp_path / "tree")
    (tmp_path / "state").mkdir()
    seen: dict[str, list[float]] = {}
    contestant = kind(tree.root, tmp_path / "state")
    course = Course("S", SCENARIOS, takes=1, row=2)
    for _ in journey(
        contestant, tree, course, lambda key, value: seen.setdefault(key, []).append(value)
    ):
        pass
    assert set(seen) == {key for key, scenario in SCENARIOS.items() if "S" in scenario.corpora}
    assert all(len(values) == 1 for values in seen.values())
    assert seen["row-disk"][0] > 0


def test_both_versions_of_a_large_file_are_asked_back(cache: Path, tmp_path: Path) -> None:
    kind = PEERS["git"]
    if kind.missing():
        pytest.skip(f"git: {kind.missing()}")
    tree = corpora.copy(corpora.make(TINY, cache), tmp_path / "tree")
    before = (tree.root / tree.large[0]).read_bytes()
    (tmp_path / "state").mkdir()
    seen: list[str] = []
    course = Course("B", SCENARIOS, takes=1)
    contestant = kind(tree.root, tmp_path / "state")
    for _ in journey(contestant, tree, course, lambda key, value: seen.append(key)):
        pass
    assert seen == ["first", "disk", "byte", "byte-disk"]
    after = (tree.root / tree.large[0]).read_bytes()
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1


def test_a_restore_that_leaves_bytes_behind_ends_the_journey(cache: Path, tmp_path: Path) -> None:
    class Idle(Contestant):
        def checkpoint(self) -> float:
            return 0.0

        diff = restore_last = checkpoint

        def restore_one(self, path: str) -> float:
            return 0.0

    tree = corpora.copy(corpora.make(TINY, cache), tmp_path / "tree")
    course = Course("S", ["restore"], takes=1)
    with pytest.raises(RuntimeError, match="a restore left 1 paths"):
        list(journey(Idle(tree.root, tmp_path), tree, course, lambda key, value: None))


def test_a_ratio_is_that_of_the_medians_against_the_fastest_peer_that_counts() -> None:
    samples = {
        "M": {
            "git": {"same": [0.01]},  # fast, but not one of the best peers
            "git-tuned": {"same": [0.4, 0.2, 9.0]},
            "opencode": {"same": [0.5]},
            LIBRARY: {"same": [0.3, 0.1, 0.2]},
        }
    }
    [verdict] = report.judge(samples)
    assert verdict.peer == "git-tuned"
    assert verdict.peer_value == 0.4
    assert verdict.value == pytest.approx(0.5)
    assert verdict.outcome == "ok, aim met"


@pytest.mark.parametrize(
    ("ours", "outcome"), [(0.3, "ok, aim met"), (0.5, "ok"), (0.7, "ok"), (0.71, "MISSED")]
)
def test_a_bar_is_met_up_to_its_limit_and_missed_beyond(ours: float, outcome: str) -> None:
    samples = {"M": {"jj": {"diff": [1.0]}, LIBRARY: {"diff": [ours]}}}
    assert [verdict.outcome for verdict in report.judge(samples)] == [outcome]


def test_a_fixed_limit_needs_no_peer() -> None:
    bars = [Bar("byte-disk", LIBRARY, 256 * 1024, 64 * 1024, "B", ())]
    samples = {"B": {LIBRARY: {"byte-disk": [100_000.0, 300_000.0, 200_000.0]}}}
    [verdict] = report.judge(samples, bars)
    assert (verdict.value, verdict.peer, verdict.outcome) == (200_000.0, None, "ok")


def test_a_bar_with_nothing_to_compare_is_left_out() -> None:
    assert report.judge({"M": {LIBRARY: {"first": [1.0]}, "git": {"first": [5.0]}}}) == []
    assert report.judge({"M": {"git-tuned": {"first": [1.0]}}}) == []
    assert report.judge({"S": {LIBRARY: {"first": [1.0]}, "jj": {"first": [5.0]}}}) == []


def test_every_bar_names_a_scenario_that_its_corpora_have() -> None:
    for bar in report.BARS:
        assert set(bar.corpora) <= set(SCENARIOS[bar.scenario].corpora)
        assert bar.aim <= bar.limit


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (123.4, "123"),
        (12.34, "12.3"),
        (1.234, "1.23"),
        (0.1234, "0.123"),
        (0.00123, "0.00123"),
        (0, "0"),
    ],
)
def test_numbers_are_shown_with_three_digits_that_mean_something(value: float, text: str) -> None:
    assert report.significant(value) == text


def test_tables_line_up_and_say_who_missed_what() -> None:
    rows = {"git-tuned": {"first": 1.0, "disk": 5e6}, WATCHER: {"first": 0.5}}
    lines = report.table(rows).splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["git-tuned", "mulligan watcher"]
    assert lines[1].endswith("5.00")
    assert lines[2].endswith("–")
    samples = {"S": {"opencode": {"edits": [1.0]}, WATCHER: {"edits": [0.1]}}}
    text = report.verdict_table(report.judge(samples))
    assert "opencode 1.00" in text
    assert text.endswith("MISSED")


def test_disk_is_counted_in_allocated_blocks(tmp_path: Path) -> None:
    before = allocated(tmp_path)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10_000_000)
    (tmp_path / "full").write_bytes(os.urandom(100_000))
    os.sync()
    assert 100_000 <= allocated(tmp_path) - before < 1_000_000
