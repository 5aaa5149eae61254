"""Two agents and a user on the same files, in any order, against a line-by-line model.

Every line that anybody writes is a text of its own and tells who wrote it, but for a few that
belong to nobody. So what must be true can be read off the disk and the pending hunks, without any
of Mulligan's arithmetic: the baseline and the hunks give the disk; a line of the user's is never
in a hunk that does not say that others had a part in it; and no verb but a restore, an undo or a
forced one takes a line of the user's from the disk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import settings
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
from mulligan.core.tree import walk
from mulligan.errors import NotFound, NothingToUndo, WouldLoseWork
from mulligan.journal import sessions as session_rows
from mulligan.workspace.attribution.observation import observing
from mulligan.workspace.results.files import RestoreResult
from mulligan.workspace.results.review import Kept, PendingHunk

NAMES = ("a.txt", "b.txt", "d/c.txt", "d/e/f.txt", "new.txt")
NOBODYS = (b"", b"}")
USER, AGENTS = b"u", (b"A", b"B")
Disk = dict[str, list[bytes]]

PLACES = st.integers(0, 12)
AMOUNTS = st.integers(0, 3)
ENDS = st.sampled_from([True, True, True, False])
EDITS = st.tuples(st.sampled_from(NAMES), PLACES, AMOUNTS, AMOUNTS, ENDS)


class Reviewed(RuleBasedStateMachine):
    """At most one turn is open at a time, and the user works only between turns."""

    together = False

    def __init__(self) -> None:
        super().__init__()
        self.base = tempfile.mkdtemp(prefix="mulligan-review-", dir=_memory())
        self.root = os.path.join(os.path.realpath(self.base), "project")
        os.mkdir(self.root)
        self.count = 0
        self.open_turns: set[int] = set()
        self.checkpoints: list[str] = []
        self.messages: list[str] = []
        # Lines that came back from an earlier state: whose they are now is another question. Those
        # are in question as long as they are pending, and again after an undo or a discard.
        self.brought: set[bytes] = set()
        self.ever_brought: set[bytes] = set()
        # Lines in files that were renamed: what was pending may not be found again there.
        self.renamed: set[bytes] = set()
        # Lines that the user has typed since the last turn, or the last look back.
        self.fresh: set[bytes] = set()
        # Since a checkpoint by hand nobody can tell them from others: a restore lists them only.
        self.by_hand = False
        # Lines of agents that were decided about, and by which operation.
        self.kept: set[bytes] = set()
        self.decided: dict[int, tuple[set[bytes], set[bytes]]] = {}
        self.agents: list[str] = []
        self.workspace = self.opened()

    def opened(self) -> Workspace:
        return mulligan.open(self.root, home=os.path.join(self.base, "home"))

    def teardown(self) -> None:
        try:
            verified = self.workspace.maintenance.verify()
            assert verified.clean, verified.problems
        finally:
            self.workspace.close()
            shutil.rmtree(self.base)

    @initialize(sizes=st.tuples(*[st.integers(0, 7)] * 3))
    def begin(self, sizes: tuple[int, int, int]) -> None:
        for name, size in zip(NAMES, sizes, strict=False):
            self.write(name, [self.line(USER) for _each in range(size)])
        for agent in AGENTS:
            self.agents.append(self.workspace.sessions.create(agent=agent.decode()).id)
        self.checkpoints += [each.id for each in self.workspace.log()]

    # What agents do

    @precondition(lambda self: len(self.open_turns) < (2 if self.together else 1))
    @rule(who=st.integers(0, 1))
    def begin_turn(self, who: int) -> None:
        if who in self.open_turns:
            return
        with self.unchanged():
            turn = self.workspace.sessions.begin_turn(self.agents[who], f"message {self.count}")
        self.open_turns.add(who)
        self.by_hand = False
        self.fresh.clear()
        self.checkpoints.append(turn.checkpoint)
        self.messages.append(turn.entry)

    @precondition(lambda self: self.open_turns)
    @rule(who=st.integers(0, 1))
    def end_turn(self, who: int) -> None:
        who = self.working(who)
        with self.unchanged():
            step = self.workspace.sessions.end_turn(self.agents[who])
        self.open_turns.discard(who)
        self.by_hand = False
        self.fresh.clear()
        if step.checkpoint is not None:
            self.checkpoints.append(step.checkpoint)

    @precondition(lambda self: self.open_turns)
    @rule(who=st.integers(0, 1), name=st.sampled_from(NAMES), at=PLACES, out=AMOUNTS, into=AMOUNTS,
          end=ENDS)  # fmt: skip
    def agent_edits(self, who: int, name: str, at: int, out: int, into: int, end: bool) -> None:
        who = self.working(who)
        self.as_tool(who, [name], lambda: self.edit(AGENTS[who], name, at, out, into, end))

    @precondition(lambda self: not self.open_turns)
    @rule(who=st.integers(0, 1), edits=st.lists(EDITS, min_size=1, max_size=4))
    def whole_turn(self, who: int, edits: list[tuple[str, int, int, int, bool]]) -> None:
        """What is done most often, so that there is something to decide about."""
        self.begin_turn(who)
        for name, at, out, into, end in edits:
            self.agent_edits(who, name, at, out, into, end)
        self.end_turn(who)

    @precondition(lambda self: self.open_turns)
    @rule(who=st.integers(0, 1), at=PLACES)
    def agent_deletes_a_file(self, who: int, at: int) -> None:
        who = self.working(who)
        for name in self.some_file(at):
            self.as_tool(who, [name], partial(os.unlink, self.full(name)))

    @precondition(lambda self: self.open_turns)
    @rule(who=st.integers(0, 1), at=PLACES, to=st.sampled_from(NAMES))
    def agent_renames_a_file(self, who: int, at: int, to: str) -> None:
        who = self.working(who)
        for name in self.some_file(at):
            if not os.path.exists(self.full(to)):
                # The user's lines in it are the agent's proposal now, at that place.
                self.bring(set(self.disk()[name]))
                self.renamed |= set(self.disk()[name])
                self.as_tool(who, [name, to], partial(self.rename, name, to))

    @precondition(lambda self: self.open_turns)
    @rule(who=st.integers(0, 1), name=st.sampled_from(NAMES), at=PLACES, out=AMOUNTS, into=AMOUNTS)
    def agent_edits_and_aborts(self, who: int, name: str, at: int, out: int, into: int) -> None:
        who = self.working(who)
        before = self.disk()
        edit = self.workspace.sessions.start_edit(self.agents[who], [name])
        self.edit(AGENTS[who], name, at, out, into, True)
        self.workspace.sessions.abort_edit(edit)
        assert self.disk() == before

    # What the user does

    @precondition(lambda self: not self.open_turns)
    @rule(name=st.sampled_from(NAMES), at=PLACES, out=AMOUNTS, into=AMOUNTS, end=ENDS)
    def user_edits(self, name: str, at: int, out: int, into: int, end: bool) -> None:
        self.fresh |= self.edit(USER, name, at, out, into, end)

    @precondition(lambda self: not self.open_turns)
    @rule(at=PLACES)
    def user_deletes_a_file(self, at: int) -> None:
        for name in self.some_file(at):
            os.unlink(self.full(name))

    @precondition(lambda self: not self.open_turns)
    @rule(at=PLACES, to=st.sampled_from(NAMES))
    def user_renames_a_file(self, at: int, to: str) -> None:
        """And it is noticed, before the file is changed further."""
        self.workspace.sessions.observe()
        waiting = {
            line for hunk in self.workspace.review.pending().hunks for line in lines_of(hunk)
        }
        for name in self.some_file(at):
            if not os.path.exists(self.full(to)):
                # What is decided on is the user's own now: they have made another file of it.
                self.ever_brought |= set(self.disk()[name]) - waiting
                self.renamed |= set(self.disk()[name]) - waiting
                self.rename(name, to)
        self.workspace.sessions.observe()

    # What they decide

    @rule(at=PLACES)
    def keep_hunk(self, at: int) -> None:
        for hunk in self.some_hunk(at):
            done = self.keeping(hunk.id)
            assert done.hunks == (hunk.id,)
            assert hunk.id not in {each.id for each in self.workspace.review.pending().hunks}

    @rule(at=PLACES)
    def keep_file(self, at: int) -> None:
        for hunk in self.some_hunk(at):
            self.keeping(paths=[hunk.path], session=hunk.session)
            found = self.workspace.review.pending(session=hunk.session, paths=[hunk.path])
            assert found.files == ()

    @rule(who=st.sampled_from([0, 1, None]))
    def keep_all(self, who: int | None) -> None:
        session = None if who is None else self.agents[who]
        self.keeping(session=session, everything=who is None)
        assert self.workspace.review.pending(session=session).files == ()

    @rule(at=PLACES, force=st.booleans())
    def discard_hunk(self, at: int, force: bool) -> None:
        for hunk in self.some_hunk(at):
            self.discarded(hunk.id, force=force)

    @rule(at=PLACES, force=st.booleans())
    def discard_file(self, at: int, force: bool) -> None:
        for hunk in self.some_hunk(at):
            self.discarded(paths=[hunk.path], session=hunk.session, force=force)

    @rule(who=st.sampled_from([0, 1, None]), force=st.booleans())
    def discard_all(self, who: int | None, force: bool) -> None:
        session = None if who is None else self.agents[who]
        self.discarded(session=session, everything=who is None, force=force)

    @rule(who=st.integers(0, 1), turn=st.integers(0, 3))
    def discard_turn(self, who: int, turn: int) -> None:
        with suppress(NotFound):
            self.discarded(session=self.agents[who], turn=turn, force=False)

    @rule(who=st.integers(0, 1))
    def approve(self, who: int) -> None:
        with self.unchanged():
            done = self.workspace.review.approve(self.agents[who])
        self.decide(done.operation, self.lines(self.disk(), AGENTS[who]) | self.absent())
        self.by_hand = False
        self.fresh.clear()
        assert self.workspace.review.pending(session=self.agents[who]).files == ()
        assert not self.workspace.review.round_status(self.agents[who]).has_unapproved

    @rule(who=st.integers(0, 1), force=st.booleans())
    def reset(self, who: int, force: bool) -> None:
        before = self.disk()
        preview = self.workspace.review.reset(self.agents[who], force=force, preview=True)
        assert self.disk() == before
        done = self.workspace.review.reset(self.agents[who], force=force)
        assert self.said(done.files) == self.said(preview.files)
        left = self.workspace.review.pending(session=self.agents[who])
        if force or not done.files.skipped:
            assert left.files == (), "all is back at the baseline"
        if not force:
            self.assert_still_there(before, (USER, AGENTS[1 - who]))
        self.assert_only_changed(before, done.files)
        self.brought |= self.ever_brought

    @rule(force=st.booleans())
    def undo(self, force: bool) -> None:
        self.taken_back(self.workspace.undo, force)

    @rule(force=st.booleans())
    def redo(self, force: bool) -> None:
        self.taken_back(self.workspace.redo, force)

    @precondition(lambda self: self.checkpoints)
    @rule(at=st.integers(0, 60), force=st.booleans())
    def restore(self, at: int, force: bool) -> None:
        before = self.disk()
        id = self.checkpoints[at % len(self.checkpoints)]
        done = self.workspace.restore(id, force=force)
        self.moved(before, done, force=force)

    @precondition(lambda self: self.messages)
    @rule(at=st.integers(0, 60), force=st.booleans())
    def goto(self, at: int, force: bool) -> None:
        before = self.disk()
        with suppress(WouldLoseWork):
            done = self.workspace.sessions.goto(self.messages[at % len(self.messages)], force=force)
            if done.files is not None:
                self.moved(before, done.files, force=force)

    @rule()
    def checkpoint(self) -> None:
        with self.unchanged():
            self.checkpoints.append(self.workspace.checkpoint("by hand").id)
        self.by_hand = True
        self.fresh.clear()

    @rule()
    def reopen(self) -> None:
        before = self.workspace.review.pending()
        self.workspace.close()
        self.workspace = self.opened()
        assert self.workspace.review.pending() == before

    # What must be true

    @invariant()
    def baseline_and_pending_hunks_are_the_disk(self) -> None:
        for session in self.agents:
            baseline, disk = self.baseline(session), self.contents()
            review = self.workspace.review.pending(session=session)
            for file in review.files:
                if file.path.endswith("/"):
                    continue
                old = baseline.pop(file.path, b"")
                new = disk.pop(file.path, b"")
                assert applied(old, file.hunks) == new, file
            assert baseline == disk

    @invariant()
    def nobody_is_asked_to_approve_a_line_of_somebody_else(self) -> None:
        shown: set[bytes] = set()
        for session, agent in zip(self.agents, AGENTS, strict=False):
            baseline = self.baseline(session)
            for file in self.workspace.review.pending(session=session).files:
                known = set(baseline.get(file.path, b"").split(b"\n"))
                for hunk in file.hunks:
                    shown |= lines_of(hunk)
                    theirs = {
                        line
                        for line in lines_of(hunk) - known - self.brought - {*NOBODYS}
                        if not line.startswith(agent)
                    }
                    assert hunk.mixed or not theirs, (session, hunk)
        self.brought &= shown

    @invariant()
    def no_line_of_an_agent_is_approved_unseen(self) -> None:
        disk = self.disk()
        for session, agent in zip(self.agents, AGENTS, strict=False):
            hunks = self.workspace.review.pending(session=session).hunks
            waiting = {line for hunk in hunks for line in lines_of(hunk)}
            assert self.lines(disk, agent) - self.kept - self.renamed <= waiting

    @invariant()
    def stats_are_those_of_the_hunks(self) -> None:
        stats = self.workspace.review.stats()
        found: dict[str, list[int]] = {}
        for file in self.workspace.review.pending().files:
            row = found.setdefault(file.session, [0, 0, 0])
            row[0] += sum(len(hunk.new_lines) for hunk in file.hunks)
            row[1] += sum(len(hunk.old_lines) for hunk in file.hunks)
            row[2] += 1
        assert {session: list(each) for session, each in stats.items()} == found

    # How it is done and judged

    def keeping(self, *hunks: str, **choice: Any) -> Kept:
        before = {hunk.id: hunk for hunk in self.workspace.review.pending().hunks}
        with self.unchanged():
            done = self.workspace.review.keep(*hunks, **choice)
        for number in done.operations:
            lines = {line for id in done.hunks for line in lines_of(before[id])}
            self.decide(number, lines | self.absent())
        return done

    def absent(self) -> set[bytes]:
        """Lines that are not on the disk: to keep what is there is a decision about them too."""
        written = {agent + b"%d" % number for agent in AGENTS for number in range(self.count + 1)}
        return written - self.lines(self.disk())

    def decide(self, operation: int, lines: set[bytes]) -> None:
        self.decided[operation] = (lines - self.kept, set())
        self.kept |= lines

    def discarded(self, *hunks: str, force: bool, **choice: Any) -> None:
        before = self.disk()
        waiting = {hunk.id: hunk for hunk in self.workspace.review.pending().hunks}
        preview = self.workspace.review.discard(*hunks, force=force, preview=True, **choice)
        assert self.disk() == before
        done = self.workspace.review.discard(*hunks, force=force, **choice)
        if len(done.results) <= 1:
            assert (done.hunks, done.conflicts) == (preview.hunks, preview.conflicts)
            assert list(map(self.said, done.results)) == list(map(self.said, preview.results))
        self.assert_only_changed(before, *done.results)
        after = self.disk()
        left = {hunk.id for hunk in self.workspace.review.pending().hunks}
        if "turn" not in choice:
            assert left.isdisjoint(done.hunks)
            undone = [waiting[id] for id in done.hunks if id in waiting]
            returned = {line for hunk in undone for line in lines_before(hunk)}
            for hunk in undone:
                there = set(after.get(hunk.path, ()))
                known = set(self.baseline(hunk.session).get(hunk.path, b"").split(b"\n"))
                gone = lines_of(hunk) - returned - known - {*NOBODYS}
                assert gone.isdisjoint(there), "what was discarded is gone"
        if force:
            assert not done.conflicts
        else:
            whose = {waiting[id].session for id in done.hunks if id in waiting}
            if not hunks and choice.get("session") is None:
                # The work of one may only be free to go once the other's is gone.
                whose = set(self.agents)
            others = [
                agent
                for session, agent in zip(self.agents, AGENTS, strict=False)
                if session not in whose
            ]
            self.assert_still_there(before, (USER, *others))
        self.brought |= self.ever_brought

    def taken_back(self, verb: Callable[..., RestoreResult], force: bool) -> None:
        before = self.disk()
        try:
            done = verb(force=force)
        except NothingToUndo:
            assert self.disk() == before
            return
        assert done.undoes is not None
        if done.operation is None:
            # All that it is about was changed by others since: nothing is done but with force.
            assert done.skipped and not force
            assert self.disk() == before
            return
        self.fresh.clear()
        after = self.disk()
        self.assert_only_changed(before, done)
        all_operations = {each.number: each for each in self.workspace.operations()}
        operation = all_operations[done.undoes]
        kept, unkept = self.decided.get(done.undoes, (set(), set()))
        self.decided[done.operation] = (unkept, kept)
        self.kept = (self.kept - kept) | unkept
        came = self.came(before, after)
        if operation.session in self.agents:
            agent = AGENTS[self.agents.index(operation.session)]
            came = {line for line in came if not line.startswith(agent)}
        self.bring(came)
        self.brought |= self.ever_brought
        if operation.session is None or force:
            return
        assert operation.before is not None
        assert operation.after is not None
        was, became = self.kept_in(operation.before), self.kept_in(operation.after)
        for path, lines in before.items():
            lost = set(lines) - set(after.get(path, ())) - {*NOBODYS}
            brought = became.get(path, set()) - was.get(path, set())
            assert lost <= brought, (operation, done)

    def moved(self, before: Disk, done: RestoreResult, *, force: bool) -> None:
        after = self.disk()
        self.assert_only_changed(before, done)
        self.bring(self.came(before, after))
        lost = self.lines(before, USER) - self.lines(after)
        if not force and not self.by_hand:
            assert lost.isdisjoint(self.fresh), done
        self.fresh.clear()

    def bring(self, lines: set[bytes]) -> None:
        self.brought |= lines
        self.ever_brought |= lines

    def assert_still_there(self, before: Disk, whose: tuple[bytes, ...]) -> None:
        """The lines of these are where they were; they do not even move to another file."""
        after = self.disk()
        for path, lines in before.items():
            theirs = {line for line in lines if line.startswith(whose)} - self.brought
            assert theirs <= set(after.get(path, ()))

    def assert_only_changed(self, before: Disk, *results: RestoreResult) -> None:
        """What is said to have been changed, and nothing else, was."""
        after = self.disk()
        said = {path for result in results for path in (*result.restored, *result.deleted)}
        for path in before.keys() | after.keys():
            if before.get(path) != after.get(path):
                assert path in said, (path, results)

    def said(self, result: RestoreResult) -> tuple[Any, ...]:
        return result.restored, result.deleted, result.skipped

    def unchanged(self) -> _Unchanged:
        return _Unchanged(self)

    def as_tool(self, who: int, names: list[str], act: Callable[[], object]) -> None:
        """With several agents at work, each tells what it edits."""
        if not self.together:
            act()
            return
        edit = self.workspace.sessions.start_edit(self.agents[who], names)
        act()
        self.workspace.sessions.finalize_edit(edit)

    def working(self, who: int) -> int:
        return who if who in self.open_turns else next(iter(self.open_turns))

    def some_hunk(self, at: int) -> list[PendingHunk]:
        found = self.workspace.review.pending().hunks
        return [found[at % len(found)]] if found else []

    def some_file(self, at: int) -> list[str]:
        found = sorted(self.disk())
        return [found[at % len(found)]] if found else []

    def edit(self, author: bytes, name: str, at: int, out: int, into: int, end: bool) -> set[bytes]:
        """Takes some lines out of a file and puts others there, each one new."""
        lines = self.disk().get(name, [])
        at = min(at, len(lines))
        new = [self.line(author) for _each in range(into)]
        if self.count % 7 == 3 and into > 1:
            new[-1] = NOBODYS[self.count % 2]
        self.write(name, lines[:at] + new + lines[at + out :], end=end)
        return set(new)

    def line(self, author: bytes) -> bytes:
        self.count += 1
        return author + b"%d" % self.count

    def write(self, name: str, lines: list[bytes], *, end: bool = True) -> None:
        content = b"\n".join(lines) + (b"\n" if lines and end else b"")
        os.makedirs(os.path.dirname(self.full(name)), exist_ok=True)
        with open(self.full(name), "wb") as file:
            file.write(content)

    def rename(self, name: str, to: str) -> None:
        os.makedirs(os.path.dirname(self.full(to)), exist_ok=True)
        os.rename(self.full(name), self.full(to))

    def full(self, name: str) -> str:
        return os.path.join(self.root, name)

    def contents(self) -> dict[str, bytes]:
        found = {}
        for folder, _folders, names in os.walk(self.root):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.root)] = file.read()
        return found

    def disk(self) -> Disk:
        found = {}
        for path, content in self.contents().items():
            lines = content.split(b"\n")
            found[path] = lines[:-1] if lines[-1] == b"" else lines
        return found

    def baseline(self, session: str) -> dict[str, bytes]:
        """What the session's work is measured against, read from the store."""
        workspace = self.workspace
        with workspace.project.locked(), observing(workspace.project) as now:
            now.commit()
            row = session_rows.by_id(workspace.project.journal, session)
            assert row is not None
            root = now.view(row.number).approved or now.seen.tree
            return {
                os.fsdecode(path): now.trees.read(entry)
                for path, entry in walk(root, now.trees.load)
                if not entry.is_directory
            }

    def kept_in(self, checkpoint: str) -> dict[str, set[bytes]]:
        """The lines of the files that a checkpoint holds."""
        return {
            entry.path: set(self.workspace.read(checkpoint, entry.path).split(b"\n"))
            for entry in self.workspace.entries(checkpoint)
            if entry.kind == "file"
        }

    def lines(self, disk: Disk, whose: bytes | tuple[bytes, ...] = (USER, *AGENTS)) -> set[bytes]:
        return {line for lines in disk.values() for line in lines if line.startswith(whose)}

    def came(self, before: Disk, after: Disk) -> set[bytes]:
        """The lines that are where they were not before."""
        return {
            line for path, lines in after.items() for line in set(lines) - set(before.get(path, ()))
        }


class ReviewedTogether(Reviewed):
    """Both agents may be at work at once, and say which files they write."""

    together = True


class _Unchanged:
    """Around a verb that must leave the disk as it is."""

    def __init__(self, machine: Reviewed) -> None:
        self.machine = machine

    def __enter__(self) -> None:
        self.before = self.machine.contents()

    def __exit__(self, *problem: object) -> None:
        assert self.machine.contents() == self.before


def applied(old: bytes, hunks: Iterable[PendingHunk]) -> bytes:
    """A content with hunks in it, by their line numbers and nothing else."""
    lines = old.splitlines(keepends=True)
    for hunk in sorted(hunks, key=lambda each: each.old_start, reverse=True):
        if hunk.kind == "whole":
            continue
        start, end = hunk.old_start - 1, hunk.old_start - 1 + len(hunk.old_lines)
        assert lines[start:end] == [line.encode() for line in hunk.old_lines]
        lines[start:end] = [line.encode() for line in hunk.new_lines]
    return b"".join(lines)


def lines_of(hunk: PendingHunk) -> set[bytes]:
    return {line.rstrip("\n").encode() for line in hunk.new_lines}


def lines_before(hunk: PendingHunk) -> set[bytes]:
    return {line.rstrip("\n").encode() for line in hunk.old_lines}


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@pytest.mark.parametrize("machine", [Reviewed, ReviewedTogether])
def test_two_agents_and_a_user_never_lose_track_of_whose_line_is_whose(machine: Any) -> None:
    count = int(os.environ.get("REVIEW_EXAMPLES", "8"))
    run_state_machine_as_test(
        machine, settings=settings(max_examples=count, stateful_step_count=30)
    )
