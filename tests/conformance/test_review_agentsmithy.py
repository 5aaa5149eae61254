"""The promises of AgentSmithy about messages, rounds and edits, as the library keeps them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from acts import Picture, picture, run, write

import mulligan
from mulligan import Workspace

Scenario = Callable[[Workspace, str, Path, str], None]


def by_tool(workspace: Workspace, session: str, path: str, act: Callable[[], object]) -> None:
    edit = workspace.sessions.start_edit(session, [path])
    act()
    workspace.sessions.finalize_edit(edit)


def create_by_tool(workspace: Workspace, session: str, project: Path, path: str) -> None:
    by_tool(workspace, session, path, lambda: write(project, {path: "created\nby a tool\n"}))


def create_by_command(workspace: Workspace, session: str, project: Path, path: str) -> None:
    run(project, f"mkdir -p $(dirname {path}); printf 'created\\nby a command\\n' > {path}")


def modify_by_tool(workspace: Workspace, session: str, project: Path, path: str) -> None:
    content = (project / path).read_text()
    by_tool(workspace, session, path, lambda: write(project, {path: "first\n" + content}))


def modify_by_command(workspace: Workspace, session: str, project: Path, path: str) -> None:
    run(project, f"echo last >> {path}")


def delete_by_tool(workspace: Workspace, session: str, project: Path, path: str) -> None:
    by_tool(workspace, session, path, (project / path).unlink)


def delete_by_command(workspace: Workspace, session: str, project: Path, path: str) -> None:
    run(project, f"rm -rf {path}")


SCENARIOS: tuple[Scenario, ...] = (
    create_by_tool,
    create_by_command,
    modify_by_tool,
    modify_by_command,
    delete_by_tool,
    delete_by_command,
)
CREATES, DELETES = SCENARIOS[:2], SCENARIOS[4:]


def statuses(workspace: Workspace, session: str) -> dict[str, str]:
    return {each.path: each.status for each in workspace.review.round_status(session).changed_files}


def wanted(before: Picture, after: Picture) -> dict[str, str]:
    """What must be shown, from nothing but two pictures."""
    found = {}
    for path in before.keys() | after.keys():
        was, now = before.get(path), after.get(path)
        if was == now or "directory" in ((was or now)[0], (now or was)[0]):  # type: ignore[index]
            continue
        found[os.fsdecode(path)] = "added" if was is None else "modified" if now else "deleted"
    return found


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize(
    "pair",
    list(itertools.product(SCENARIOS, repeat=2)),
    ids=lambda pair: " then ".join(each.__name__ for each in pair),
)
def test_as_17_every_two_of_the_six_scenarios_are_shown_approved_reset_and_restored(
    project: Path, workspace: Workspace, pair: tuple[Scenario, Scenario], turns: int
) -> None:
    """On one file, where that makes sense, and on files of their own."""
    first, second = pair
    files: dict[str, str | bytes] = {".gitignore": "dist/\n", "stays": "as it is\n"}
    steps: list[list[tuple[Scenario, str]]] = [[], []]
    shared = "src/shared.py"
    if first not in CREATES:
        files[shared] = "one\ntwo\n"
    if first not in DELETES or second in CREATES:
        steps[0].append((first, shared))
        steps[1].append((second, shared))
    for number, scenario in enumerate(pair):
        alone = f"deep/{number}/alone.py"
        if scenario not in CREATES:
            files[alone] = "alone\n"
        steps[number].append((scenario, alone))
        if scenario in CREATES:
            steps[number].append((scenario, f"dist/{number}.js"))
    write(project, files)
    session = workspace.sessions.create().id
    before = picture(project)
    begun = workspace.sessions.begin_turn(session, "the first")
    for number, acts in enumerate(steps):
        if number and turns == 2:
            workspace.sessions.end_turn(session)
            workspace.sessions.begin_turn(session, "the second")
        for scenario, path in acts:
            scenario(workspace, session, project, path)
    after = picture(project)
    shown = {
        path: status
        for path, status in wanted(before, after).items()
        # What a command makes where nothing is kept is skipped; what a tool makes is not.
        if not path.startswith("dist/") or pair[int(path[5])] is create_by_tool
    }
    assert statuses(workspace, session) == shown
    workspace.sessions.end_turn(session)
    assert statuses(workspace, session) == shown
    for each in workspace.review.round_status(session).changed_files:
        old = before.get(os.fsencode(each.path), ("", 0, b""))[2].decode()
        assert each.base_content == (None if each.status == "added" else old)
        assert (each.diff is not None) is (each.status == "modified")
        if each.status == "deleted":
            assert (each.additions, each.deletions) == (0, old.count("\n"))

    workspace.review.approve(session)
    assert statuses(workspace, session) == {} and picture(project) == after
    workspace.undo()
    assert statuses(workspace, session) == shown and picture(project) == after

    skipped = {
        path: thing
        for path, thing in after.items()
        if path.startswith(b"dist") and os.fsdecode(path) not in shown
    }
    done = workspace.review.reset(session)
    assert done.files.verified and statuses(workspace, session) == {}
    assert _but_for(picture(project), b"dist") == _but_for(before, b"dist")
    assert _files(picture(project), b"dist") == _files(skipped, b"dist")
    workspace.undo()
    assert statuses(workspace, session) == shown and picture(project) == after

    workspace.restore(begun.checkpoint)
    assert _but_for(picture(project), b"dist") == _but_for(before, b"dist")
    assert statuses(workspace, session) == {}
    workspace.undo()
    assert statuses(workspace, session) == shown and picture(project) == after


def _but_for(found: Picture, folder: bytes) -> Picture:
    return {path: thing for path, thing in found.items() if not path.startswith(folder)}


def _files(found: Picture, folder: bytes) -> Picture:
    return {
        path: thing
        for path, thing in found.items()
        if path.startswith(folder) and thing[0] != "directory"
    }


def test_as_1_a_new_session_has_an_initial_checkpoint_and_an_active_first_round(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1"})
    session = workspace.sessions.create()
    (first,) = workspace.log()
    assert (first.kind, first.session) == ("initial", session.id)
    assert workspace.read(first.id, "a") == b"1"
    (round,) = workspace.review.rounds(session.id)
    assert (round.name, round.status, round.closed_at) == ("session_1", "active", None)
    assert round.approved_checkpoint is None


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("fix it", "fix it"),
        ("x" * 50, "x" * 50),
        ("x" * 51, "x" * 50 + "..."),
        ("", ""),
        ("ü" * 60, "ü" * 50 + "..."),
    ],
)
def test_as_2_a_checkpoint_is_taken_before_each_message_and_named_after_it(
    project: Path, workspace: Workspace, message: str, said: str
) -> None:
    session = workspace.sessions.create().id
    write(project, {"a": "before"})
    turn = workspace.sessions.begin_turn(session, message)
    found = workspace.find(turn.checkpoint)
    assert found.message == f"Before user message: {said}"
    assert (found.session, found.entry) == (session, turn.entry)
    assert workspace.read(turn.checkpoint, "a") == b"before"


def test_as_2_none_is_taken_for_what_tools_and_commands_do(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n"})
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "go")
    before = len(workspace.log())
    modify_by_tool(workspace, session, project, "a")
    modify_by_command(workspace, session, project, "a")
    workspace.review.pending()
    assert len(workspace.log()) == before


def test_as_2_every_message_has_its_own_even_if_nothing_changed(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    taken = set()
    for number in range(4):
        taken.add(workspace.sessions.begin_turn(session, f"message {number}").checkpoint)
        workspace.sessions.end_turn(session)
    assert len(taken) == 4


def test_as_3_as_4_the_entry_of_a_message_carries_its_checkpoint_and_its_round(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    turns = []
    for number in range(3):
        turns.append(workspace.sessions.begin_turn(session, f"message {number}"))
        write(project, {"a": str(number)})
        workspace.sessions.end_turn(session)
        if number == 1:
            workspace.review.approve(session)
    entries = workspace.sessions.conversation(session, types=("user_input",))
    assert [entry.checkpoint for entry in entries] == [turn.checkpoint for turn in turns]
    assert [turn.round for turn in turns] == ["session_1", "session_1", "session_2"]
    assert [turn.turn for turn in turns] == [0, 1, 2]


def test_as_3_an_edit_by_a_tool_is_told_with_its_difference_and_without_a_checkpoint(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n2\n"})
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "go")
    edit = workspace.sessions.start_edit(session, ["a"])
    write(project, {"a": "1\ntwo\n"})
    (told,) = workspace.sessions.finalize_edit(edit)
    assert told.checkpoint is None
    assert told.data is not None
    assert (told.data["path"], told.data["operation"]) == ("a", "modify")
    assert (told.data["additions"], told.data["deletions"]) == (1, 1)
    assert "-2\n+two\n" in told.data["diff"]


def test_as_5_checkpoints_stay_in_order_of_time_after_any_number_of_approvals(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    for number in range(5):
        workspace.sessions.begin_turn(session, f"message {number}")
        write(project, {"a": f"{number}\n"})
        workspace.sessions.end_turn(session)
        (workspace.review.reset if number == 3 else workspace.review.approve)(session)
    oldest_first = workspace.log()[::-1]
    times = [each.created_at for each in oldest_first]
    assert times == sorted(times) and len(set(times)) == len(times)
    assert oldest_first[0].kind == "initial"
    said = [each.message for each in oldest_first if each.kind == "turn"]
    assert [each for each in said if each.startswith("Before user")] == [
        f"Before user message: message {number}" for number in range(5)
    ]


def test_as_6_a_session_without_unapproved_work_says_so(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n"})
    session = workspace.sessions.create().id
    found = workspace.review.round_status(session)
    assert (found.has_unapproved, found.changed_files) == (False, ())
    assert found.last_approved_at is None
    workspace.sessions.begin_turn(session, "go")
    write(project, {"a": "2\n"})
    workspace.sessions.end_turn(session)
    found = workspace.review.round_status(session)
    assert (found.round, found.has_unapproved) == ("session_1", True)
    workspace.review.approve(session)
    found = workspace.review.round_status(session)
    assert (found.round, found.has_unapproved, found.changed_files) == ("session_2", False, ())
    assert found.last_approved_at is not None


def test_as_7_each_changed_file_tells_what_its_kind_has_to_tell(
    project: Path, workspace: Workspace
) -> None:
    large = "x" * 99 + "\n"
    write(
        project,
        {
            "modified": "1\n2\n3\n",
            "deleted": "1\n2\n3\n",
            "binary": b"\0\1",
            "not-utf-8": b"caf\xe9\n",
            "large": large * 11_000,
            "deleted-large": large * 11_000,
        },
    )
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "go")
    write(
        project,
        {
            "modified": "1\ntwo\n3\n",
            "added": "a\nb\n",
            "binary": b"\0\2",
            "not-utf-8": b"caf\xe8\n",
            "large": large * 11_000 + "more\n",
        },
    )
    run(project, "rm deleted deleted-large")
    workspace.sessions.end_turn(session)
    rows = workspace.review.round_status(session).changed_files
    assert [each.path for each in rows] == sorted(each.path for each in rows)
    found = {each.path: each for each in rows}
    assert len(found) == len(rows)
    modified = found["modified"]
    assert (modified.status, modified.additions, modified.deletions) == ("modified", 1, 1)
    assert modified.diff == ("--- a/modified\n+++ b/modified\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n")
    assert modified.base_content == "1\n2\n3\n"
    added = found["added"]
    assert (added.status, added.additions, added.deletions) == ("added", 2, 0)
    assert added.diff is None and added.base_content is None
    deleted = found["deleted"]
    assert (deleted.status, deleted.additions, deleted.deletions) == ("deleted", 0, 3)
    assert deleted.diff is None and deleted.base_content == "1\n2\n3\n"
    binary = found["binary"]
    assert binary.is_binary and (binary.additions, binary.deletions) == (0, 0)
    assert binary.diff is None and binary.base_content is None
    latin = found["not-utf-8"]
    assert not latin.is_binary and (latin.additions, latin.deletions) == (1, 1)
    assert latin.base_content == "caf\ufffd\n"
    for name in ("large", "deleted-large"):
        assert found[name].is_too_large and found[name].base_content is None
        assert found[name].diff is None


def test_as_8_what_was_changed_in_several_turns_and_since_is_named_once(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n", "b": "1\n"})
    session = workspace.sessions.create().id
    for number in range(3):
        workspace.sessions.begin_turn(session, "go")
        write(project, {"a": f"{number}\n", f"new{number}": "x\n"})
        workspace.sessions.end_turn(session)
    workspace.sessions.begin_turn(session, "and on")
    write(project, {"a": "at last\n", "b": "2\n"})
    paths = [each.path for each in workspace.review.round_status(session).changed_files]
    assert paths == ["a", "b", "new0", "new1", "new2"]


def test_as_9_approve_any_number_of_times(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "1\n"})
    session = workspace.sessions.create().id
    for number in range(1, 6):
        workspace.sessions.begin_turn(session, f"message {number}")
        write(project, {"a": f"{number}\n" * number, f"new{number}": "x\n"})
        workspace.sessions.end_turn(session)
        before = picture(project)
        done = workspace.review.approve(session, f"approval {number}")
        assert picture(project) == before
        assert done.new_round == f"session_{number + 1}"
        assert done.checkpoints == 2, "the one before the message, and the one that is approved"
        assert workspace.read(done.approved_checkpoint, "a") == f"{number}\n".encode() * number
        assert statuses(workspace, session) == {}
        closed = workspace.review.rounds(session)[number - 1]
        assert (closed.status, closed.approved_checkpoint) == ("merged", done.approved_checkpoint)
        assert closed.closed_at is not None and closed.checkpoints == 2
    assert [each.status for each in workspace.review.rounds(session)] == ["merged"] * 5 + ["active"]


def test_as_9_uncommitted_changes_are_taken_in_first(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "1\n"})
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "go")
    write(project, {"a": "2\n"})
    done = workspace.review.approve(session)
    assert workspace.read(done.approved_checkpoint, "a") == b"2\n"
    assert statuses(workspace, session) == {}
    write(project, {"b": "after the approval, in the same turn\n"})
    assert statuses(workspace, session) == {"b": "added"}
    workspace.sessions.end_turn(session)
    assert statuses(workspace, session) == {"b": "added"}


def test_as_9_nothing_new_is_none_approved_and_still_a_new_round(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    for number in (2, 3):
        done = workspace.review.approve(session)
        assert (done.checkpoints, done.new_round) == (0, f"session_{number}")


def test_as_10_reset_returns_to_the_baseline_with_what_commands_made(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n", "d/b": "1\n"})
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "keep this")
    write(project, {"a": "2\n"})
    workspace.sessions.end_turn(session)
    workspace.review.approve(session)
    before = picture(project)
    workspace.sessions.begin_turn(session, "not this")
    run(project, "rm -r d; mkdir -p made/by; echo x > made/by/command; echo 3 > a; chmod 755 a")
    workspace.sessions.end_turn(session)
    lost = picture(project)
    done = workspace.review.reset(session)
    assert picture(project) == before
    assert done.new_round == "session_3"
    assert statuses(workspace, session) == {}
    assert [each.status for each in workspace.review.rounds(session)] == [
        "merged",
        "abandoned",
        "active",
    ]
    assert done.safety_checkpoint is not None
    assert workspace.read(done.safety_checkpoint, "made/by/command") == b"x\n"
    workspace.undo()
    assert picture(project) == lost
    assert workspace.review.round_status(session).round == "session_2"


def test_as_10_reset_leaves_what_the_user_typed_between_turns(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n2\n3\n4\n5\n", "mine": "1\n"})
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "go")
    write(project, {"a": "1\nagent\n3\n4\n5\n"})
    workspace.sessions.end_turn(session)
    write(project, {"a": "1\nagent\n3\n4\nuser\n", "mine": "2\n", "new": "mine too\n"})
    done = workspace.review.reset(session)
    assert (project / "a").read_text() == "1\n2\n3\n4\nuser\n"
    assert (project / "mine").read_text() == "2\n"
    assert (project / "new").read_text() == "mine too\n"
    assert done.files.skipped == ()


def test_as_10_reset_any_number_of_times(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "1\n"})
    session = workspace.sessions.create().id
    before = picture(project)
    for number in range(4):
        workspace.sessions.begin_turn(session, "go")
        write(project, {"a": f"{number}\n" * 3, "new": "x\n"})
        if number % 2:
            workspace.sessions.end_turn(session)
        done = workspace.review.reset(session)
        assert picture(project) == before
        assert done.new_round == f"session_{number + 2}"
        assert not workspace.review.round_status(session).has_unapproved
        if not number % 2:
            workspace.sessions.end_turn(session)


def test_as_11_restore_stays_in_the_round_and_can_be_undone(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n"})
    session = workspace.sessions.create().id
    first = workspace.sessions.begin_turn(session, "one")
    write(project, {"a": "2\n", "new": "x\n"})
    workspace.sessions.end_turn(session)
    second = workspace.sessions.begin_turn(session, "two")
    write(project, {"a": "3\n"})
    workspace.sessions.end_turn(session)
    after = picture(project)
    done = workspace.restore(first.checkpoint)
    assert done.new_checkpoint is not None and done.target == first.checkpoint
    assert (project / "a").read_text() == "1\n" and not (project / "new").exists()
    assert workspace.review.round_status(session).round == "session_1"
    assert statuses(workspace, session) == {}
    workspace.restore(second.checkpoint)
    assert statuses(workspace, session) == {"a": "modified", "new": "added"}
    workspace.undo()
    workspace.undo()
    assert picture(project) == after
    assert statuses(workspace, session) == {"a": "modified", "new": "added"}
    with pytest.raises(mulligan.NotFound):
        workspace.restore("not-a-checkpoint")


def test_as_11_restore_to_before_an_approval_is_pending_and_can_be_approved(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n"})
    session = workspace.sessions.create().id
    first = workspace.sessions.begin_turn(session, "one")
    write(project, {"a": "2\n", "new": "x\n"})
    workspace.sessions.end_turn(session)
    workspace.review.approve(session)
    workspace.restore(first.checkpoint)
    assert statuses(workspace, session) == {"a": "modified", "new": "deleted"}
    assert workspace.review.round_status(session).round == "session_2"
    workspace.review.reset(session)
    assert (project / "a").read_text() == "2\n" and (project / "new").exists()


def test_as_13_reset_does_not_delete_what_was_never_in_scope(
    project: Path, workspace: Workspace
) -> None:
    write(project, {".gitignore": "local/\n", "a": "1\n"})
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "go")
    write(project, {"local/x": "mine", "node_modules/y": "made", "a": "2\n"})
    workspace.sessions.end_turn(session)
    workspace.review.reset(session)
    assert (project / "local/x").read_text() == "mine"
    assert (project / "node_modules/y").read_text() == "made"
    assert (project / "a").read_text() == "1\n"


@pytest.mark.parametrize("absolute", [False, True])
def test_as_14_a_finalized_edit_is_kept_even_where_ignored(
    project: Path, workspace: Workspace, absolute: bool
) -> None:
    write(project, {".gitignore": "dist/\n*.log\n", "old.log": "old\n"})
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "go")
    for name in ("dist/out.js", "old.log"):
        given = str(project / name) if absolute else name
        by_tool(workspace, session, given, partial(write, project, {name: "made\n"}))
    workspace.sessions.end_turn(session)
    assert statuses(workspace, session)["dist/out.js"] == "added"
    assert "old.log" in statuses(workspace, session)
    workspace.review.reset(session)
    assert not (project / "dist/out.js").exists()
    assert (project / "old.log").read_text() == "old\n"


def test_as_14_a_file_outside_of_the_project_is_refused(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.start_edit(session, ["../elsewhere"])


def test_as_14_abort_puts_back_bytes_modes_links_and_absence(
    project: Path, workspace: Workspace
) -> None:
    write(project, {".gitignore": "dist/\n", "a": b"\0\xff\r\n", "gone": "x\n", "dist/b": "made\n"})
    (project / "a").chmod(0o751)
    (project / "link").symlink_to("a")
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "go")
    before = picture(project)
    paths = ["a", "gone", "link", "dist/b", "dist/new", "new/deep"]
    edit = workspace.sessions.start_edit(session, paths)
    write(project, {"a": "changed", "dist/b": "changed", "dist/new": "n", "new/deep": "d"})
    (project / "a").chmod(0o600)
    run(project, "rm gone link; echo now a file > link")
    put_back = workspace.sessions.abort_edit(edit)
    assert picture(project) == before
    assert set(put_back) == set(paths)
    workspace.sessions.end_turn(session)
    assert statuses(workspace, session) == {}


def test_as_14_abort_leaves_other_files_and_can_be_undone(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n", "b": "1\n"})
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "go")
    edit = workspace.sessions.start_edit(session, ["a"])
    write(project, {"a": "2\n", "b": "2\n"})
    assert workspace.sessions.abort_edit(edit) == ("a",)
    assert (project / "b").read_text() == "2\n"
    assert statuses(workspace, session) == {"b": "modified"}
    workspace.undo()
    assert (project / "b").read_text() == "1\n", "the turn is not over, but is undone first"
    workspace.undo()
    assert (project / "a").read_text() == "2\n"


def test_as_18_rounds_tell_when_they_began_and_ended_and_how(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n"})
    session = workspace.sessions.create().id
    verbs: list[Callable[[str], object]] = [
        workspace.review.approve,
        workspace.review.reset,
        workspace.review.approve,
    ]
    for number, verb in enumerate(verbs):
        workspace.sessions.begin_turn(session, "go")
        write(project, {"a": f"in round {number}\n"})
        workspace.sessions.end_turn(session)
        verb(session)
    found = workspace.review.rounds(session)
    assert [each.name for each in found] == [f"session_{number}" for number in (1, 2, 3, 4)]
    assert [each.status for each in found] == ["merged", "abandoned", "merged", "active"]
    assert all(each.closed_at is not None for each in found[:-1]) and found[-1].closed_at is None
    assert [each.approved_checkpoint is not None for each in found] == [True, False, True, False]
    for earlier, later in itertools.pairwise(found):
        assert earlier.created_at <= (earlier.closed_at or "") <= later.created_at
    assert [each.checkpoints for each in found] == [2, 1, 2, 0]


def test_as_18_an_approval_that_was_undone_did_not_end_its_round(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1\n"})
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "go")
    write(project, {"a": "2\n"})
    workspace.sessions.end_turn(session)
    workspace.review.approve(session)
    workspace.undo()
    (round,) = workspace.review.rounds(session)
    assert (round.name, round.status, round.closed_at) == ("session_1", "active", None)
    assert statuses(workspace, session) == {"a": "modified"}
    assert workspace.review.round_status(session).last_approved_at is None
    workspace.redo()
    assert [each.status for each in workspace.review.rounds(session)] == ["merged", "active"]
    workspace.undo()
    workspace.review.reset(session)
    assert [each.status for each in workspace.review.rounds(session)] == ["abandoned", "active"]


def test_rounds_of_two_sessions_are_their_own(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "1\n2\n3\n4\n5\n6\n"})
    one, two = (workspace.sessions.create().id for _each in range(2))
    for session, old, new in ((one, "1\n2", "1\none"), (two, "5\n6", "5\ntwo")):
        workspace.sessions.begin_turn(session, "go")
        write(project, {"a": (project / "a").read_text().replace(old, new)})
        workspace.sessions.end_turn(session)
    workspace.review.approve(one)
    assert statuses(workspace, one) == {} and statuses(workspace, two) == {"a": "modified"}
    assert [each.status for each in workspace.review.rounds(two)] == ["active"]
    workspace.review.reset(two)
    assert (project / "a").read_text() == "1\none\n3\n4\n5\n6\n"
