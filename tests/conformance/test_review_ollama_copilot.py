"""The promises of Ollama Copilot about review, as the library keeps them.

A checkpoint of theirs is a turn here; statuses, stats and positions are answers to questions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from acts import picture, write

import mulligan
from mulligan import Workspace

LINES = "".join(f"line {number}\n" for number in range(20))


def turn(workspace: Workspace, session: str, act: Callable[[], object]) -> None:
    workspace.sessions.begin_turn(session, "go")
    act()
    workspace.sessions.end_turn(session)


def changed(content: str, *numbers: int) -> str:
    for number in numbers:
        content = content.replace(f"line {number}\n", f"changed {number}\n")
    return content


def status_of(workspace: Workspace, session: str) -> list[str]:
    return [each.status for each in workspace.review.turn_statuses(session)]


def files_of(workspace: Workspace, session: str, number: int = 0) -> dict[str, str]:
    return {
        each.path: each.status for each in workspace.review.turn_statuses(session)[number].files
    }


def test_oc_4_a_turn_is_pending_then_kept_undone_or_partial(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": LINES, "b": LINES})
    session = workspace.sessions.create().id
    turn(workspace, session, lambda: write(project, dict.fromkeys("ab", changed(LINES, 3))))
    assert status_of(workspace, session) == ["pending"]
    workspace.review.keep(paths=["a"])
    assert status_of(workspace, session) == ["pending"]
    workspace.review.keep(paths=["b"])
    assert status_of(workspace, session) == ["kept"]
    workspace.undo()
    workspace.review.discard(paths=["b"])
    assert status_of(workspace, session) == ["partial"]
    workspace.undo()
    workspace.undo()
    workspace.review.discard(everything=True)
    assert status_of(workspace, session) == ["undone"]


def test_oc_5_each_file_of_a_turn_tells_what_was_done_and_what_became_of_it(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"modified": LINES, "deleted": "1\n2\n"})
    session = workspace.sessions.create().id

    def act() -> None:
        write(project, {"modified": changed(LINES, 1, 5), "created": "1\n2\n3\n"})
        (project / "deleted").unlink()

    turn(workspace, session, act)
    (found,) = workspace.review.turn_statuses(session)
    assert {each.path: (each.action, each.additions, each.deletions) for each in found.files} == {
        "created": ("created", 3, 0),
        "deleted": ("deleted", 0, 2),
        "modified": ("modified", 2, 2),
    }
    assert files_of(workspace, session) == dict.fromkeys(
        ("created", "deleted", "modified"), "pending"
    )
    assert found.checkpoint is not None
    assert workspace.read(found.checkpoint, "modified") == LINES.encode()


def test_oc_18_one_turn_a_prompt_and_each_has_its_checkpoint(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    taken = []
    for number in range(3):
        write(project, {"a": f"{number}\n"})
        taken.append(workspace.sessions.begin_turn(session, f"prompt {number}").checkpoint)
        workspace.sessions.end_turn(session)
    assert [workspace.read(each, "a") for each in taken] == [b"0\n", b"1\n", b"2\n"]


def test_oc_19_the_first_content_of_a_turn_wins_however_often_it_is_written(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "original\n"})
    session = workspace.sessions.create().id

    def act() -> None:
        for number in range(3):
            edit = workspace.sessions.start_edit(session, ["a"])
            write(project, {"a": f"version {number}\n"})
            workspace.sessions.finalize_edit(edit)

    turn(workspace, session, act)
    (hunk,) = workspace.review.pending().hunks
    assert (hunk.old_lines, hunk.new_lines) == (("original\n",), ("version 2\n",))
    workspace.review.discard(everything=True)
    assert (project / "a").read_text() == "original\n"


def test_oc_20_keeping_and_undoing_a_file(project: Path, workspace: Workspace) -> None:
    write(project, {"a": LINES, "b": LINES})
    session = workspace.sessions.create().id

    def act() -> None:
        write(project, {"a": changed(LINES, 1), "b": changed(LINES, 1), "c": "new\n"})

    turn(workspace, session, act)
    workspace.review.keep(paths=["a"])
    workspace.review.discard(paths=["b"])
    workspace.review.discard(paths=["c"])
    assert files_of(workspace, session) == {"a": "kept", "b": "undone", "c": "undone"}
    assert (project / "a").read_text() == changed(LINES, 1)
    assert (project / "b").read_text() == LINES
    assert not (project / "c").exists()
    workspace.undo()
    assert (project / "c").read_text() == "new\n", "what was undone is kept, and can come back"
    assert files_of(workspace, session) == {"a": "kept", "b": "undone", "c": "pending"}


def test_oc_20_a_status_changes_only_when_the_disk_or_the_baseline_did(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    turn(workspace, session, lambda: write(project, {"new": "agent\n"}))
    write(project, {"new": "agent\nuser\n"})
    workspace.review.discard(paths=["new"])
    assert (project / "new").exists()
    assert files_of(workspace, session) == {"new": "pending"}


@pytest.mark.parametrize("verb", ["keep", "discard"])
def test_oc_21_all_at_once_over_files_turns_and_sessions(
    project: Path, workspace: Workspace, verb: str
) -> None:
    write(project, {"a": LINES, "b": LINES})
    before = picture(project)
    one, two = (workspace.sessions.create().id for _each in range(2))
    turn(workspace, one, lambda: write(project, {"a": changed(LINES, 1), "c": "new\n"}))
    turn(workspace, two, lambda: write(project, {"a": changed(LINES, 1, 9), "b": "all new\n"}))
    turn(workspace, one, lambda: write(project, {"a": changed(LINES, 1, 9, 15)}))
    after = picture(project)
    getattr(workspace.review, verb)(everything=True)
    assert workspace.review.pending().files == () and workspace.review.stats() == {}
    assert picture(project) == (after if verb == "keep" else before)
    wanted = "kept" if verb == "keep" else "undone"
    assert {*status_of(workspace, one), *status_of(workspace, two)} == {wanted}


def test_oc_22_what_cannot_be_undone_fails_and_changes_nothing(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": LINES})
    session = workspace.sessions.create().id
    turn(workspace, session, lambda: write(project, {"a": changed(LINES, 1)}))
    workspace.review.keep(everything=True)
    before = picture(project)
    with pytest.raises(mulligan.NotFound):
        workspace.review.discard(paths=["a"])
    assert picture(project) == before


def test_oc_23_oc_24_stats_are_of_what_is_pending_by_file_and_session(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": LINES, "b": LINES, "d": "1\n2\n3\n"})
    one, two, idle = (workspace.sessions.create().id for _each in range(3))

    def act() -> None:
        write(project, {"a": changed(LINES, 1, 5), "c": "1\n2\n3\n"})
        (project / "d").unlink()

    turn(workspace, one, act)
    turn(workspace, two, lambda: write(project, {"b": changed(LINES, 7)}))
    stats = workspace.review.stats()
    assert stats == {one: (5, 5, 3), two: (1, 1, 1)}
    assert idle not in stats, "nothing to show"
    assert {
        each.path: (each.additions, each.deletions) for each in workspace.review.pending().files
    } == {
        "a": (2, 2),
        "b": (1, 1),
        "c": (3, 0),
        "d": (0, 3),
    }


def test_oc_25_stats_are_right_after_every_decision(project: Path, workspace: Workspace) -> None:
    write(project, {"a": LINES, "b": LINES})
    session = workspace.sessions.create().id
    turn(workspace, session, lambda: write(project, dict.fromkeys("ab", changed(LINES, 1, 5, 9))))
    first, *_rest = workspace.review.pending(paths=["a"]).hunks
    assert workspace.review.stats()[session] == (6, 6, 2)
    workspace.review.keep(first.id)
    assert workspace.review.stats()[session] == (5, 5, 2)
    workspace.review.discard(paths=["a"])
    assert workspace.review.stats()[session] == (3, 3, 1)
    write(project, {"b": changed(LINES, 1, 5)})
    assert workspace.review.stats()[session] == (2, 2, 1), "the user took one back by hand"
    write(project, {"b": "mine\n" + changed(LINES, 1, 5)})
    assert workspace.review.stats()[session] == (2, 2, 1), "the user's own line does not count"
    workspace.undo()
    assert workspace.review.stats()[session] == (4, 4, 2)
    workspace.review.keep(everything=True)
    assert workspace.review.stats() == {}
    workspace.undo()
    workspace.sessions.delete(session)
    assert workspace.review.stats() == {}


def test_oc_26_what_is_pending_is_known_again_after_a_restart(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": LINES})
    session = workspace.sessions.create().id
    turn(workspace, session, lambda: write(project, {"a": changed(LINES, 1, 5), "b": "x\n"}))
    workspace.review.keep(workspace.review.pending().hunks[0].id)
    with mulligan.open(project) as again:
        assert again.review.pending() == workspace.review.pending()
        assert again.review.turn_statuses(session) == workspace.review.turn_statuses(session)


def test_oc_27_a_hunk_tells_its_lines_and_their_places(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "1\n2\n3\n4\n"})
    session = workspace.sessions.create().id
    turn(workspace, session, lambda: write(project, {"a": "1\ntwo\ntwo more\n4\nlast\n"}))
    first, second = workspace.review.pending().hunks
    assert (first.old_start, first.new_start) == (2, 2)
    assert (first.old_lines, first.new_lines) == (("2\n", "3\n"), ("two\n", "two more\n"))
    assert (second.old_start, second.new_start) == (5, 5)
    assert (second.old_lines, second.new_lines) == ((), ("last\n",))


def test_oc_28_a_file_of_several_turns_is_shown_once_against_the_oldest(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": LINES})
    session = workspace.sessions.create().id
    for number in (1, 5, 9):
        content = changed((project / "a").read_text(), number)
        turn(workspace, session, partial(write, project, {"a": content}))
    (file,) = workspace.review.pending().files
    assert [hunk.old_lines for hunk in file.hunks] == [
        (f"line {number}\n",) for number in (1, 5, 9)
    ]
    assert [hunk.turns for hunk in file.hunks] == [(0,), (1,), (2,)]
    assert all(len(hunk.old_lines) == len(hunk.new_lines) == 1 for hunk in file.hunks), "no context"


def test_oc_29_the_review_of_several_turns_is_one(project: Path, workspace: Workspace) -> None:
    write(project, {"a": LINES, "b": LINES})
    session = workspace.sessions.create().id
    turn(workspace, session, lambda: write(project, {"a": changed(LINES, 1)}))
    turn(workspace, session, lambda: write(project, {"b": changed(LINES, 1)}))
    assert [file.path for file in workspace.review.pending(session=session).files] == ["a", "b"]
    for number, path in enumerate("ab"):
        found = workspace.review.pending(session=session, turn=number)
        assert [file.path for file in found.files] == [path]


def test_oc_30_a_hunk_that_is_decided_is_gone_and_later_ones_shift(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": LINES})
    session = workspace.sessions.create().id
    new = LINES.replace("line 2\n", "line 2\nx\ny\nz\n").replace("line 9\n", "nine\n")
    turn(workspace, session, lambda: write(project, {"a": new}))
    first, second = workspace.review.pending().hunks
    assert second.new_start == 13
    workspace.review.discard(first.id)
    (left,) = workspace.review.pending().hunks
    assert left.id == second.id and left.new_start == 10
    workspace.undo()
    workspace.review.keep(first.id)
    (left,) = workspace.review.pending().hunks
    assert left.id == second.id and (left.old_start, left.new_start) == (13, 13)
    workspace.review.keep(second.id)
    assert workspace.review.pending().files == ()
    assert files_of(workspace, session) == {"a": "kept"}


def test_oc_30_a_file_is_undone_once_its_content_is_the_original(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": LINES})
    session = workspace.sessions.create().id
    turn(workspace, session, lambda: write(project, {"a": changed(LINES, 1, 9)}))
    for hunk in workspace.review.pending().hunks:
        workspace.review.discard(hunk.id)
    assert (project / "a").read_text() == LINES
    assert files_of(workspace, session) == {"a": "undone"}
    workspace.undo()
    workspace.review.keep(everything=True)
    assert files_of(workspace, session) == {"a": "partial"}


def test_oc_31_oc_32_position_crosses_files_and_wraps(project: Path, workspace: Workspace) -> None:
    write(project, {"a": LINES, "b": LINES})
    session = workspace.sessions.create().id
    assert workspace.review.position()[:2] == (0, 0)
    turn(workspace, session, lambda: write(project, dict.fromkeys("ab", changed(LINES, 1, 9))))
    ids = [hunk.id for hunk in workspace.review.pending().hunks]
    at = workspace.review.position()
    seen = [(at.current, at.total, at.path, at.hunk)]
    for _each in range(4):
        at = workspace.review.position(at.hunk, step=1)
        seen.append((at.current, at.total, at.path, at.hunk))
    assert seen == [(number % 4 + 1, 4, "aabb"[number % 4], ids[number % 4]) for number in range(5)]
    assert workspace.review.position(ids[0], step=-1).hunk == ids[3]
    assert workspace.review.position(ids[3], step=1).hunk == ids[0]


def test_oc_33_the_place_is_kept_on_the_file_in_focus_while_things_change(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": LINES, "b": LINES, "c": LINES})
    session = workspace.sessions.create().id
    turn(workspace, session, lambda: write(project, dict.fromkeys("abc", changed(LINES, 1, 9))))
    focused = workspace.review.pending(paths=["b"]).hunks[0]
    turn(workspace, session, lambda: write(project, {"Aa": "x\n", "a": changed(LINES, 1, 5, 9)}))
    at = workspace.review.position(focused.id, path="b")
    assert (at.hunk, at.path, at.current, at.total) == (focused.id, "b", 5, 8)
    workspace.review.keep(focused.id)
    at = workspace.review.position(focused.id, path="b")
    assert (at.path, at.current, at.total) == ("b", 5, 7), "the next one in the same file"
    workspace.review.discard(paths=["b"])
    at = workspace.review.position(focused.id, path="b")
    assert (at.path, at.current, at.total) == ("c", 5, 6), "the next file"


def test_oc_34_a_decision_about_a_file_takes_it_out_of_the_review(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": LINES, "b": LINES, "c": LINES})
    session = workspace.sessions.create().id
    turn(workspace, session, lambda: write(project, dict.fromkeys("abc", changed(LINES, 1))))
    workspace.review.keep(paths=["a"])
    workspace.review.discard(paths=["b"])
    assert [file.path for file in workspace.review.pending().files] == ["c"]
    workspace.review.keep(everything=True)
    assert workspace.review.pending().files == ()


def test_pi_3_no_step_for_a_turn_without_changes_and_the_first_baseline_of_an_empty_project(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    turn(workspace, session, lambda: None)
    assert workspace.sessions.conversation(session, types=("step_snapshot",)) == []
    turn(workspace, session, lambda: write(project, {"a": "1\n"}))
    turn(workspace, session, lambda: write(project, {"a": "2\n"}))
    first, second = workspace.sessions.conversation(session, types=("step_snapshot",))
    assert first.data is not None
    assert second.data is not None
    assert first.data["baselineTreeHash"] is None
    assert second.data["baselineTreeHash"] == first.data["snapshotTreeHash"]
    assert [first.data["turnIndex"], second.data["turnIndex"]] == [1, 2]
    assert first.data["diff"] == {"added": ["a"], "modified": [], "deleted": []}


def test_pi_4_a_rewind_leaves_the_point_to_return_to(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "0\n"})
    session = workspace.sessions.create().id
    turns = []
    for number in (1, 2):
        turns.append(workspace.sessions.begin_turn(session, f"message {number}"))
        write(project, {"a": f"{number}\n"})
        workspace.sessions.end_turn(session)
    before = workspace.sessions.get(session).leaf
    tree = workspace.log(1)[0].tree
    done = workspace.sessions.goto(turns[1].entry)
    assert (project / "a").read_text() == "1\n"
    (point,) = workspace.sessions.transcript(session, types=("unrevert_point",)).entries
    assert point.data == {
        "preRollbackTreeHash": tree, "rolledBackToLeaf": done.new_leaf, "restoredFiles": ["a"],
    }  # fmt: skip
    workspace.undo()
    assert (project / "a").read_text() == "2\n"
    assert workspace.sessions.get(session).leaf == before


def test_ya_8_a_checkpoint_belongs_to_its_entry_and_goes_without_it(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    write(project, {"a": "12345"})
    turn_ = workspace.sessions.begin_turn(session, "go")
    workspace.sessions.end_turn(session)
    (entry,) = workspace.sessions.linked_entries(checkpoint=turn_.checkpoint)
    assert entry.id == turn_.entry
    found = workspace.find(turn_.checkpoint)
    assert (found.files, found.bytes) == (1, 5)
    workspace.sessions.delete(session)
    assert workspace.maintenance.verify().clean


def test_ya_17_file_edits_of_a_session_name_the_files_it_wrote(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n", "b": "1\n"})
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "go")
    for name, content in (("a", "2\n"), ("b", "2\n"), ("a", "3\n")):
        edit = workspace.sessions.start_edit(session, [name])
        write(project, {name: content})
        workspace.sessions.finalize_edit(edit)
    workspace.sessions.end_turn(session)
    paths = [(each.data or {})["path"] for each in workspace.sessions.file_edits(session).entries]
    assert paths == ["a", "b", "a"]
