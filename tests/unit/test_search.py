"""Search: what finds an entry, what a hit says, and that the index is always what it must be."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner

from mulligan.cli.group import mulligan
from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    COMPACT_MARKER,
    FILE_EDIT,
    TOOL_CALL,
    TOOL_RESULT,
    USER_INPUT,
    NewEntry,
)
from mulligan.errors import NotFound, UsageError
from mulligan.journal import append, sessions
from mulligan.journal.append import Appender
from mulligan.workspace.search import search as searching
from mulligan.workspace.search.search import SearchResult, rebuild, search, search_everywhere
from mulligan.workspace.workspace import Workspace, open_workspace

IDS = (f"{os.getpid()}-{number}" for number in itertools.count())


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    with open_workspace(project) as opened:
        yield opened


def record(
    workspace: Workspace, *given: NewEntry, session: int | None = None, **values: Any
) -> int:
    """Append entries to a session, a new one by default; return its number."""
    with workspace.project.journal.writing() as db:
        if session is None:
            session = sessions.insert(db, next(IDS), "2026-01-01T00:00:00.000Z", values)
        appender = Appender(db, session, new_id=lambda: next(IDS), now=time.time_ns)
        for entry in given:
            appender.append(entry)
        appender.finish()
    return session


def say(text: str, **values: Any) -> NewEntry:
    return NewEntry(USER_INPUT, text, **values)


def entries(found: SearchResult) -> list[str]:
    return [hit.entry for hit in found.hits]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("It was running all night", "run"),
        ("It was running all night", "RUNS"),
        ("It was running all night", "night it"),
        ("Le café est fermé", "cafe"),
        ("call foo-bar now", "foo-bar"),
        ("call foo-bar now", "foo_bar"),
        ("written in C++ and C", "C++"),
        ('he said "yes"', '"'),
        ('he said "yes"', '"yes'),
        ("this AND that", "AND"),
        ("this AND that", "that AND this"),
        ("f(x) = 1", "("),
        ("f(x) = 1", "f(x)"),
        ("a * b", "*"),
        ("x => y", "=>"),
        ("party 🎉 tonight", "🎉"),
        ("party 🎉 tonight", "party 🎉"),
        ("\x1b[1;31mred\x1b[0mdish", "reddish"),
        ("before\0after", "after"),
        ("before\0after", "before\0after"),
        ("content: NEAR(a b)", "content: NEAR(a"),
        ("日本語 の文", "日本語"),
        ("half \ud800 of a character", "character"),
        ("word " * 2000, "word " * 2000),
    ],
)
def test_any_text_is_searched_for_as_it_is(workspace: Workspace, content: str, text: str) -> None:
    record(workspace, say(content, id="here"), say("nothing of the kind"))
    assert entries(search(workspace.project, text)) == ["here"]


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "missing", "here missing", "=>", "((((", "\ud800", "a" * 10_000, "*"]
)
def test_what_is_not_there_is_not_found(workspace: Workspace, text: str) -> None:
    record(workspace, say("here is some text"))
    assert search(workspace.project, text).hits == ()


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (NewEntry(TOOL_CALL, "", {"name": "Bash", "input": {"command": "make deploy"}}), "deploy"),
        (NewEntry(TOOL_CALL, "", {"name": "WebFetch", "input": {}}), "webfetch"),
        (NewEntry(TOOL_CALL, "", {"name": "x", "input": {"a": [{"b": 4711}]}}), "4711"),
        (NewEntry(TOOL_CALL, "", {"name": "x", "input": "plain words"}), "plain"),
        (NewEntry(TOOL_CALL, "", {"name": "x", "status": "error", "output": "boom"}), "boom"),
        (NewEntry(TOOL_RESULT, "the output", {"call": "1"}), "output"),
        (NewEntry(FILE_EDIT, "", {"path": "src/app.py", "operation": "modify"}), "app.py"),
        (NewEntry(FILE_EDIT, "", {"path": "b", "old_path": "former"}), "former"),
        (NewEntry(FILE_EDIT, "", {"path": "b", "diff": "-gone\n+come"}), "come"),
        (NewEntry(COMPACT_MARKER, "", {"compactedCount": 3, "summary": "All went well"}), "well"),
        (NewEntry(TOOL_CALL, "", {"name": "x", "input": {"a": "odd \ud800 half"}}), "half"),
    ],
)
def test_tools_paths_differences_and_summaries_are_searched(
    workspace: Workspace, entry: NewEntry, text: str
) -> None:
    record(workspace, say("first"), entry._replace(id="here"))
    found = search(workspace.project, text)
    assert entries(found) == ["here"]
    assert "<mark>" in found.hits[0].snippet


def test_a_snippet_marks_what_matched_and_leaves_out_the_rest(workspace: Workspace) -> None:
    words = " ".join(f"w{number}" for number in range(500))
    record(workspace, say(f"{words} the runner was running home {words}"))
    snippet = search(workspace.project, "run home").hits[0].snippet
    assert "the runner was <mark>running</mark> <mark>home</mark>" in snippet
    assert snippet.startswith("...")
    assert snippet.endswith("...")
    assert len(snippet.split()) <= 34


@pytest.mark.parametrize("where", ["start", "middle", "end"])
def test_a_match_anywhere_in_a_long_text_is_shown(workspace: Workspace, where: str) -> None:
    filler = "filter filled film " * 20_000
    text = {
        "start": f"filing {filler}",
        "middle": f"{filler} filing {filler}",
        "end": f"{filler} filing",
    }[where]
    record(workspace, NewEntry(TOOL_RESULT, text), say("Füße " * 20_000 + "Äpfel"))
    assert "<mark>filing</mark>" in search(workspace.project, "filings").hits[0].snippet
    assert "<mark>Äpfel</mark>" in search(workspace.project, "apfel").hits[0].snippet


def test_a_snippet_is_short_even_where_words_are_endless(workspace: Workspace) -> None:
    record(workspace, say("a" * 100_000 + " needle " + "b" * 100_000))
    assert "<mark>needle</mark>" in search(workspace.project, "needle").hits[0].snippet
    assert len(search(workspace.project, "needle").hits[0].snippet) < 1_000
    assert len(search(workspace.project, "a" * 100_000).hits[0].snippet) < 1_000


def test_a_hit_says_where_it_is(workspace: Workspace) -> None:
    number = record(workspace, say("one"), say("two words", id="e2"), agent="pi", title="Counting")
    session = sessions.by_number(workspace.project.journal, number)
    assert session is not None
    (hit,) = search(workspace.project, "two").hits
    assert hit.project == workspace.root
    assert (hit.session, hit.title, hit.agent) == (session.id, "Counting", "pi")
    assert (hit.entry, hit.seq, hit.type) == ("e2", 2, USER_INPUT)
    assert hit.snippet == "<mark>two</mark> words"
    assert hit.score > 0
    data = json.loads(json.dumps(search(workspace.project, "two").as_json()))
    assert data["total"] == 1
    assert data["hits"][0]["snippet"] == "<mark>two</mark> words"


def test_what_was_said_ranks_before_what_tools_gave(workspace: Workspace) -> None:
    filler = [say(f"something else {number}") for number in range(20)]
    record(
        workspace,
        say("the zebra, of all things, was mentioned by the user", id="said"),
        NewEntry(TOOL_RESULT, "the zebra, of all things, was in the output of it", id="tool"),
        say("zebra zebra", id="often"),
        *filler,
    )
    found = search(workspace.project, "zebra")
    assert entries(found) == ["often", "said", "tool"]
    assert sorted((hit.score for hit in found.hits), reverse=True) == [h.score for h in found.hits]


def test_of_equals_the_newest_is_first_whichever_session_it_is_in(workspace: Workspace) -> None:
    first = record(workspace, say("same", created_at="2026-01-01T00:00:00Z", id="a"))
    record(workspace, say("same", created_at="2026-01-02T00:00:00Z", id="b"))
    record(workspace, say("same", created_at="2026-01-03T00:00:00Z", id="c"), session=first)
    assert entries(search(workspace.project, "same")) == ["c", "b", "a"]
    assert entries(search(workspace.project, "same", limit=1, offset=1)) == ["b"]


def test_of_very_many_equals_the_newest_are_first_whichever_session_they_are_in(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "CHUNK_ENTRIES", 10)
    numbers = [record(workspace, say("word")) for _ in range(6)]
    for turn in range(40):
        record(workspace, say("word"), session=numbers[turn * turn % 6])
    found = search(workspace.project, "word", limit=100)
    times = [hit.created_at for hit in found.hits]
    assert found.total == 46 and times == sorted(times, reverse=True)
    for limit, offset in ((1, 0), (7, 0), (20, 0), (5, 12), (45, 0)):
        some = search(workspace.project, "word", limit=limit, offset=offset)
        assert some.hits == found.hits[offset : offset + limit] and some.total == 46


def test_an_index_that_was_made_anew_elsewhere_is_noticed(workspace: Workspace) -> None:
    record(workspace, say("one word"))
    assert search(workspace.project, "word").total == 1
    path = Path(workspace.project.location.path("search.sqlite"))
    for each in path.parent.glob("search.sqlite*"):
        each.unlink()
    with open_workspace(workspace.root) as other:
        record(other, say("another word"))
        assert search(other.project, "word").total == 2
        assert search(workspace.project, "word").total == 2
        held = {os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")}
        assert str(path) in held
        assert not [each for each in held if each.startswith(f"{path} (deleted)")]


def test_twenty_hits_in_a_session_and_fifty_in_all(workspace: Workspace) -> None:
    number = record(workspace, *(say("hello") for _ in range(60)))
    session = sessions.by_number(workspace.project.journal, number)
    assert session is not None
    inside, everywhere = (
        search(workspace.project, "hello", session=session.id),
        search(workspace.project, "hello"),
    )
    assert (len(inside.hits), inside.total) == (20, 60)
    assert (len(everywhere.hits), everywhere.total) == (50, 60)
    assert len(search_everywhere(workspace.project.home, "hello").hits) == 50
    assert len(search(workspace.project, "hello", limit=7).hits) == 7
    assert search(workspace.project, "hello", limit=0).hits == ()


def test_pages_together_are_everything_once(workspace: Workspace) -> None:
    record(workspace, *(say("hello " * (number % 7 + 1)) for number in range(60)))
    pages = [search(workspace.project, "hello", limit=8, offset=start) for start in range(0, 64, 8)]
    seen = [entry for page in pages for entry in entries(page)]
    assert len(seen) == len(set(seen)) == 60
    assert seen == entries(search(workspace.project, "hello", limit=100))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"agent": "pi"}, ["p1", "p2"]),
        ({"agent": "nobody"}, []),
        ({"types": [ASSISTANT_OUTPUT]}, ["p2"]),
        ({"types": [ASSISTANT_OUTPUT, FILE_EDIT]}, ["p2", "c2"]),
        ({"after": "2026-01-02T00:00:00Z"}, ["p2", "c2"]),
        ({"before": "2026-01-02T00:00:00Z"}, ["p1", "c1"]),
        ({"after": "2026-01-01T00:00:01Z", "before": "2026-01-03T00:00:00Z"}, ["p2"]),
        ({"after": "2030-01-01T00:00:00Z"}, []),
        ({"agent": "codex", "types": [USER_INPUT]}, ["c1"]),
        ({"path": "src"}, ["c2"]),
        ({"path": "src/app.py"}, ["c2"]),
        ({"path": "./src/"}, ["c2"]),
        ({"path": "*.py"}, ["c2"]),
        ({"path": "s?c/[ab]pp.*"}, ["c2"]),
        ({"path": "sr"}, []),
        ({"path": "src/app"}, []),
        ({"include_compacted": False}, ["p1", "p2", "c2"]),
    ],
)
def test_filters(workspace: Workspace, filters: dict[str, Any], expected: list[str]) -> None:
    record(
        workspace,
        say("word", id="p1", created_at="2026-01-01T00:00:00Z"),
        NewEntry(ASSISTANT_OUTPUT, "word", id="p2", created_at="2026-01-02T00:00:00Z"),
        agent="pi",
    )
    edit = {"path": "src/app.py", "operation": "modify"}
    record(
        workspace,
        say("word", id="c1", created_at="2026-01-01T00:00:00Z", is_compacted=True),
        NewEntry(FILE_EDIT, "word", edit, id="c2", created_at="2026-01-03T00:00:00Z"),
        agent="codex",
    )
    assert sorted(entries(search(workspace.project, "word", **filters))) == sorted(expected)
    found = search_everywhere(workspace.project.home, "word", **filters)
    assert sorted(entries(found)) == sorted(expected)


def test_text_without_a_word_is_found_with_filters_too(workspace: Workspace) -> None:
    edit = {"path": "src/app.py", "operation": "modify", "diff": "+x => y"}
    record(workspace, say("a => b", id="p1"), agent="pi")
    record(workspace, NewEntry(FILE_EDIT, "", edit, id="p2"), agent="pi")
    record(workspace, say("a => b", id="c1"), agent="codex")
    record(workspace, say('nothing but JSON holds ":"'), agent="pi")
    assert entries(search(workspace.project, "=>")) == ["c1", "p2", "p1"]
    assert entries(search(workspace.project, "=>", agent="pi")) == ["p2", "p1"]
    assert entries(search(workspace.project, "=>", types=[FILE_EDIT])) == ["p2"]
    assert entries(search(workspace.project, "=>", path="src")) == ["p2"]
    assert search(workspace.project, "=>").hits[0].snippet == "a <mark>=></mark> b"
    assert search(workspace.project, '":').hits[0].type == USER_INPUT
    assert search(workspace.project, '","').hits == ()


def test_a_path_finds_what_tools_were_told_about_it_however_they_named_it(
    workspace: Workspace,
) -> None:
    absolute = os.path.join(workspace.root, "src/app.py")
    record(
        workspace,
        NewEntry(TOOL_CALL, "", {"name": "Read", "input": {"file_path": absolute}}, id="absolute"),
        NewEntry(TOOL_CALL, "", {"name": "Read", "input": {"paths": ["src/app.py"]}}, id="listed"),
        NewEntry(TOOL_CALL, "", {"name": "Read", "input": {"path": "lib/src/app.py"}}, id="other"),
        NewEntry(FILE_EDIT, "", {"path": "src/app.py", "operation": "delete"}, id="edit"),
        say("src/app.py is only mentioned here"),
    )
    for path in ("src/app.py", absolute, "src/*.py"):
        assert sorted(entries(search(workspace.project, "", path=path))) == [
            "absolute",
            "edit",
            "listed",
        ]
    assert entries(search(workspace.project, "read", path="src")) == ["listed", "absolute"]


def test_a_filter_that_makes_no_sense_is_refused(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="nonsense"):
        search(workspace.project, "x", types=["nonsense"])
    with pytest.raises(UsageError, match="yesterday"):
        search(workspace.project, "x", after="yesterday")
    with pytest.raises(NotFound):
        search(workspace.project, "x", session="missing")


def test_raw_queries_have_a_syntax_and_say_what_is_wrong_with_one(workspace: Workspace) -> None:
    record(workspace, say("parse the test", id="a"), say("parser without it", id="b"))
    assert entries(search(workspace.project, "pars* NOT test", raw=True)) == ["b"]
    assert entries(search(workspace.project, '"parse the"', raw=True)) == ["a"]
    assert entries(search(workspace.project, "content : test", raw=True)) == ["a"]
    assert search(workspace.project, "  ", raw=True).hits == ()
    for wrong in ("(", "a AND", '"a', "a) OR (b", "*reads", "nothing:a", "kind:a", "a\0"):
        with pytest.raises(UsageError, match=r"raw query|NUL"):
            search(workspace.project, wrong, raw=True)


def test_as_you_type_every_beginning_of_a_word_finds_it(workspace: Workspace) -> None:
    record(workspace, say("they were running a configuration", id="here"), say("other words"))
    for word in ("running", "configuration"):
        for length in range(3, len(word) + 1):
            text = f"they {word[:length]}"
            assert entries(search(workspace.project, text, as_you_type=True)) == ["here"], text
    assert search(workspace.project, "they conf").hits == ()
    assert search(workspace.project, "they conf ", as_you_type=True).hits == ()


def test_what_is_appended_is_found_at_the_next_search(workspace: Workspace) -> None:
    number = record(workspace, say("one"))
    assert len(search(workspace.project, "two").hits) == 0
    record(workspace, say("two"), session=number)
    assert len(search(workspace.project, "two").hits) == 1
    assert len(search(workspace.project, "one").hits) == 1


def test_the_output_of_a_tool_call_is_found_once_it_is_there(workspace: Workspace) -> None:
    data = {"name": "Bash", "input": {"command": "ls"}, "status": "running", "call": "c1"}
    number = record(workspace, NewEntry(TOOL_CALL, "", data, id="call"))
    assert search(workspace.project, "needle").hits == ()
    with workspace.project.journal.writing() as db:
        append.end_call(db, number, "c1", status="success", output="a needle")
    assert entries(search(workspace.project, "needle")) == ["call"]
    assert entries(search(workspace.project, "ls")) == ["call"]
    assert search(workspace.project, "bash").total == 1


def test_what_is_compacted_is_still_found(workspace: Workspace) -> None:
    number = record(workspace, say("one", id="e1"), say("one more"))
    assert search(workspace.project, "one").total == 2
    with workspace.project.journal.writing() as db:
        append.mark_compacted(db, number, 2)
    assert search(workspace.project, "one").total == 2
    assert "e1" not in entries(search(workspace.project, "one", include_compacted=False))


def test_a_deleted_session_is_not_found(workspace: Workspace) -> None:
    kept, gone = record(workspace, say("one", id="kept")), record(workspace, say("one"))
    never_seen = record(workspace, say("one"))
    with workspace.project.journal.writing() as db:
        sessions.delete(db, never_seen)
    assert search(workspace.project, "one").total == 2
    with workspace.project.journal.writing() as db:
        sessions.delete(db, gone)
    assert entries(search(workspace.project, "one")) == ["kept"]
    assert indexed(workspace) == {(kept << 32) | 1}


def test_the_index_can_be_made_anew(workspace: Workspace) -> None:
    record(workspace, *(say(f"word {number}") for number in range(30)))
    before = search(workspace.project, "word", limit=100)
    rebuild(workspace.project)
    assert search(workspace.project, "word", limit=100) == before
    os.unlink(workspace.project.location.path("search.sqlite"))
    assert search(workspace.project, "word", limit=100) == before


def test_many_batches_leave_nothing_out(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mulligan.journal.search.index.BATCH_ENTRIES", 7)
    monkeypatch.setattr("mulligan.journal.search.index.BATCH_BYTES", 100)
    number = record(workspace, *(say(f"word {'x' * (n % 60)}") for n in range(40)))
    assert search(workspace.project, "word").total == 40
    record(workspace, *(say(f"word {'x' * (n % 60)}") for n in range(40)), session=number)
    assert search(workspace.project, "word").total == 80


def truncated(path: Path) -> None:
    os.truncate(path, 3000)


def overwritten(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)


def broken_inside(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))


def newer(path: Path) -> None:
    execute(path, "PRAGMA user_version = 99")


def of_another_format(path: Path) -> None:
    execute(path, "UPDATE state SET format = 99")


def without_a_table(path: Path) -> None:
    execute(path, "DROP TABLE state")


def without_words(path: Path) -> None:
    execute(path, "DROP TABLE words")


def without_a_state(path: Path) -> None:
    execute(path, "DELETE FROM state")


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [
        truncated, overwritten, broken_inside, newer, of_another_format, without_a_table,
        without_words, without_a_state, empty,
    ],
)  # fmt: skip
def test_a_damaged_index_is_replaced_and_nothing_is_lost(workspace: Workspace, damage: Any) -> None:
    number = record(workspace, *(say(f"word {'filler ' * 50}{each}") for each in range(300)))
    before = search(workspace.project, "word", limit=1000)
    damage(Path(workspace.project.location.path("search.sqlite")))
    assert search(workspace.project, "word", limit=1000) == before
    record(workspace, say("word again"), session=number)
    assert search(workspace.project, "word").total == 301


def test_the_index_of_another_journal_is_replaced(workspace: Workspace) -> None:
    """As when the journal is put back from a backup."""
    backup = Path(workspace.project.location.path("backup.sqlite"))
    record(workspace, say("first", id="first"))
    workspace.project.journal.rows("VACUUM INTO ?", str(backup))
    record(workspace, say("later"), say("later still"))
    assert search(workspace.project, "later").total == 2
    workspace.close()
    journal = Path(workspace.project.location.path("journal.sqlite"))
    for path in journal.parent.glob("journal.sqlite*"):
        path.unlink()
    backup.rename(journal)
    with open_workspace(workspace.root) as again:
        assert search(again.project, "later").hits == ()
        assert entries(search(again.project, "first")) == ["first"]
        record(again, say("different"), say("different too"), say("different as well"))
        assert search(again.project, "different").total == 3


def test_damage_to_the_journal_is_not_taken_for_damage_to_the_index(workspace: Workspace) -> None:
    record(workspace, *(say(f"word {'filler ' * 50}{each}") for each in range(300)))
    assert search(workspace.project, "word").hits
    index = Path(workspace.project.location.path("search.sqlite"))
    inode = index.stat().st_ino
    workspace.close()
    broken_inside(Path(workspace.project.location.path("journal.sqlite")))
    found = search_everywhere(workspace.project.home, "word")
    assert found.hits == ()
    assert "journal.sqlite" in found.problems[0]
    assert index.stat().st_ino == inode


def test_all_projects_are_searched_and_a_damaged_one_is_named(
    workspace: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    record(workspace, say("shared word", id="one"), say("filler"))
    for name in ("two", "bad"):
        with open_workspace(tmp_path_factory.mktemp(name)) as other:
            record(other, say("shared word", id=name), say("filler"))
    bad = Path(other.project.location.path("journal.sqlite"))
    found = search_everywhere(workspace.project.home, "shared")
    assert sorted(entries(found)) == ["bad", "one", "two"]
    assert (found.total, found.problems) == (3, ())
    overwritten(bad)
    found = search_everywhere(workspace.project.home, "shared")
    assert sorted(entries(found)) == ["one", "two"]
    assert found.hits[0].project != found.hits[1].project
    assert len(found.problems) == 1
    assert other.root in found.problems[0]
    assert searching.rebuild_everywhere(workspace.project.home) == found.problems


def test_a_hit_names_the_nearest_checkpoint_on_its_own_path(workspace: Workspace) -> None:
    first, second, third = (workspace.checkpoint(str(each)).id for each in range(3))
    record(
        workspace,
        say("leaf zero", id="e1"),
        say("leaf one", id="e2", checkpoint=first),
        say("leaf two", id="e3"),
        say("leaf three", id="e4", checkpoint=second),
        say("leaf four", id="e5"),
        say("leaf five", id="e6", parent="e3"),
        say("leaf six", id="e7"),
        say("leaf seven", id="e8", parent="e1"),
        say("leaf eight", id="e9", parent="e7", checkpoint=third),
        say("leaf nine", id="e10", parent="e7", off_path=True),
        say("leaf ten", id="e11", parent=None),
    )
    record(workspace, say("leaf elsewhere", id="x1"))
    found = {hit.entry: hit.checkpoint for hit in search(workspace.project, "leaf").hits}
    assert found == {
        "e1": None, "e2": first, "e3": first, "e4": second, "e5": second, "e6": first,
        "e7": first, "e8": None, "e9": third, "e10": first, "e11": None, "x1": None,
    }  # fmt: skip


def test_processes_append_and_search_at_once(workspace: Workspace) -> None:
    """Two append and two search; in the end everything is found, and once."""
    appending = """
        import sys, time
        sys.path.insert(0, sys.argv[2])
        from test_search import record, say
        from mulligan.workspace.workspace import open_workspace
        with open_workspace(sys.argv[1]) as workspace:
            number = record(workspace, say("word"))
            for each in range(60):
                record(workspace, say(f"word {each}", id=f"{number}-{each}"), session=number)
    """
    looking = """
        import sys
        from mulligan.workspace.workspace import open_workspace
        from mulligan.workspace.search.search import search
        with open_workspace(sys.argv[1]) as workspace:
            before = 0
            for _ in range(60):
                total = search(workspace.project, "word").total
                assert total >= before, (total, before)
                before = total
    """
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                textwrap.dedent(code),
                workspace.root,
                str(Path(__file__).parent),
            ]
        )
        for code in (appending, looking, appending, looking)
    ]
    assert [process.wait(120) for process in running] == [0, 0, 0, 0]
    found = search(workspace.project, "word", limit=1000)
    assert len(found.hits) == found.total == 122
    rebuild(workspace.project)
    assert search(workspace.project, "word", limit=1000) == found


def test_threads_search_while_one_makes_the_index_anew(workspace: Workspace) -> None:
    record(workspace, *(say(f"word {each}") for each in range(40)))

    def look(which: int) -> set[int | None]:
        totals = set()
        for _ in range(15):
            if which == 0:
                rebuild(workspace.project)
            totals.add(search(workspace.project, "word").total)
        return totals

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(look, range(3))) == [{40}] * 3


def test_a_process_that_dies_while_it_catches_up_leaves_a_good_index(workspace: Workspace) -> None:
    number = record(workspace, *(say(f"word {each}") for each in range(50)))
    dying = """
        import os, sys
        from mulligan.journal.search import index
        from mulligan.workspace.search.search import rebuild
        from mulligan.workspace.workspace import open_workspace
        index.BATCH_ENTRIES = 7
        def progress(stage, done, total):
            if done >= 21:
                os._exit(9)
        with open_workspace(sys.argv[1], progress=progress) as workspace:
            rebuild(workspace.project)
    """
    for _ in range(2):
        command = [sys.executable, "-c", textwrap.dedent(dying), workspace.root]
        assert subprocess.run(command, check=False, timeout=60).returncode == 9
    assert len(indexed(workspace)) == 21
    record(workspace, say("word at last"), session=number)
    assert search(workspace.project, "word").total == 51
    assert len(indexed(workspace)) == 51


def test_a_missing_journal_is_not_made_by_a_search(workspace: Workspace) -> None:
    workspace.close()
    journal = Path(workspace.project.location.path("journal.sqlite"))
    for path in journal.parent.glob("journal.sqlite*"):
        path.unlink()
    assert search_everywhere(workspace.project.home, "word").hits == ()
    assert not journal.exists()


def run(workspace: Workspace, *arguments: str, code: int = 0) -> tuple[str, str]:
    given = ["-C", workspace.root, "search", *arguments]
    done = CliRunner().invoke(mulligan, given, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout, done.stderr


def test_the_command_shows_what_is_needed_to_go_on(workspace: Workspace) -> None:
    checkpoint = workspace.checkpoint("before").id
    record(
        workspace,
        say("Why is the\n  parser \x1b[31mrunning\x1b[0m \a?", id="e1", checkpoint=checkpoint),
        agent="pi",
        title="Mend the parser",
    )
    text, words = run(workspace, "run", "parser")
    assert "Mend the parser  pi · you · 0 s ago" in text
    assert "Why is the parser running \\x07?" in text
    assert "entry e1" in text
    assert f"checkpoint {checkpoint[:8]}" in text
    assert words == ""
    assert workspace.root in run(workspace, "--all", "parser")[0]
    data = json.loads(run(workspace, "parser", "--json")[0])
    assert data["hits"][0]["checkpoint"] == checkpoint


def test_the_command_takes_any_text_and_says_what_it_cannot_take(workspace: Workspace) -> None:
    record(workspace, say("foo-bar --baz C++"), *(say("often") for _ in range(60)))
    assert "foo-bar" in run(workspace, "foo-bar")[0]
    assert "foo-bar" in run(workspace, "--", "--baz")[0]
    assert run(workspace, "missing") == ("", "Nothing found.\n")
    assert "50 of 60 hits" in run(workspace, "often")[1]
    assert "made anew" in run(workspace, "--rebuild")[1]
    assert "raw query" in run(workspace, "--raw", "(", code=2)[1]
    for wrong in ([], ["x", "--since", "soon"], ["x", "--session", "@", "--all"]):
        run(workspace, *wrong, code=2)
    run(workspace, "x", "--session", "missing", code=3)


@pytest.mark.parametrize(("given", "count"), [("2d", 1), ("9000d", 2), ("2025-06-01", 1)])
def test_the_command_knows_ages_and_dates(workspace: Workspace, given: str, count: int) -> None:
    record(workspace, say("word", created_at="2025-01-01T00:00:00Z"), say("word"))
    assert len(json.loads(run(workspace, "word", "--since", given, "--json")[0])["hits"]) == count
    left = json.loads(run(workspace, "word", "--before", given, "--json")[0])["hits"]
    assert len(left) == 2 - count


def test_the_command_knows_paths_from_where_the_user_is(workspace: Workspace) -> None:
    record(workspace, NewEntry(FILE_EDIT, "", {"path": "src/app.py", "operation": "create"}))
    below = Path(workspace.root, "src")
    below.mkdir()
    given = ["-C", str(below), "search", "--json", "--path", "app.py"]
    done = CliRunner().invoke(mulligan, given, catch_exceptions=False)
    assert len(json.loads(done.stdout)["hits"]) == 1


def indexed(workspace: Workspace) -> set[int]:
    db = apsw.Connection(workspace.project.location.path("search.sqlite"))
    return {row[0] for row in db.execute("SELECT rowid FROM words")}


def execute(path: Path, sql: str) -> None:
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()
