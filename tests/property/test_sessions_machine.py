"""Sessions and their trees, in any order of verbs, against a model of dictionaries.

The model knows of a session only its entries with their parents, and where it stands. The path is
a walk from parent to parent; branches, pages and counts follow from that by the plainest means.
What the journal answers, with its ranges and unforked stretches, must be the same at every step.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import mulligan
from mulligan import Workspace
from mulligan.core.entries import TYPES, NewEntry
from mulligan.workspace.results.sessions import Entry

PLACES = st.integers(0, 30)
KINDS = st.sampled_from([*TYPES[:3], "user_input", "assistant_output"])
LABELS = st.sampled_from(["good", "bad"])


@dataclass
class Said:
    """An entry as the model has it."""

    id: str
    parent: str | None
    type: str
    aside: bool = False
    compacted: bool = False
    label: str | None = None


@dataclass
class Talk:
    """A session as the model has it: entries in the order of their seq, and where it stands."""

    entries: dict[str, Said] = field(default_factory=dict)
    leaf: str | None = None

    def path(self, to: str | None) -> list[str]:
        found = []
        while to is not None:
            found.append(to)
            to = self.entries[to].parent
        return found[::-1]

    def seq(self, id: str) -> int:
        return list(self.entries).index(id) + 1

    def add(self, said: Said) -> None:
        self.entries[said.id] = said
        if not said.aside:
            self.leaf = said.id

    def tips(self) -> set[str]:
        return set(self.entries) - {said.parent for said in self.entries.values()}


class Sessions(RuleBasedStateMachine):
    """Several sessions of one project; files have one number, which each turn changes."""

    def __init__(self) -> None:
        super().__init__()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.base = tempfile.mkdtemp(prefix="mulligan-sessions-", dir=memory)
        self.root = os.path.join(os.path.realpath(self.base), "project")
        os.mkdir(self.root)
        self.count = 0
        self.talks: dict[str, Talk] = {}
        # What the file held at the entries whose state is known: after a step, before a message,
        # and when it was left for another state, by the unrevert point that tells of it.
        self.held: dict[tuple[str, str], str | None] = {}
        self.begun: dict[str, str | None] = {}
        self.workspace = self.opened()

    def opened(self) -> Workspace:
        return mulligan.open(self.root, home=os.path.join(self.base, "home"))

    def teardown(self) -> None:
        try:
            verified = self.workspace.maintenance.verify()
            assert verified.clean, verified.problems
            assert self.workspace.project.journal.rows("PRAGMA foreign_key_check") == []
        finally:
            self.workspace.close()
            shutil.rmtree(self.base)

    @initialize()
    def begin(self) -> None:
        self.create()

    @rule()
    def create(self) -> None:
        id = self.workspace.sessions.create(agent="test").id
        self.talks[id] = Talk()
        self.begun[id] = self.disk()

    # What is said

    @rule(who=PLACES, kinds=st.lists(KINDS, min_size=1, max_size=4))
    def append(self, who: int, kinds: list[str]) -> None:
        session, talk = self.pick(who)
        made = self.workspace.sessions.append(session, *(NewEntry(kind) for kind in kinds))
        self.take(talk, made)

    @rule(who=PLACES, at=PLACES, kind=KINDS, aside=st.booleans(), more=st.integers(0, 2))
    def append_anywhere(self, who: int, at: int, kind: str, aside: bool, more: int) -> None:
        session, talk = self.pick(who)
        parent = self.pick_entry(talk, at)
        first, rest = NewEntry(kind, parent=parent, off_path=aside), [NewEntry(kind)] * more
        made = self.workspace.sessions.append(session, first, *rest)
        assert made[0].parent == parent
        self.take(talk, made)

    @rule(who=PLACES, edits=st.booleans())
    def take_a_turn(self, who: int, edits: bool) -> None:
        session, talk = self.pick(who)
        self.count += 1
        before = self.disk()
        self.workspace.sessions.begin_turn(session, f"message {self.count}")
        if edits:
            self.write(str(self.count))
        self.workspace.sessions.append(session, NewEntry("assistant_output", "done"))
        self.workspace.sessions.end_turn(session)
        made = self.new_ones(session, talk)
        assert [entry.type for entry in made] == [
            "user_input",
            "assistant_output",
            *(["step_snapshot"] if edits else []),
        ]
        self.take(talk, made)
        self.held[session, made[0].id] = before
        if edits:
            self.held[session, made[2].id] = self.disk()

    # Where it stands

    @rule(who=PLACES, at=PLACES, summarize=st.booleans())
    def goto_without_files(self, who: int, at: int, summarize: bool) -> None:
        session, talk = self.pick(who)
        target = self.pick_entry(talk, at)
        if target is None:
            return
        disk = self.disk()
        old = talk.leaf
        done = self.workspace.sessions.goto(
            target, session=session, skip_files=True, summarize=summarize
        )
        assert self.disk() == disk and done.old_leaf == old
        self.arrived(session, talk, target, summarize=summarize)

    @rule(who=PLACES, at=PLACES, summarize=st.booleans(), undo=st.booleans())
    def goto_with_files(self, who: int, at: int, summarize: bool, undo: bool) -> None:
        session, talk = self.pick(who)
        target = self.pick_entry(talk, at)
        if target is None:
            return
        old, disk, count = talk.leaf, self.disk(), len(talk.entries)
        plan = self.workspace.sessions.goto(target, session=session, preview=True)
        assert self.workspace.sessions.count_entries(session) == count and self.disk() == disk
        done = self.workspace.sessions.goto(target, session=session, summarize=summarize)
        if target == old:
            assert self.disk() == disk and done.files is None
            return
        assert plan.files is not None and done.files is not None
        assert (plan.files.restored, plan.files.deleted) == (
            done.files.restored,
            done.files.deleted,
        )
        wanted = self.state_at(session, talk, target)
        self.arrived(session, talk, target, summarize=summarize, unrevert=True)
        assert self.disk() == wanted
        point = list(talk.entries)[count]
        self.held[session, point] = disk
        if undo:
            self.workspace.undo()
            talk.leaf = old
            assert self.disk() == disk

    @rule(who=PLACES, at=PLACES)
    def fork(self, who: int, at: int) -> None:
        session, talk = self.pick(who)
        entry = self.pick_entry(talk, at)
        disk = self.disk()
        made = self.workspace.sessions.fork(session, entry)
        assert made.forked_from == session and self.disk() == disk
        new = self.stands_at(talk, entry) if entry is not None else talk.leaf
        way = talk.path(new)
        copy = Talk()
        for parent, id in pairwise([None, *way]):
            said = talk.entries[id or ""]
            copy.add(Said(said.id, parent, said.type, False, said.compacted, said.label))
            if (session, said.id) in self.held:
                self.held[made.id, said.id] = self.held[session, said.id]
        self.talks[made.id] = copy
        self.begun[made.id] = self.begun[session]

    # What is done to what was said

    @rule(who=PLACES, at=PLACES, whole=st.booleans())
    def compact(self, who: int, at: int, whole: bool) -> None:
        session, talk = self.pick(who)
        before = None if whole else self.pick_entry(talk, at)
        limit = len(talk.entries) + 1 if before is None else talk.seq(before)
        fresh = [said for said in list(talk.entries.values())[: limit - 1] if not said.compacted]
        hidden, marker = self.workspace.sessions.compact(session, before, summary="so far")
        assert hidden == len(fresh)
        for said in fresh:
            said.compacted = True
        self.take(talk, [marker])

    @rule(who=PLACES, at=PLACES, label=LABELS, off=st.booleans())
    def label(self, who: int, at: int, label: str, off: bool) -> None:
        session, talk = self.pick(who)
        entry = self.pick_entry(talk, at)
        if entry is None:
            return
        if not off:
            for said in talk.entries.values():
                said.label = None if said.label == label else said.label
        self.workspace.sessions.label(entry, None if off else label, session)
        talk.entries[entry].label = None if off else label
        if not off:
            assert self.workspace.sessions.entry(label, session).id == entry

    @precondition(lambda self: len(self.talks) > 1)
    @rule(who=PLACES)
    def delete(self, who: int) -> None:
        session, _talk = self.pick(who)
        disk = self.disk()
        self.workspace.sessions.delete(session)
        del self.talks[session]
        assert self.disk() == disk

    @rule()
    def reopen(self) -> None:
        self.workspace.close()
        self.workspace = self.opened()

    @rule()
    def collect(self) -> None:
        self.workspace.maintenance.gc()

    # What must be the same

    @invariant()
    def sessions_are_those_of_the_model(self) -> None:
        found = self.workspace.sessions.list(limit=1000).sessions
        assert {session.id: session.leaf for session in found} == {
            id: talk.leaf for id, talk in self.talks.items()
        }

    @invariant()
    def entries_are_those_of_the_model(self) -> None:
        for session, talk in self.talks.items():
            page = self.workspace.sessions.transcript(session, limit=1000, include_compacted=True)
            assert [
                Said(e.id, e.parent, e.type, e.off_path, e.is_compacted, e.label)
                for e in page.entries
            ] == list(talk.entries.values())
            assert [entry.seq for entry in page.entries] == list(range(1, len(talk.entries) + 1))
            assert all(one.created_at < two.created_at for one, two in pairwise(page.entries))
            shown = sum(not said.compacted for said in talk.entries.values())
            count = self.workspace.sessions.count_entries
            assert count(session) == len(talk.entries)
            assert count(session, include_compacted=False) == shown

    @invariant()
    def paths_are_walks_from_parent_to_parent(self) -> None:
        for session, talk in self.talks.items():
            for to in {talk.leaf, *list(talk.entries)[:: max(1, len(talk.entries) // 4)]}:
                found = self.workspace.sessions.conversation(session, leaf=to)
                walked = talk.path(to if to is not None else talk.leaf)
                assert [entry.id for entry in found] == walked

    @invariant()
    def branches_are_unforked_and_hold_every_entry_once(self) -> None:
        for session, talk in self.talks.items():
            active = set(talk.path(talk.leaf))
            seen: list[str] = []
            for branch in self.workspace.sessions.branches(session):
                way = talk.path(branch.last.id)
                mine = way[way.index(branch.first.id) :]
                assert len(mine) == branch.entries
                assert branch.parent_entry == talk.entries[branch.first.id].parent
                assert branch.active == (branch.first.id in active)
                seen += mine
            assert sorted(seen) == sorted(talk.entries)

    @invariant()
    def pages_both_ways_are_everything_once(self) -> None:
        for session, talk in self.talks.items():
            limit = 1 + self.count % 4
            shown = [id for id, said in talk.entries.items() if not said.compacted]
            assert forward(self.workspace, session, limit) == shown
            assert backward(self.workspace, session, limit) == shown
            way = talk.path(talk.leaf)
            assert forward_on_path(self.workspace, session, limit) == way
            assert backward_on_path(self.workspace, session, limit) == way

    # Helpers

    def pick(self, who: int) -> tuple[str, Talk]:
        session = list(self.talks)[who % len(self.talks)]
        return session, self.talks[session]

    def pick_entry(self, talk: Talk, at: int) -> str | None:
        """Any entry, or none: the newest ones the most often."""
        ids = list(talk.entries)[::-1]
        return ids[at] if at < len(ids) else None

    def take(self, talk: Talk, made: list[Entry]) -> None:
        for entry in made:
            talk.add(Said(entry.id, entry.parent, entry.type, entry.off_path))

    def new_ones(self, session: str, talk: Talk) -> list[Entry]:
        page = self.workspace.sessions.transcript(
            session, since=len(talk.entries), limit=1000, include_compacted=True
        )
        return list(page.entries)

    def stands_at(self, talk: Talk, target: str) -> str | None:
        said = talk.entries[target]
        return said.parent if said.type == "user_input" else target

    def arrived(
        self, session: str, talk: Talk, target: str, *, summarize: bool, unrevert: bool = False
    ) -> None:
        """The model goes where the session went, and takes in what was appended on the way."""
        made = self.new_ones(session, talk)
        if target == talk.leaf:
            assert made == []
            return
        old, new = talk.leaf, self.stands_at(talk, target)
        left = [
            id for id in talk.path(old) if id not in talk.path(new) and not talk.entries[id].aside
        ]
        summarize = summarize and bool(left)
        wanted = ["unrevert_point"] * unrevert + ["branch_summary"] * summarize
        assert [entry.type for entry in made] == wanted
        self.take(talk, made)
        for entry in made:
            assert entry.parent == (old if entry.type == "unrevert_point" else new)
        talk.leaf = made[-1].id if summarize else new

    def state_at(self, session: str, talk: Talk, target: str) -> str | None:
        """What the file held at an entry: by the nearest turn on its path, or its own end."""
        way = talk.path(target)
        if talk.entries[target].type not in ("user_input", "step_snapshot", "unrevert_point"):
            ahead = self.step_ahead(session, talk, target)
            if ahead is not None:
                return self.held[session, ahead]
        for id in reversed(way):
            if (session, id) in self.held:
                return self.held[session, id]
        return self.begun[session]

    def step_ahead(self, session: str, talk: Talk, at: str) -> str | None:
        """The step that a turn ended with, if only words lie between."""
        last = at
        while True:
            below = [
                id
                for id, said in talk.entries.items()
                if said.parent == last and said.aside == talk.entries[last].aside
            ]
            if not below:
                return None
            # Of several ways on, the first is the one that goes on unforked.
            last = below[0]
            if talk.entries[last].type == "step_snapshot":
                return last if (session, last) in self.held else None
            if talk.entries[last].type in ("user_input", "tool_call", "tool_result", "file_edit"):
                return None

    def disk(self) -> str | None:
        try:
            with open(os.path.join(self.root, "file"), encoding="ascii") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, content: str) -> None:
        with open(os.path.join(self.root, "file"), "w", encoding="ascii") as file:
            file.write(content)


def forward(workspace: Workspace, session: str, limit: int) -> list[str]:
    found: list[str] = []
    since: int | None = 0
    while since is not None:
        page = workspace.sessions.transcript(session, since=since, limit=limit)
        found += [entry.id for entry in page.entries]
        assert page.has_more == (page.next_seq is not None)
        since = page.next_seq
    return found


def backward(workspace: Workspace, session: str, limit: int) -> list[str]:
    page = workspace.sessions.recent(session, limit=limit)
    found = [entry.id for entry in page.entries]
    while page.has_more:
        page = workspace.sessions.recent(session, before=page.next_seq, limit=limit)
        found = [entry.id for entry in page.entries] + found
    return found


def forward_on_path(workspace: Workspace, session: str, limit: int) -> list[str]:
    found: list[Entry] = []
    while page := workspace.sessions.conversation(
        session, since=found[-1].seq if found else 0, limit=limit
    ):
        found += page
    return [entry.id for entry in found]


def backward_on_path(workspace: Workspace, session: str, limit: int) -> list[str]:
    found: list[Entry] = []
    before: int | None = None
    while page := workspace.sessions.conversation(session, before=before, limit=limit, newest=True):
        found = page + found
        before = page[0].seq
    return [entry.id for entry in found]


def test_sessions_are_what_a_walk_from_parent_to_parent_says() -> None:
    # Each step writes durably to the journal, and most look at the disk.
    chosen = settings(max_examples=max(25, settings().max_examples // 10), stateful_step_count=25)
    run_state_machine_as_test(Sessions, settings=chosen)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("home")
    with mulligan.open(tmp_path_factory.mktemp("project"), home=str(home)) as workspace:
        yield workspace


@given(data=st.data())
def test_pages_of_a_path_agree_with_a_naive_walk(shared: Workspace, data: st.DataObject) -> None:
    """Trees of any shape, entries aside included; pages from any cursor, of any size and type."""
    parents = data.draw(
        st.lists(st.tuples(st.integers(-1, 40), st.booleans(), KINDS), min_size=1, max_size=30)
    )
    session = shared.sessions.create(checkpoint=False).id
    talk = Talk()
    new = []
    for number, (at, aside, kind) in enumerate(parents):
        parent = None if at < 0 or not number else str(at % number)
        talk.add(Said(str(number), parent, kind, aside))
        new.append(NewEntry(kind, id=str(number), parent=parent, off_path=aside))
    shared.sessions.append(session, *new)
    to = data.draw(st.sampled_from(list(talk.entries)))
    since, before = data.draw(st.integers(0, 32)), data.draw(st.integers(0, 32))
    limit, newest = data.draw(st.integers(1, 32)), data.draw(st.booleans())
    types = data.draw(st.lists(KINDS, max_size=2))
    wanted = [
        id
        for id in talk.path(to)
        if since < talk.seq(id) < before and (not types or talk.entries[id].type in types)
    ]
    wanted = wanted[-limit:] if newest else wanted[:limit]
    found = shared.sessions.conversation(
        session, leaf=to, types=types, since=since, before=before, limit=limit, newest=newest
    )
    assert [entry.id for entry in found] == wanted
    assert {branch.last.id for branch in shared.sessions.branches(session)} >= talk.tips()
    assert shared.sessions.get(session).leaf == talk.leaf
