"""Attribute changes to turns, including turns that never ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import mulligan
from mulligan import Workspace


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    with mulligan.open(project) as opened:
        yield opened
        assert opened.maintenance.verify().problems == ()


@pytest.fixture
def session(workspace: Workspace) -> str:
    return workspace.sessions.create(agent="one").id


@pytest.fixture
def other(workspace: Workspace) -> str:
    return workspace.sessions.create(agent="two").id


def put(project: Path, name: str, content: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_bytes(content.encode())


def pending(workspace: Workspace, session: str | None = None) -> dict[str, str]:
    return {
        hunk.path: "".join(hunk.new_lines)
        for hunk in workspace.review.pending(session=session).hunks
    }


def test_a_turn_that_changed_nothing_leaves_no_step(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", "1\n")
    workspace.sessions.begin_turn(session, "only look")
    step = workspace.sessions.end_turn(session)
    assert (step.entry, step.checkpoint) == (None, None)
    assert [each.type for each in workspace.sessions.conversation(session)] == ["user_input"]
    with pytest.raises(mulligan.NothingToUndo):
        workspace.undo()


def test_a_step_names_what_came_changed_and_went(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "changed", "1\n")
    put(project, "gone", "1\n")
    workspace.sessions.begin_turn(session, "go")
    put(project, "changed", "2\n")
    put(project, "deep/new", "1\n")
    (project / "gone").unlink()
    step = workspace.sessions.end_turn(session)
    assert (step.added, step.modified, step.deleted) == (("deep/new",), ("changed",), ("gone",))
    (entry,) = workspace.sessions.conversation(session, types=("step_snapshot",))
    assert entry.data is not None
    assert entry.data["diff"] == {
        "added": ["deep/new"], "modified": ["changed"], "deleted": ["gone"],
    }  # fmt: skip
    assert entry.checkpoint == step.checkpoint


def test_a_turn_cannot_end_that_never_began(workspace: Workspace, session: str) -> None:
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.end_turn(session)
    workspace.sessions.begin_turn(session, "go")
    workspace.sessions.end_turn(session)
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.end_turn(session)


def test_a_turn_whose_end_never_came_is_ended_by_the_next(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", "1\n")
    workspace.sessions.begin_turn(session, "first")
    put(project, "a", "2\n")
    workspace.sessions.begin_turn(session, "second")
    put(project, "b", "1\n")
    workspace.sessions.end_turn(session)
    steps = workspace.sessions.conversation(session, types=("step_snapshot",))
    assert [(each.data or {}).get("interrupted", False) for each in steps] == [True, False]
    assert [(each.data or {})["turnIndex"] for each in steps] == [0, 1]
    assert [(each.data or {})["diff"]["modified"] for each in steps] == [["a"], []]
    assert [each.turn for each in workspace.review.turn_statuses(session)] == [0, 1]


def test_undo_takes_back_a_turn_and_then_the_one_before(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", "0\n")
    for number in (1, 2):
        workspace.sessions.begin_turn(session, "go")
        put(project, "a", f"{number}\n")
        workspace.sessions.end_turn(session)
    assert workspace.undo().restored == ("a",)
    assert (project / "a").read_text() == "1\n"
    workspace.undo()
    assert (project / "a").read_text() == "0\n"
    assert workspace.review.pending().files == ()
    workspace.redo()
    workspace.redo()
    assert (project / "a").read_text() == "2\n"
    assert pending(workspace) == {"a": "2\n"}


def test_undo_in_an_open_turn_goes_one_further_back_each_time(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", "0\n")
    workspace.sessions.begin_turn(session, "go")
    put(project, "a", "1\n")
    workspace.sessions.end_turn(session)
    workspace.sessions.begin_turn(session, "go on")
    put(project, "b", "1\n")
    workspace.undo()
    assert not (project / "b").exists() and (project / "a").read_text() == "1\n"
    workspace.undo()
    assert not (project / "b").exists() and (project / "a").read_text() == "0\n"
    with pytest.raises(mulligan.NothingToUndo):
        workspace.undo()
    step = workspace.sessions.end_turn(session)
    assert (step.added, step.modified, step.deleted) == ((), (), ()), "that was not the agent"


def test_redo_in_an_open_turn_leaves_its_work_pending(
    project: Path, workspace: Workspace, session: str
) -> None:
    workspace.sessions.begin_turn(session, "go")
    put(project, "a", "1\n")
    workspace.sessions.end_turn(session)
    workspace.undo()
    workspace.sessions.begin_turn(session, "go another way")
    put(project, "b", "1\n")
    with suppress(mulligan.NothingToUndo):
        workspace.redo()
    assert (project / "b").read_text() == "1\n"
    assert pending(workspace)["b"] == "1\n"
    workspace.sessions.end_turn(session)
    assert pending(workspace)["b"] == "1\n"


def test_redo_in_an_open_turn_that_has_done_nothing_yet(
    project: Path, workspace: Workspace, session: str
) -> None:
    workspace.sessions.begin_turn(session, "go")
    put(project, "a", "1\n")
    workspace.sessions.end_turn(session)
    workspace.undo()
    workspace.sessions.begin_turn(session, "go on")
    workspace.redo()
    assert pending(workspace) == {"a": "1\n"}
    step = workspace.sessions.end_turn(session)
    assert (step.added, step.modified, step.deleted) == ((), (), ())


def test_a_discard_in_an_open_turn_is_not_the_agents_work(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", "0\n")
    workspace.sessions.begin_turn(session, "go")
    put(project, "a", "1\n")
    workspace.sessions.end_turn(session)
    workspace.sessions.begin_turn(session, "go on")
    put(project, "b", "1\n")
    workspace.review.discard(paths=["a"])
    step = workspace.sessions.end_turn(session)
    assert (step.added, step.modified, step.deleted) == (("b",), (), ())
    workspace.undo()
    assert (project / "b").exists() and (project / "a").read_text() == "1\n"
    workspace.undo()
    assert not (project / "b").exists() and (project / "a").read_text() == "1\n"


def test_a_turn_that_was_undone_and_done_again_in_between_ends_with_all_that_it_changed(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", "0\n")
    workspace.sessions.begin_turn(session, "go")
    put(project, "a", "1\n")
    put(project, "gone", "1\n")
    workspace.undo()
    workspace.redo()
    workspace.review.discard(paths=["gone"])
    step = workspace.sessions.end_turn(session)
    assert (step.added, step.modified, step.deleted) == ((), ("a",), ())
    workspace.undo(past_idle_turn=False)
    assert (project / "gone").exists()


def test_what_the_user_types_between_turns_is_not_pending(
    project: Path, workspace: Workspace, session: str, other: str
) -> None:
    put(project, "a", "1\n2\n3\n4\n5\n")
    workspace.sessions.begin_turn(session, "go")
    put(project, "a", "1\n2\n3\n4\nagent\n")
    workspace.sessions.end_turn(session)
    put(project, "a", "mine\n2\n3\n4\nagent\n")
    put(project, "new", "mine\n")
    assert pending(workspace) == {"a": "agent\n"}
    workspace.sessions.begin_turn(other, "go")
    workspace.sessions.end_turn(other)
    assert pending(workspace) == {"a": "agent\n"}
    assert pending(workspace, other) == {}


def test_a_turn_survives_a_restart(project: Path, workspace: Workspace, session: str) -> None:
    put(project, "a", "1\n")
    workspace.sessions.begin_turn(session, "go")
    put(project, "a", "2\n")
    with mulligan.open(project) as again:
        assert pending(again, session) == {"a": "2\n"}
        put(project, "b", "1\n")
        step = again.sessions.end_turn(session)
        assert (step.added, step.modified) == (("b",), ("a",))


@pytest.mark.parametrize("swapped", [False, True])
def test_two_open_turns_each_have_what_they_wrote(
    project: Path, workspace: Workspace, session: str, other: str, swapped: bool
) -> None:
    put(project, "a", "1\n2\n3\n4\n5\n")
    workspace.sessions.begin_turn(session, "one")
    workspace.sessions.begin_turn(other, "two")
    writes = [(session, "2\n", "one\n"), (other, "4\n", "two\n")]
    for who, old, new in reversed(writes) if swapped else writes:
        edit = workspace.sessions.start_edit(who, ["a"])
        put(project, "a", (project / "a").read_text().replace(old, new))
        workspace.sessions.finalize_edit(edit)
    assert pending(workspace, session) == {"a": "one\n"}
    assert pending(workspace, other) == {"a": "two\n"}
    workspace.sessions.end_turn(session)
    workspace.sessions.end_turn(other)
    assert pending(workspace, session) == {"a": "one\n"}
    assert pending(workspace, other) == {"a": "two\n"}
    workspace.review.discard(session=session)
    assert (project / "a").read_text() == "1\n2\n3\ntwo\n5\n"


def test_a_file_edit_of_two_sessions_in_turn_goes_to_the_last_writer(
    project: Path, workspace: Workspace, session: str, other: str
) -> None:
    """Each tells when it writes, so an earlier entry in the ledger claims nothing."""
    put(project, "a", "1\n2\n3\n")
    workspace.sessions.begin_turn(session, "one")
    workspace.sessions.begin_turn(other, "two")
    for who, line in ((session, "s1"), (other, "o1"), (session, "s2"), (other, "o2")):
        edit = workspace.sessions.start_edit(who, ["a"])
        put(project, "a", (project / "a").read_text() + f"{line}\n")
        workspace.sessions.finalize_edit(edit)
    mine = "".join("".join(h.new_lines) for h in workspace.review.pending(session=session).hunks)
    theirs = "".join("".join(h.new_lines) for h in workspace.review.pending(session=other).hunks)
    for line in ("s1", "s2"):
        assert line in mine
    for line in ("o1", "o2"):
        assert line in theirs


@pytest.mark.parametrize("swapped", [False, True])
def test_an_edit_under_way_belongs_to_the_session_that_started_it(
    project: Path, workspace: Workspace, session: str, other: str, swapped: bool
) -> None:
    one, two = (other, session) if swapped else (session, other)
    put(project, "a", "1\n")
    put(project, "b", "1\n")
    workspace.sessions.begin_turn(session, "one")
    workspace.sessions.begin_turn(other, "two")
    first = workspace.sessions.start_edit(one, ["a"])
    put(project, "a", "of the first\n")
    second = workspace.sessions.start_edit(two, ["b"])
    put(project, "b", "of the second\n")
    workspace.sessions.finalize_edit(first)
    workspace.sessions.finalize_edit(second)
    assert pending(workspace, one) == {"a": "of the first\n"}
    assert pending(workspace, two) == {"b": "of the second\n"}


@pytest.mark.parametrize("swapped", [False, True])
def test_an_aborted_edit_leaves_nothing_pending(
    project: Path, workspace: Workspace, session: str, other: str, swapped: bool
) -> None:
    put(project, "a", "1\n")
    workspace.sessions.begin_turn(session, "one")
    workspace.sessions.begin_turn(other, "two")
    edit = workspace.sessions.start_edit(session if swapped else other, ["a", "new"])
    put(project, "a", "2\n")
    put(project, "new", "2\n")
    workspace.sessions.abort_edit(edit)
    assert pending(workspace) == {}
    for each in (session, other):
        step = workspace.sessions.end_turn(each)
        assert (step.added, step.modified, step.deleted) == ((), (), ())
    assert (project / "a").read_text() == "1\n"


@pytest.mark.parametrize("path", ["d/.env", "node_modules/x/index.js"])
def test_a_rewind_to_before_a_turn_brings_back_what_its_tool_changed_out_of_scope(
    project: Path, workspace: Workspace, session: str, path: str
) -> None:
    put(project, ".gitignore", ".env\nnode_modules/\n")
    put(project, path, "the user's\n")
    turn = workspace.sessions.begin_turn(session, "change it")
    edit = workspace.sessions.start_edit(session, [path, f"{path}.new"])
    put(project, path, "the agent's\n")
    put(project, f"{path}.new", "the agent's\n")
    workspace.sessions.finalize_edit(edit)
    step = workspace.sessions.end_turn(session)
    assert (step.added, step.modified) == ((f"{path}.new",), (path,))
    workspace.restore(turn.checkpoint)
    assert (project / path).read_text() == "the user's\n"
    assert not (project / f"{path}.new").exists()
    workspace.undo()
    assert (project / path).read_text() == "the agent's\n"


@pytest.mark.parametrize("path", ["src/o", "gen/o"])
def test_what_the_user_wrote_into_a_file_of_the_tool_is_kept_before_the_tool_writes_it_again(
    project: Path, workspace: Workspace, session: str, path: str
) -> None:
    put(project, ".gitignore", "gen/\n")
    workspace.sessions.begin_turn(session, "make it")
    edit = workspace.sessions.start_edit(session, [path])
    put(project, path, "the tool's\n")
    workspace.sessions.finalize_edit(edit)
    put(project, path, "the user's\n")
    edit = workspace.sessions.start_edit(session, [path])
    put(project, path, "the tool's again\n")
    workspace.sessions.finalize_edit(edit)
    workspace.sessions.end_turn(session)
    workspace.maintenance.gc()
    assert b"the user's\n" in held(workspace, path)


def test_what_an_edit_without_a_turn_changes_out_of_scope_is_kept_first(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, ".gitignore", "gen/\n")
    put(project, "gen/o", "the user's\n")
    first = workspace.checkpoint()
    edit = workspace.sessions.start_edit(session, ["gen/o"])
    put(project, "gen/o", "the tool's\n")
    workspace.sessions.finalize_edit(edit)
    workspace.checkpoint()
    workspace.maintenance.gc()
    assert b"the user's\n" in held(workspace, "gen/o")
    workspace.restore(first.id)
    assert (project / "gen/o").read_text() == "the user's\n"


def test_undo_and_redo_in_an_open_turn_skip_no_untouched_folder(
    project: Path, workspace: Workspace, session: str
) -> None:
    """An excluded folder is in the tree only for its always included paths."""
    put(project, ".gitignore", "gen/\n")
    put(project, "gen/x", "1\n")
    first = workspace.checkpoint()
    workspace.sessions.begin_turn(session, "make it")
    edit = workspace.sessions.start_edit(session, ["gen/new"])
    put(project, "gen/new", "2\n")
    workspace.sessions.finalize_edit(edit)
    workspace.restore(first.id)
    assert not (project / "gen/new").exists() and (project / "gen/x").exists()
    assert workspace.undo().undoes_kind == "restore"
    assert (project / "gen/new").exists()
    workspace.undo()
    assert not (project / "gen/new").exists()
    workspace.redo()
    assert (project / "gen/new").exists() and (project / "gen/x").exists()


def held(workspace: Workspace, path: str) -> set[bytes]:
    """All that checkpoints hold at a path."""
    found = set()
    for checkpoint in workspace.log():
        with suppress(mulligan.NotFound):
            found.add(workspace.read(checkpoint.id, path))
    return found


def test_a_folder_that_is_asked_for_in_the_middle_of_a_turn_is_not_the_work_of_its_agent(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, ".gitignore", ".env\nlogs/\n")
    for name in ("d/.env", "d/a", "logs/old"):
        put(project, name, "the user's\n")
    workspace.sessions.begin_turn(session, "go on")
    put(project, "d/a", "the agent's\n")
    workspace.checkpoint(include=["d", "logs"])
    put(project, "logs/new", "the agent's\n")
    step = workspace.sessions.end_turn(session)
    assert (step.added, step.modified) == (("logs/new",), ("d/a",))
    workspace.review.reset(session)
    assert (project / "d" / ".env").exists() and (project / "logs" / "old").exists()
    assert not (project / "logs" / "new").exists()


def test_a_user_message_of_any_shape_is_kept(workspace: Workspace, session: str) -> None:
    for message in ("", "\0", "line\nline", "x" * 100_000, "\ud800", "émoji 🎉"):
        turn = workspace.sessions.begin_turn(session, message)
        workspace.sessions.end_turn(session)
        assert workspace.sessions.entry(turn.entry).type == "user_input"
    assert workspace.sessions.count_entries(session) == 6


def test_a_session_gets_its_title_from_its_first_message(
    workspace: Workspace, session: str
) -> None:
    workspace.sessions.begin_turn(session, "Fix the parser")
    workspace.sessions.end_turn(session)
    workspace.sessions.begin_turn(session, "And another thing")
    assert workspace.sessions.get(session).title == "Fix the parser"


def test_an_unknown_session_is_refused_and_nothing_is_recorded(workspace: Workspace) -> None:
    for verb in (
        lambda: workspace.sessions.begin_turn("nobody", "hello"),
        lambda: workspace.sessions.end_turn("nobody"),
        lambda: workspace.review.approve("nobody"),
        lambda: workspace.review.reset("nobody"),
        lambda: workspace.sessions.start_edit("nobody", ["a"]),
        lambda: workspace.review.discard(session="nobody"),
        lambda: workspace.review.keep(session="nobody"),
    ):
        with pytest.raises(mulligan.NotFound):
            verb()
    assert workspace.operations() == [] and workspace.log() == []


WORKER = """
import os, sys
import mulligan
project, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with mulligan.open(project, wait=120) as workspace:
    session = workspace.sessions.create(id=name, agent=name).id
    for turn in range(count):
        workspace.sessions.begin_turn(session, f"turn {turn}")
        for number in range(2):
            path = os.path.join(project, f"{name}.txt")
            edit = workspace.sessions.start_edit(session, [path])
            with open(path, "a") as file:
                file.write(f"{name} {turn} {number}\\n")
            workspace.sessions.finalize_edit(edit)
        workspace.sessions.end_turn(session)
"""


def test_two_processes_with_a_session_each_lose_nothing(project: Path) -> None:
    put(project, "shared", "1\n")
    names, count = ("one", "two"), 4
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(project), name, str(count)])
        for name in names
    ]
    assert [worker.wait(180) for worker in workers] == [0, 0]
    with mulligan.open(project) as workspace:
        assert workspace.maintenance.verify().problems == ()
        for name in names:
            wanted = "".join(f"{name} {turn} {each}\n" for turn in range(count) for each in (0, 1))
            assert (project / f"{name}.txt").read_text() == wanted
            assert pending(workspace, name) == {f"{name}.txt": wanted}
            assert len(workspace.sessions.conversation(name, types=("user_input",))) == count
            assert len(workspace.sessions.file_edits(name).entries) == 2 * count
        workspace.review.discard(session="one")
        assert not (project / "one.txt").exists() and (project / "two.txt").exists()
        numbers = [each.number for each in workspace.operations()]
        assert numbers == sorted(numbers, reverse=True) and len(set(numbers)) == len(numbers)


KEEPER = """
import sys
import mulligan
from mulligan.errors import NotFound
project, mine = sys.argv[1], int(sys.argv[2])
with mulligan.open(project, wait=120) as workspace:
    for hunk in workspace.review.pending().hunks[mine::8]:
        workspace.review.keep(hunk.id)
    while True:
        left = workspace.review.pending().hunks
        if not left:
            break
        try:
            workspace.review.keep(left[0].id)
        except NotFound:
            continue
"""


def test_eight_processes_that_keep_at_once_keep_each_hunk(project: Path) -> None:
    old = "".join(f"line {number}\n" for number in range(60))
    put(project, "a", old)
    new = "".join(
        line + ("new\n" if at % 3 == 0 else "") for at, line in enumerate(old.splitlines(True))
    )
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create().id
        workspace.sessions.begin_turn(session, "go")
        put(project, "a", new)
        workspace.sessions.end_turn(session)
        total = len(workspace.review.pending().hunks)
        assert total == 20
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", KEEPER, str(project), str(number)], stderr=subprocess.PIPE
            )
            for number in range(8)
        ]
        problems = [worker.communicate(timeout=240)[1].decode() for worker in workers]
        assert [p for p in problems if p and "NotFound" not in p] == []
        assert workspace.review.pending().files == ()
        assert (project / "a").read_text() == new
        assert not workspace.review.round_status(session).has_unapproved
        assert workspace.maintenance.verify().problems == ()


def test_a_child_of_the_agents_shell_that_goes_on_after_the_turn_counts_as_the_user(
    project: Path, workspace: Workspace, session: str
) -> None:
    """Nobody can tell; what matters is that nothing of it is lost."""
    workspace.sessions.begin_turn(session, "go")
    put(project, "log", "1\n")
    workspace.sessions.end_turn(session)
    put(project, "log", "1\n2\n")
    (hunk,) = workspace.review.pending().hunks
    assert hunk.mixed
    assert workspace.review.discard(everything=True).conflicts == (hunk.id,)
    assert (project / "log").read_text() == "1\n2\n"


def test_names_that_are_not_text_are_named_in_a_step(
    project: Path, workspace: Workspace, session: str
) -> None:
    workspace.sessions.begin_turn(session, "go")
    (project / os.fsdecode(b"\xff\n")).write_bytes(b"x")
    step = workspace.sessions.end_turn(session)
    assert len(step.added) == 1
    workspace.review.discard(paths=list(step.added))
    assert list(project.iterdir()) == []


def test_an_exception_in_a_turn_block_interrupts_the_turn_and_is_raised(
    project: Path, workspace: Workspace, session: str
) -> None:
    def divide() -> None:
        with workspace.sessions.turn(session, "Divide"):
            (project / "a").write_text("changed\n")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        divide()
    assert workspace.sessions.get(session).status == "stopped"
    (step,) = workspace.sessions.transcript(session, types=("step_snapshot",)).entries
    assert step.data is not None and step.data["interrupted"] is True
    with workspace.sessions.turn(session, "Once more"):
        (project / "a").write_text("again\n")
    assert workspace.sessions.get(session).status == "waiting_input"
