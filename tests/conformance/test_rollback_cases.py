"""The ten ways to go back in a session: what is said, what is on the disk, and the undo of it.

Each case is a story in turns. `Story.check` demands that conversation and files are as told, and
that one undo brings back both as they were, and one redo takes them there again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from acts import Picture, picture, run, write

import mulligan
from mulligan import Workspace
from mulligan.core.entries import NewEntry
from mulligan.workspace.results.sessions import Navigation
from mulligan.workspace.search.tool_stats import stats

SPOKEN = ("user_input", "assistant_output", "compact_marker", "branch_summary")


class Turned(NamedTuple):
    """A turn that was taken: its message, its answer, its step, and the files after it."""

    message: str
    answer: str
    step: str
    files: Picture


class Story:
    """One session on one project, told in turns."""

    def __init__(self, project: Path, workspace: Workspace, session: str) -> None:
        self.project, self.workspace, self.session = project, workspace, session

    def turn(self, message: str, command: str) -> Turned:
        begun = self.workspace.sessions.begin_turn(self.session, message)
        run(self.project, command)
        (answer,) = self.workspace.sessions.append(
            self.session,
            NewEntry("tool_call", data={"name": "sh", "input": command, "status": "success"}),
            NewEntry("assistant_output", f"done: {message}"),
        )[1:]
        step = self.workspace.sessions.end_turn(self.session)
        return Turned(begun.entry, answer.id, step.entry or answer.id, picture(self.project))

    def goto(self, entry: str, **how: Any) -> Navigation:
        return self.workspace.sessions.goto(entry, session=self.session, **how)

    def said(self) -> list[str]:
        """The conversation as it stands, in its own words."""
        found = self.workspace.sessions.conversation(self.session, types=SPOKEN)
        return [entry.content for entry in found]

    def leaf(self) -> str | None:
        return self.workspace.sessions.get(self.session).leaf

    def check(
        self, act: Callable[[], Navigation], *, said: list[str], files: Picture
    ) -> Navigation:
        """After the act it is as told; undone, everything is as it was; redone, as told again."""
        before = (self.leaf(), self.said(), picture(self.project))
        done = act()
        after = (self.leaf(), self.said(), picture(self.project))
        assert after[1:] == (said, files)
        self.workspace.undo()
        assert (self.leaf(), self.said(), picture(self.project)) == before
        self.workspace.redo()
        assert (self.leaf(), self.said(), picture(self.project)) == after
        assert self.workspace.maintenance.verify().clean
        return done


@pytest.fixture
def story(project: Path, workspace: Workspace) -> Story:
    write(project, {"notes.txt": "zero\n", "src/main.py": "print(0)\n"})
    return Story(project, workspace, workspace.sessions.create(agent="test").id)


def dialogue(*messages: str) -> list[str]:
    return [words for message in messages for words in (message, f"done: {message}")]


def test_1_rewind_of_message_and_files(story: Story) -> None:
    one = story.turn("one", "echo one > notes.txt")
    two = story.turn("two", "echo two > notes.txt; mkdir new; echo two > new/file; chmod +x notes*")
    done = story.check(lambda: story.goto(two.message), said=dialogue("one"), files=one.files)
    assert done.text == "two"


def test_2_rewind_of_the_message_alone(story: Story) -> None:
    story.turn("one", "echo one > notes.txt")
    two = story.turn("two", "echo two > notes.txt; rm src/main.py")
    done = story.check(
        lambda: story.goto(two.message, skip_files=True), said=dialogue("one"), files=two.files
    )
    assert done.text == "two" and done.files is None


def test_3_rewind_to_before_a_compaction(story: Story) -> None:
    one = story.turn("one", "echo one > notes.txt")
    story.turn("two", "echo two > notes.txt")
    hidden, marker = story.workspace.sessions.compact(story.session, summary="one and two")
    assert hidden == 8
    story.turn("three", "echo three > notes.txt")
    story.check(lambda: story.goto(one.step), said=dialogue("one"), files=one.files)
    # The compaction is on the way that was left, and can be returned to.
    story.goto(marker.id)
    assert story.said() == [*dialogue("one", "two"), "one and two"]
    assert (story.project / "notes.txt").read_text() == "two\n"


def test_4_rewind_to_after_a_compaction(story: Story) -> None:
    story.turn("one", "echo one > notes.txt")
    story.workspace.sessions.compact(story.session, summary="only one")
    two = story.turn("two", "echo two > notes.txt")
    story.turn("three", "echo three > notes.txt; rm -r src")
    story.check(
        lambda: story.goto(two.step),
        said=[*dialogue("one"), "only one", *dialogue("two")],
        files=two.files,
    )
    shown = story.workspace.sessions.transcript(story.session, types=SPOKEN).entries
    assert [entry.content for entry in shown][:3] == ["only one", *dialogue("two")]


def test_5_a_summary_of_what_is_left_names_what_was_deleted_there(story: Story) -> None:
    one = story.turn("one", "echo one > notes.txt")
    story.turn("two", "rm src/main.py; echo two > two.txt")
    three = story.turn("three", "echo three > notes.txt")
    before = three.files
    done = story.goto(one.step, summarize=True)
    summary = story.workspace.sessions.entry(done.summary_entry or "", story.session)
    assert story.said() == [*dialogue("one"), summary.content]
    for told in ("two", "three", "src/main.py", "two.txt", "deleted"):
        assert told in summary.content
    assert picture(story.project) == one.files
    story.workspace.undo()
    assert picture(story.project) == before
    assert story.said() == dialogue("one", "two", "three")
    # The summary is not lost by that: it is a branch of its own.
    assert story.workspace.sessions.entry(summary.id, story.session) == summary


def test_6_a_deletion_is_undone_by_a_rewind(story: Story) -> None:
    one = story.turn(
        "one", "printf '\\0\\377' > bytes; ln -s bytes link; mkdir empty; chmod 600 *.txt"
    )
    story.turn("two", "rm -rf ./* ")
    assert picture(story.project) == {}
    story.check(lambda: story.goto(one.step), said=dialogue("one"), files=one.files)


def test_7_a_fork_shares_everything_and_leaves_the_original_alone(story: Story) -> None:
    workspace = story.workspace
    one = story.turn("one", "echo one > notes.txt")
    two = story.turn("two", "echo two > notes.txt")
    original = (
        workspace.sessions.get(story.session),
        workspace.sessions.transcript(story.session).entries,
    )
    stored = workspace.maintenance.verify().objects
    forked = workspace.sessions.fork(story.session)
    assert forked.forked_from == story.session and forked.id != story.session
    assert workspace.maintenance.verify().objects <= stored + 1
    other = Story(story.project, workspace, forked.id)
    assert other.said() == story.said() == dialogue("one", "two")
    assert picture(story.project) == two.files
    other.check(lambda: other.goto(one.step), said=dialogue("one"), files=one.files)
    third = other.turn("three", "echo three > notes.txt")
    assert (
        workspace.sessions.get(story.session),
        workspace.sessions.transcript(story.session).entries,
    ) == original
    again = Story(story.project, workspace, workspace.sessions.fork(forked.id, one.step).id)
    assert again.said() == dialogue("one")
    assert picture(story.project) == third.files
    four = again.turn("four", "echo four > notes.txt; rm src/main.py")
    again.check(lambda: again.goto(four.message), said=dialogue("one"), files=third.files)
    assert other.said() == dialogue("one", "three")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["original first", "fork first"])
def test_7_a_fork_lives_on_when_the_original_is_deleted(
    story: Story, order: tuple[int, int]
) -> None:
    workspace = story.workspace
    one = story.turn("one", "echo one > notes.txt")
    story.turn("two", "echo two > notes.txt")
    forked = workspace.sessions.fork(story.session)
    deep = workspace.sessions.fork(forked.id)
    for at in order:
        workspace.sessions.delete((story.session, forked.id)[at])
    workspace.checkpoint("so that no other one is the latest")
    workspace.maintenance.gc()
    last = Story(story.project, workspace, deep.id)
    last.check(lambda: last.goto(one.step), said=dialogue("one"), files=one.files)
    changed = {row.path: row.status for row in workspace.sessions.modified_files(deep.id)}
    assert changed == {"notes.txt": "modified"}


def test_7_a_fork_copies_labels_and_no_statistics(story: Story) -> None:
    workspace = story.workspace
    one = story.turn("one", "echo one > notes.txt")
    two = story.turn("two", "echo two > notes.txt")
    workspace.sessions.label(one.step, "good", story.session)
    workspace.sessions.label(two.step, "better", story.session)
    forked = workspace.sessions.fork(story.session, one.step)
    assert workspace.sessions.entry("good", forked.id).id == one.step
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.entry("better", forked.id)
    assert stats(workspace.project).total.calls == 2


def test_8_rewind_across_several_compactions(story: Story) -> None:
    workspace = story.workspace
    turns: list[Turned] = []
    marks = []
    for number in range(6):
        turns.append(story.turn(f"turn {number}", f"echo {number} > notes.txt; touch f{number}"))
        if number % 2:
            hidden, marker = workspace.sessions.compact(story.session, summary=f"up to {number}")
            marks.append(marker.id)
            # Each turn has four entries; a later compaction hides the marker before it too.
            assert hidden == (8 if number == 1 else 9)
    words = [
        *dialogue("turn 0", "turn 1"), "up to 1",
        *dialogue("turn 2", "turn 3"), "up to 3",
        *dialogue("turn 4", "turn 5"), "up to 5",
    ]  # fmt: skip
    assert story.said() == words
    story.check(lambda: story.goto(turns[3].step), said=words[:9], files=turns[3].files)
    story.check(lambda: story.goto(turns[0].step), said=words[:2], files=turns[0].files)
    story.check(lambda: story.goto(marks[1]), said=words[:10], files=turns[3].files)
    story.check(lambda: story.goto(marks[2]), said=words, files=turns[5].files)


def test_9_rewind_go_on_and_rewind_again(story: Story) -> None:
    one = story.turn("one", "echo one > notes.txt")
    old = story.turn("old way", "echo old > notes.txt; echo old > old.txt")
    story.check(lambda: story.goto(old.message), said=dialogue("one"), files=one.files)
    new = story.turn("new way", "echo new > notes.txt; rm src/main.py")
    story.check(lambda: story.goto(new.message), said=dialogue("one"), files=one.files)
    newer = story.turn("newest way", "echo newest > notes.txt")
    story.check(lambda: story.goto(old.step), said=dialogue("one", "old way"), files=old.files)
    story.check(lambda: story.goto(new.step), said=dialogue("one", "new way"), files=new.files)
    springs = {branch.parent_entry for branch in story.workspace.sessions.branches(story.session)}
    assert one.step in springs
    tips = {
        branch.last.id
        for branch in story.workspace.sessions.branches(story.session)
        if not branch.last.off_path
    }
    assert tips >= {old.step, new.step, newer.step}


def test_10_all_of_them_together(story: Story) -> None:
    workspace = story.workspace
    one = story.turn("one", "echo one > notes.txt; echo keep > keep.txt")
    two = story.turn("two", "rm src/main.py; echo two > notes.txt")
    workspace.sessions.compact(story.session, summary="up to two")
    three = story.turn("three", "echo three > three.txt")
    story.check(
        lambda: story.goto(three.message, skip_files=True),
        said=[*dialogue("one", "two"), "up to two"],
        files=three.files,
    )
    done = story.goto(one.step, summarize=True)
    summary = workspace.sessions.entry(done.summary_entry or "", story.session).content
    assert story.said() == [*dialogue("one"), summary] and "src/main.py" in summary
    assert picture(story.project) == one.files
    four = story.turn("four", "rm keep.txt; echo four > notes.txt")
    other = Story(story.project, workspace, workspace.sessions.fork(story.session).id)
    workspace.sessions.compact(other.session, summary="in the fork")
    five = other.turn("five", "rm -r ./*")
    assert five.files == {}
    other.check(
        lambda: other.goto(five.message),
        said=[*dialogue("one"), summary, *dialogue("four"), "in the fork"],
        files=four.files,
    )
    other.check(lambda: other.goto(one.step), said=dialogue("one"), files=one.files)
    story.check(
        lambda: story.goto(two.step, force=True), said=dialogue("one", "two"), files=two.files
    )
    story.check(
        lambda: story.goto(four.step),
        said=[*dialogue("one"), summary, *dialogue("four")],
        files=four.files,
    )
    workspace.sessions.delete(story.session)
    other.check(
        lambda: other.goto(four.step),
        said=[*dialogue("one"), summary, *dialogue("four")],
        files=four.files,
    )
