"""The promises of pi about a session's tree: steps, moving about in it, and what changed where."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from acts import fingerprint, picture, run, write

import mulligan
from mulligan import Workspace
from mulligan.core.entries import NewEntry
from mulligan.journal import checkpoints
from mulligan.workspace.results.sessions import Entry, ModifiedFile
from mulligan.workspace.results.turns import Step


@pytest.fixture
def session(project: Path, workspace: Workspace) -> str:
    write(project, {"a": "zero\n", "d/b": "zero\n"})
    return workspace.sessions.create(agent="pi").id


def turn(project: Path, workspace: Workspace, session: str, message: str, command: str) -> Step:
    """A message, what a shell command does to the files, an answer."""
    workspace.sessions.begin_turn(session, message)
    run(project, command)
    workspace.sessions.append(session, NewEntry("assistant_output", f"Answer to {message}"))
    return workspace.sessions.end_turn(session)


def leaf(workspace: Workspace, session: str) -> str | None:
    return workspace.sessions.get(session).leaf


def path(workspace: Workspace, session: str) -> list[str]:
    return [entry.id for entry in workspace.sessions.conversation(session)]


def everything(workspace: Workspace, session: str) -> tuple[Entry, ...]:
    return workspace.sessions.transcript(session, limit=1000, include_compacted=True).entries


def message_of(workspace: Workspace, session: str, text: str) -> Entry:
    (found,) = (entry for entry in everything(workspace, session) if entry.content == text)
    return found


def journal_of(workspace: Workspace) -> list[object]:
    """Everything that the journal says."""
    names = ("sessions", "entries", "labels", "operations", "checkpoints", "views", "events")
    return [workspace.project.journal.rows(f"SELECT * FROM {name}") for name in names]


def test_pi_1_moving_about_only_ever_appends(
    project: Path, workspace: Workspace, session: str
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a")
    turn(project, workspace, session, "two", "echo 2 > a")
    before = everything(workspace, session)
    assert first.entry is not None
    workspace.sessions.goto(first.entry, session=session, summarize=True)
    workspace.sessions.goto(before[-1].id, session=session, skip_files=True)
    workspace.undo()
    assert everything(workspace, session)[: len(before)] == before


def test_pi_2_a_step_says_what_it_was_and_became_and_which_turn(
    project: Path, workspace: Workspace, session: str
) -> None:
    workspace.sessions.begin_turn(session, "one")
    run(project, "echo 1 > a; echo 1 > new; rm d/b; mkdir empty")
    taken = workspace.sessions.end_turn(session)
    assert taken.entry is not None and taken.checkpoint is not None
    entry = workspace.sessions.entry(taken.entry, session)
    began = workspace.log()[-1]
    assert began.kind == "initial"
    assert entry.type == "step_snapshot" and entry.checkpoint == taken.checkpoint
    assert entry.data == {
        "baselineTreeHash": began.tree,
        "snapshotTreeHash": workspace.find(taken.checkpoint).tree,
        "diff": {"added": ["new"], "modified": ["a"], "deleted": ["d/b"]},
        "turnIndex": 0,
    }
    assert entry.parent == workspace.sessions.conversation(session)[-2].id
    second = turn(project, workspace, session, "two", "echo 2 > a")
    assert second.turn == 1
    data = workspace.sessions.entry(second.entry or "", session).data or {}
    assert data["baselineTreeHash"] == entry.data["snapshotTreeHash"]
    assert data["turnIndex"] == 1


def test_pi_3_a_turn_that_changed_nothing_leaves_no_step(
    project: Path, workspace: Workspace, session: str
) -> None:
    step = turn(project, workspace, session, "only asking", "cat a; echo more > b; rm b")
    assert (step.entry, step.checkpoint) == (None, None)
    assert [entry.type for entry in everything(workspace, session)] == [
        "user_input",
        "assistant_output",
    ]


def test_pi_3_the_first_baseline_of_an_empty_directory_is_null(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    step = turn(project, workspace, session, "one", "echo 1 > a")
    data = workspace.sessions.entry(step.entry or "", session).data or {}
    assert data["baselineTreeHash"] is None
    assert data["diff"] == {"added": ["a"], "modified": [], "deleted": []}


def test_pi_4_an_unrevert_point_is_there_before_a_file_is_written(
    project: Path, mulligan_home: Path
) -> None:
    seen: list[str] = []

    def meanwhile(stage: str, done: int, total: int | None) -> None:
        if stage == "restoring" and not seen:
            with mulligan.open(project) as other:
                seen.extend(entry.type for entry in everything(other, "mine"))
            seen.append((project / "a").read_text())

    with mulligan.open(project, progress=meanwhile) as workspace:
        write(project, {"a": "zero\n"})
        session = workspace.sessions.create(id="mine").id
        first = turn(project, workspace, session, "one", "echo 1 > a")
        turn(project, workspace, session, "two", "echo 2 > a; echo 2 > new")
        left = leaf(workspace, session)
        now = workspace.checkpoint().tree
        workspace.sessions.goto(first.entry or "", session=session)
        assert "unrevert_point" in seen
        (point,) = (e for e in everything(workspace, session) if e.type == "unrevert_point")
        assert point.parent == left and point.off_path
        assert point.data == {
            "preRollbackTreeHash": now,
            "rolledBackToLeaf": first.entry,
            "restoredFiles": ["a", "new"],
        }


def test_pi_4_an_unrevert_point_leads_back_to_what_was_there_the_user_s_edits_too(
    project: Path, workspace: Workspace, session: str
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a")
    turn(project, workspace, session, "two", "echo 2 > a")
    write(project, {"a": "typed since\n"})
    workspace.sessions.goto(first.entry or "", session=session, force=True)
    (point,) = (e for e in everything(workspace, session) if e.type == "unrevert_point")
    workspace.sessions.goto(point.id, session=session)
    assert (project / "a").read_text() == "typed since\n"
    (words,) = workspace.sessions.append(session, NewEntry("assistant_output", "From there on"))
    workspace.sessions.goto(first.entry or "", session=session)
    workspace.sessions.goto(words.id, session=session)
    assert (project / "a").read_text() == "typed since\n"


def test_pi_5_files_follow_unless_they_are_skipped(
    project: Path, workspace: Workspace, session: str
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a")
    turn(project, workspace, session, "two", "echo 2 > a; echo 2 > new")
    now = picture(project)
    done = workspace.sessions.goto(first.entry or "", session=session, skip_files=True)
    assert (done.new_leaf, done.skip_files, done.files) == (first.entry, True, None)
    assert leaf(workspace, session) == first.entry and picture(project) == now
    workspace.undo()
    assert leaf(workspace, session) == done.old_leaf and picture(project) == now
    done = workspace.sessions.goto(first.entry or "", session=session)
    assert done.files is not None
    assert (done.files.restored, done.files.deleted) == (("a",), ("new",))
    assert (project / "a").read_text() == "1\n" and not (project / "new").exists()


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("summarize", [True, False])
def test_pi_6_to_skip_files_is_remembered_only_with_a_summary(
    project: Path, workspace: Workspace, session: str, skip: bool, summarize: bool
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a")
    turn(project, workspace, session, "two", "echo 2 > a")
    left = leaf(workspace, session)
    done = workspace.sessions.goto(
        first.entry or "", session=session, skip_files=skip, summarize=summarize
    )
    found = [e for e in everything(workspace, session) if e.type == "branch_summary"]
    assert len(found) == summarize
    if not summarize:
        assert (done.summary_entry, done.new_leaf) == (None, first.entry)
        assert not any("skipFiles" in (e.data or {}) for e in everything(workspace, session))
        return
    (summary,) = found
    assert summary.data == {"fromId": left} | ({"skipFiles": True} if skip else {})
    assert done.summary_entry == done.new_leaf == summary.id == leaf(workspace, session)
    assert summary.parent == first.entry
    assert "two" in summary.content and "one" not in summary.content


def test_pi_6_a_summary_can_be_given(project: Path, workspace: Workspace, session: str) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a")
    turn(project, workspace, session, "two", "echo 2 > a")
    done = workspace.sessions.goto(first.entry or "", session=session, summary="It did not work")
    assert workspace.sessions.entry(done.summary_entry or "", session).content == "It did not work"


def test_pi_6_a_summary_tells_of_the_way_that_is_left_wherever_one_goes(
    project: Path, workspace: Workspace, session: str
) -> None:
    fork = turn(project, workspace, session, "the trunk", "echo 1 > a").entry or ""
    left = turn(project, workspace, session, "the left way", "echo 2 > a").entry or ""
    workspace.sessions.goto(fork, session=session)
    right = turn(project, workspace, session, "the right way", "echo 3 > a").entry or ""
    workspace.sessions.goto(left, session=session)
    done = workspace.sessions.goto(right, session=session, summarize=True)
    words = workspace.sessions.entry(done.summary_entry or "", session).content
    assert "the left way" in words
    assert "the right way" not in words and "the trunk" not in words


def test_pi_6_where_nothing_is_left_there_is_nothing_to_sum_up(
    project: Path, workspace: Workspace, session: str
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a").entry or ""
    second = turn(project, workspace, session, "two", "echo 2 > a").entry or ""
    workspace.sessions.goto(first, session=session)
    done = workspace.sessions.goto(second, session=session, summarize=True)
    assert (done.summary_entry, done.new_leaf) == (None, second)
    assert leaf(workspace, session) == second and (project / "a").read_text() == "2\n"


def test_pi_7_one_row_a_file_with_its_net_status_and_its_earliest_turn(
    project: Path, workspace: Workspace, session: str
) -> None:
    steps = [
        turn(project, workspace, session, "0", "echo 0 > made; echo 0 > fleeting; echo 0 > a"),
        turn(project, workspace, session, "1", "echo 1 > made; rm fleeting; rm d/b; echo 1 > a"),
        turn(project, workspace, session, "2", "echo 2 > late; echo 2 > there; rm there"),
        turn(project, workspace, session, "3", "printf 'zero\\n' > a"),
    ]
    entries = [step.entry for step in steps]
    assert workspace.sessions.modified_files(session) == [
        ModifiedFile("d/b", "deleted", 1, entries[1]),
        ModifiedFile("late", "added", 2, entries[2]),
        ModifiedFile("made", "added", 0, entries[0]),
    ]
    assert workspace.sessions.modified_files(session, None, entries[0]) == [
        ModifiedFile("a", "modified", 0, entries[0]),
        ModifiedFile("fleeting", "added", 0, entries[0]),
        ModifiedFile("made", "added", 0, entries[0]),
    ]
    assert workspace.sessions.modified_files(session, entries[3], entries[3]) == []


def test_pi_7_between_two_entries_only_the_turns_between_them_count(
    project: Path, workspace: Workspace, session: str
) -> None:
    steps = [
        turn(project, workspace, session, str(number), f"echo {number} > a; echo {number} > n")
        for number in range(4)
    ]
    entries = [step.entry for step in steps]
    assert workspace.sessions.modified_files(session, entries[1], entries[2]) == [
        ModifiedFile("a", "modified", 2, entries[2]),
        ModifiedFile("n", "modified", 2, entries[2]),
    ]
    # From before a message on, its own turn counts.
    message = message_of(workspace, session, "1").id
    assert workspace.sessions.modified_files(session, message, entries[2]) == [
        ModifiedFile("a", "modified", 1, entries[1]),
        ModifiedFile("n", "modified", 1, entries[1]),
    ]


def test_pi_7_to_the_last_words_of_a_turn_its_own_changes_count(
    project: Path, workspace: Workspace, session: str
) -> None:
    step = turn(project, workspace, session, "one", "echo 1 > a")
    answer = message_of(workspace, session, "Answer to one").id
    wanted = [ModifiedFile("a", "modified", 0, step.entry)]
    assert workspace.sessions.modified_files(session, None, answer) == wanted
    workspace.sessions.goto(answer, session=session)
    assert workspace.sessions.modified_files(session) == wanted


def test_pi_7_other_branches_do_not_count(
    project: Path, workspace: Workspace, session: str
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a").entry or ""
    other = turn(project, workspace, session, "two", "echo 2 > there").entry or ""
    workspace.sessions.goto(first, session=session)
    here = turn(project, workspace, session, "three", "echo 3 > here").entry or ""
    assert [row.path for row in workspace.sessions.modified_files(session)] == ["a", "here"]
    assert [row.path for row in workspace.sessions.modified_files(session, None, other)] == [
        "a",
        "there",
    ]
    across = {
        row.path: row.status for row in workspace.sessions.modified_files(session, other, here)
    }
    assert across == {"here": "added", "there": "deleted"}


def test_pi_7_a_session_that_was_not_there_from_its_beginning_counts_from_its_first_turn(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "zero\n"})
    session = workspace.sessions.create(checkpoint=False).id
    step = turn(project, workspace, session, "one", "echo 1 > a")
    assert workspace.sessions.modified_files(session) == [
        ModifiedFile("a", "modified", 0, step.entry)
    ]
    found = workspace.sessions.file_diff(session, "a")
    assert found is not None and found.old_content == b"zero\n"


def test_pi_8_a_file_at_two_entries(project: Path, workspace: Workspace, session: str) -> None:
    steps = [
        turn(project, workspace, session, "0", "printf 'zero\\none\\n' > a; echo n > new"),
        turn(project, workspace, session, "1", "rm d/b; printf '\\0\\1' > binary; rm new"),
    ]
    entries = [step.entry for step in steps]
    found = workspace.sessions.file_diff(session, "a")
    assert found is not None
    assert (found.path, found.old_content, found.new_content) == ("a", b"zero\n", b"zero\none\n")
    assert found.old_hash == hashlib.sha256(b"zero\n").hexdigest()
    assert found.new_hash == hashlib.sha256(b"zero\none\n").hexdigest()
    assert found.unified == "--- a\n+++ a\n@@ -1 +1,2 @@\n zero\n+one\n"
    added = workspace.sessions.file_diff(session, "new", None, entries[0])
    assert added is not None and (added.old_content, added.old_hash) == (None, None)
    assert added.new_content == b"n\n" and "+n" in added.unified
    deleted = workspace.sessions.file_diff(session, "d/b", entries[0], entries[1])
    assert deleted is not None and (deleted.new_content, deleted.new_hash) == (None, None)
    assert deleted.old_content == b"zero\n" and "-zero" in deleted.unified
    binary = workspace.sessions.file_diff(session, "binary")
    assert binary is not None and (binary.new_content, binary.unified) == (b"\0\1", "")
    same = workspace.sessions.file_diff(session, "a", entries[0], entries[1])
    assert same is not None and same.old_hash == same.new_hash and same.unified == ""
    # Added and deleted again: in neither.
    assert workspace.sessions.file_diff(session, "new") is None
    assert workspace.sessions.file_diff(session, "never") is None
    assert workspace.sessions.file_diff(session, "d") is None


def test_pi_11_the_state_at_an_entry_is_the_latest_on_its_own_path(
    project: Path, workspace: Workspace, session: str
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a").entry or ""
    turn(project, workspace, session, "two", "echo 2 > a; echo 2 > two")
    workspace.sessions.goto(first, session=session)
    (words,) = workspace.sessions.append(session, NewEntry("assistant_output", "Only words"))
    turn(project, workspace, session, "three", "echo 3 > a")
    workspace.sessions.goto(words.id, session=session)
    assert (project / "a").read_text() == "1\n" and not (project / "two").exists()


@pytest.mark.parametrize("kind", ["step", "turn"])
def test_pi_11_a_state_that_was_forgotten_is_never_taken_for_another(
    project: Path, workspace: Workspace, session: str, kind: str
) -> None:
    steps = [turn(project, workspace, session, str(n), f"echo {n} > a") for n in range(4)]
    # What the user does between turns makes the message's checkpoint another than the step's.
    write(project, {"a": "the user's\n"})
    last = workspace.sessions.begin_turn(session, "last")
    write(project, {"a": "last\n"})
    step = workspace.sessions.end_turn(session)
    gone = {"step": steps[1].checkpoint, "turn": last.checkpoint}[kind]
    target = {"step": steps[1].entry, "turn": last.entry}[kind]
    wanted = {"step": "1\n", "turn": "the user's\n"}[kind]
    turn(project, workspace, session, "and on", "echo more > other")
    trees = {row.tree for row in workspace.log() if row.id == gone}
    gone_too = [row.id for row in workspace.log() if row.tree in trees]
    with workspace.project.journal.writing() as db:
        checkpoints.delete(db, gone_too)
    before = fingerprint(project)
    assert target is not None and step.entry is not None
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.goto(target, session=session)
    assert fingerprint(project) == before, f"it is not {wanted!r} any more"
    workspace.sessions.goto(target, session=session, skip_files=True)


def test_pi_11_everything_is_found_again_after_a_reload(
    project: Path, workspace: Workspace, session: str
) -> None:
    steps = [turn(project, workspace, session, str(n), f"echo {n} > a") for n in range(3)]
    told = (path(workspace, session), workspace.sessions.modified_files(session))
    with mulligan.open(project) as again:
        assert (path(again, session), again.sessions.modified_files(session)) == told
        again.sessions.goto(steps[0].entry or "", session=session)
    assert (project / "a").read_text() == "0\n"
    assert leaf(workspace, session) == steps[0].entry


def test_pi_14_moving_is_told_to_whoever_follows(
    project: Path, workspace: Workspace, session: str
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a")
    turn(project, workspace, session, "two", "echo 2 > a")
    old = leaf(workspace, session)
    done = workspace.sessions.goto(first.entry or "", session=session, summarize=True)
    told = done.as_json()
    assert (told["old_leaf"], told["new_leaf"]) == (old, done.summary_entry)
    assert (told["skip_files"], told["preview"]) == (False, False)
    assert told["files"]["restored"] == ["a"]


@pytest.mark.parametrize("open_turn", [False, True], ids=["between turns", "within a turn"])
@pytest.mark.parametrize("skip", [False, True], ids=["with files", "without files"])
def test_pi_14_a_preview_gives_the_plan_and_changes_nothing(
    project: Path, workspace: Workspace, session: str, open_turn: bool, skip: bool
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a")
    turn(project, workspace, session, "two", "echo 2 > a; echo 2 > new")
    if open_turn:
        workspace.sessions.begin_turn(session, "three")
        write(project, {"a": "three\n", "three": "3"})
    before, files = journal_of(workspace), fingerprint(project)
    plan = workspace.sessions.goto(
        first.entry or "", session=session, preview=True, summarize=True, skip_files=skip
    )
    assert journal_of(workspace) == before
    assert fingerprint(project) == files
    assert plan.preview and plan.new_leaf == first.entry and plan.summary_entry is None
    done = workspace.sessions.goto(first.entry or "", session=session, skip_files=skip)
    if skip:
        assert plan.files is None and fingerprint(project) == files
        return
    assert plan.files is not None and done.files is not None
    assert plan.files.restored == done.files.restored == ("a",)
    assert plan.files.deleted == done.files.deleted
    assert set(done.files.deleted) == ({"new", "three"} if open_turn else {"new"})


def test_pi_15_an_empty_session_answers_everything(workspace: Workspace, session: str) -> None:
    assert leaf(workspace, session) is None
    assert (
        workspace.sessions.conversation(session) == []
        and workspace.sessions.branches(session) == []
    )
    assert (
        workspace.sessions.transcript(session).entries
        == workspace.sessions.recent(session).entries
        == ()
    )
    assert workspace.sessions.modified_files(session) == []
    assert workspace.sessions.file_diff(session, "never") is None
    same = workspace.sessions.file_diff(session, "a")
    assert same is not None and same.unified == ""
    assert workspace.sessions.count_entries(session) == 0
    forked = workspace.sessions.fork(session)
    assert forked.leaf is None and forked.forked_from == session
    assert workspace.sessions.compact(forked.id)[0] == 0
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.goto("#1", session=session)
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.end_turn(session)


def test_navigate_a_message_is_gone_before_and_handed_back(
    project: Path, workspace: Workspace, session: str
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a")
    turn(project, workspace, session, "two,\nin ünïcode", "echo 2 > a")
    message = message_of(workspace, session, "two,\nin ünïcode")
    done = workspace.sessions.goto(message.id, session=session)
    assert done.text == "two,\nin ünïcode"
    assert done.new_leaf == leaf(workspace, session) == first.entry
    assert (project / "a").read_text() == "1\n"


def test_navigate_what_is_no_message_hands_nothing_back(
    project: Path, workspace: Workspace, session: str
) -> None:
    turn(project, workspace, session, "one", "echo 1 > a")
    answer = message_of(workspace, session, "Answer to one")
    turn(project, workspace, session, "two", "echo 2 > a")
    done = workspace.sessions.goto(answer.id, session=session)
    assert (done.text, done.new_leaf) == (None, answer.id)
    assert (project / "a").read_text() == "1\n"


@pytest.mark.parametrize("skip", [False, True], ids=["with files", "without files"])
def test_navigate_to_the_leaf_does_nothing(
    project: Path, workspace: Workspace, session: str, skip: bool
) -> None:
    turn(project, workspace, session, "one", "echo 1 > a")
    at = leaf(workspace, session) or ""
    write(project, {"a": "the user's"})
    before, files = journal_of(workspace), fingerprint(project)
    done = workspace.sessions.goto(at, session=session, summarize=True, skip_files=skip)
    assert (done.old_leaf, done.new_leaf, done.text, done.summary_entry) == (at, at, None, None)
    assert (journal_of(workspace), fingerprint(project)) == (before, files)


@pytest.mark.parametrize("open_turn", [False, True], ids=["between turns", "within a turn"])
@pytest.mark.parametrize("system_message", [False, True], ids=["first", "after a system message"])
def test_navigate_to_before_the_first_message_leads_to_the_root_with_the_first_files(
    project: Path, workspace: Workspace, session: str, open_turn: bool, system_message: bool
) -> None:
    write(project, {"kept": "0"})
    first = picture(project)
    if system_message:
        workspace.sessions.append(session, NewEntry("system_message", "before all messages"))
    turn(project, workspace, session, "one", "echo 1 > a; rm kept")
    if open_turn:
        workspace.sessions.begin_turn(session, "two")
        write(project, {"a": "2"})
    old, files = workspace.sessions.get(session).leaf, picture(project)
    message = message_of(workspace, session, "one")
    assert (message.parent is None) is not system_message
    plan = workspace.sessions.goto(message.id, session=session, preview=True)
    assert picture(project) == files and workspace.sessions.get(session).leaf == old
    done = workspace.sessions.goto(message.id, session=session)
    assert plan.files is not None and done.files is not None
    assert (plan.files.restored, plan.files.deleted) == (done.files.restored, done.files.deleted)
    assert (done.text, done.new_leaf, done.files.skipped) == ("one", message.parent, ())
    assert workspace.sessions.get(session).leaf == message.parent
    assert picture(project) == first
    workspace.undo(expect=done.operation)
    assert picture(project) == files
    done = workspace.sessions.goto(message.id, session=session)
    turn(project, workspace, session, "one, said better", "echo better > a")
    said = [
        each.content
        for each in workspace.sessions.conversation(session)
        if each.type == "user_input"
    ]
    assert said == ["one, said better"]
    assert workspace.sessions.goto(message.id, session=session, skip_files=True).text == "one"


def test_navigate_finds_entries_by_prefix_label_and_number(
    project: Path, workspace: Workspace, session: str
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a")
    assert first.entry is not None
    workspace.sessions.label(first.entry, "good", session)
    assert workspace.sessions.entry(first.entry, session).label == "good"
    seq = workspace.sessions.entry(first.entry, session).seq
    for name in (first.entry[:10], "good", f"#{seq}"):
        step = turn(project, workspace, session, name, f"echo '{name}' > a")
        assert workspace.sessions.goto(name, session=session).new_leaf == first.entry
        assert (project / "a").read_text() == "1\n" and step.entry is not None
    workspace.sessions.label("good", None, session)
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.goto("good", session=session)


def test_navigate_spares_what_the_user_changed_since_unless_forced(
    project: Path, workspace: Workspace, session: str
) -> None:
    first = turn(project, workspace, session, "one", "echo 1 > a")
    turn(project, workspace, session, "two", "echo 2 > a; echo 2 > d/b")
    write(project, {"a": "typed by the user\n"})
    done = workspace.sessions.goto(first.entry or "", session=session)
    assert done.files is not None
    assert [skip.path for skip in done.files.skipped] == ["a"]
    assert (project / "a").read_text() == "typed by the user\n"
    assert (project / "d/b").read_text() == "zero\n"
    workspace.undo()
    assert (project / "d/b").read_text() == "2\n"
    workspace.sessions.goto(first.entry or "", session=session, force=True)
    assert (project / "a").read_text() == "1\n"
    workspace.undo()
    assert (project / "a").read_text() == "typed by the user\n"


def test_navigate_in_an_imported_session_says_why_files_cannot_follow(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create(checkpoint=False).id
    one, _two = workspace.sessions.append(
        session, NewEntry("user_input", "1"), NewEntry("user_input", "2")
    )
    (answer,) = workspace.sessions.append(session, NewEntry("assistant_output", parent=one.id))
    workspace.sessions.append(session, NewEntry("user_input", "3"))
    with pytest.raises(mulligan.NotFound, match="--no-files"):
        workspace.sessions.goto(answer.id, session=session)
    assert (
        workspace.sessions.goto(answer.id, session=session, skip_files=True).new_leaf == answer.id
    )
