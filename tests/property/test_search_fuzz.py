"""Whatever anybody types is an answerable question, and whatever an entry says can be found."""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    FILE_EDIT,
    TOOL_CALL,
    TOOL_RESULT,
    USER_INPUT,
    NewEntry,
)
from mulligan.errors import UsageError
from mulligan.journal import append, sessions
from mulligan.journal.append import Appender
from mulligan.workspace.search.search import rebuild, search
from mulligan.workspace.workspace import Workspace, open_workspace

# fmt: off
ODD = st.sampled_from([
    '"', "'", "(", ")", "*", "^", "+", "-", ":", "{", "}", "AND", "OR", "NOT", "NEAR", "NEAR(a",
    "\0", "\2", "\3", "<mark>", "\ud800", "🎉", "é", "e\u0301", "ß", "İ", "日本", "\u200b", "\\",
    "content:", "kind:", "mulliganentryuserinput", "running", "configuration", "%", "_", "*reads",
])
# fmt: on
NO_TEXT = re.compile("[\0\2\3\ud800-\udfff]")
TEXT = st.one_of(
    st.text(max_size=60),
    st.lists(st.one_of(ODD, st.text(max_size=5)), max_size=12).map(" ".join),
    st.lists(ODD, max_size=8).map("".join),
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A project with entries that hold a bit of everything; the tests do not change it."""
    root, home = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("home")
    texts = ["running the configuration", 'NEAR "quotes" (and) brackets*', "🎉 é ß 日本", "a => b"]
    with open_workspace(root, home=str(home)) as workspace:
        record(
            workspace,
            *(NewEntry(USER_INPUT, text) for text in texts),
            NewEntry(TOOL_CALL, "", {"name": "Bash", "input": {"file_path": "src/a b.py"}}),
            NewEntry(FILE_EDIT, "", {"path": "src/[x].py", "diff": "-a\n+b"}),
        )
        yield workspace


@settings(max_examples=300)
@given(
    text=TEXT,
    as_you_type=st.booleans(),
    path=st.one_of(st.none(), TEXT, st.sampled_from(["src", "src/*.py", "[", "**", ".", "/"])),
)
def test_no_text_is_refused(
    filled: Workspace, text: str, as_you_type: bool, path: str | None
) -> None:
    found = search(filled.project, text, as_you_type=as_you_type, path=path)
    assert found.total is None or found.total == len(found.hits)
    assert all(hit.pieces for hit in found.hits)


@settings(max_examples=300)
@given(text=TEXT)
def test_a_raw_query_is_answered_or_refused_in_words(filled: Workspace, text: str) -> None:
    with contextlib.suppress(UsageError):
        search(filled.project, text, raw=True)


def entry_of(type: str, text: str, more: str) -> NewEntry:
    data: dict[str, Any] | None = None
    if type == TOOL_CALL:
        data = {"name": "Bash", "input": {"command": more}, "status": "running"}
    elif type == FILE_EDIT:
        data = {"path": more, "operation": "modify", "diff": more}
    return NewEntry(type, text, data)


ENTRIES = st.builds(
    entry_of,
    st.sampled_from([USER_INPUT, ASSISTANT_OUTPUT, TOOL_CALL, TOOL_RESULT, FILE_EDIT]),
    TEXT,
    TEXT,
)


@settings(max_examples=60)
@given(given_entries=st.lists(ENTRIES, min_size=1, max_size=5), data=st.data())
def test_every_word_of_an_entry_finds_it(
    tmp_path_factory: pytest.TempPathFactory, given_entries: list[NewEntry], data: st.DataObject
) -> None:
    root, home = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("home")
    with open_workspace(root, home=str(home)) as workspace:
        ids = record(workspace, *given_entries)
        for id, entry in zip(ids, given_entries, strict=True):
            texts = [entry.content]
            if entry.type == TOOL_CALL and entry.data:
                texts.append(entry.data["input"]["command"])
            elif entry.type == FILE_EDIT and entry.data:
                texts.append(entry.data["diff"])
            words = [word for text in texts for word in NO_TEXT.sub(" ", text).split()]
            if words:
                word = data.draw(st.sampled_from(words))
                for as_you_type in (False, True):
                    found = search(workspace.project, word, as_you_type=as_you_type)
                    assert id in [hit.entry for hit in found.hits], word


@settings(max_examples=40)
@given(
    acts=st.lists(
        st.tuples(
            st.sampled_from(["append", "end", "delete", "search", "compact"]), st.integers(0, 3)
        ),
        max_size=20,
    )
)
def test_an_index_that_caught_up_is_the_same_as_one_made_anew(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int]]
) -> None:
    root, home = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("home")
    with open_workspace(root, home=str(home)) as workspace:
        known: list[int] = []
        for act, which in acts:
            with workspace.project.journal.writing() as db:
                if act == "append" or not known:
                    number = sessions.insert(
                        db, secrets.token_hex(8), "2026-01-01T00:00:00.000Z", {}
                    )
                    known.append(number)
                    call = {"name": "Bash", "status": "running", "call": "1"}
                    given = [NewEntry(USER_INPUT, "word"), NewEntry(TOOL_CALL, "", call)]
                    append_to(db, number, *given)
                elif act == "end":
                    chosen = known[which % len(known)]
                    append.end_call(db, chosen, "1", status="success", output="word done")
                elif act == "compact":
                    append.mark_compacted(db, known[which % len(known)], 2)
                elif act == "delete":
                    sessions.delete(db, known.pop(which % len(known)))
            if act == "search":
                search(workspace.project, "word")
        caught_up = {text: search(workspace.project, text) for text in ("word", "bash", "done")}
        rebuild(workspace.project)
        assert caught_up == {text: search(workspace.project, text) for text in caught_up}


def record(workspace: Workspace, *given: NewEntry) -> list[str]:
    with workspace.project.journal.writing() as db:
        number = sessions.insert(db, secrets.token_hex(8), "2026-01-01T00:00:00.000Z", {})
        return append_to(db, number, *given)


def append_to(db: Any, session: int, *given: NewEntry) -> list[str]:
    ids = [secrets.token_hex(8) for _ in given]
    appender = Appender(db, session, new_id=lambda: secrets.token_hex(8), now=time.time_ns)
    for id, entry in zip(ids, given, strict=True):
        appender.append(entry._replace(id=id))
    appender.finish()
    return ids
