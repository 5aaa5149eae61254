"""Keeping and undoing what is pending: whose a line is, and what stays when a part goes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mulligan
from mulligan import Workspace
from mulligan.errors import NotFound, UsageError

TEN = "".join(f"line {number}\n" for number in range(10))


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


def turn(workspace: Workspace, session: str, act: Callable[[], object]) -> None:
    workspace.sessions.begin_turn(session, "do it")
    act()
    workspace.sessions.end_turn(session)


def put(project: Path, name: str, content: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_bytes(content.encode())


def replaced(project: Path, name: str, old: str, new: str) -> None:
    content = (project / name).read_text()
    assert old in content
    (project / name).write_text(content.replace(old, new))


def shown(workspace: Workspace, **choice: object) -> list[tuple[str, str, str]]:
    return [
        (hunk.path, "".join(hunk.old_lines), "".join(hunk.new_lines))
        for hunk in workspace.review.pending(**choice).hunks  # type: ignore[arg-type]
    ]


def test_hunks_are_kept_and_undone_one_by_one_in_any_order(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)

    def act() -> None:
        replaced(project, "a", "line 1\n", "one\n")
        replaced(project, "a", "line 5\n", "")
        replaced(project, "a", "line 8\n", "line 8\nnew\n")

    turn(workspace, session, act)
    first, second, third = workspace.review.pending().hunks
    workspace.review.discard(second.id)
    assert "line 5\n" in (project / "a").read_text()
    assert [each.id for each in workspace.review.pending().hunks] == [first.id, third.id]
    workspace.review.keep(third.id)
    assert [each.id for each in workspace.review.pending().hunks] == [first.id]
    workspace.review.discard(first.id)
    assert workspace.review.pending().files == ()
    assert (project / "a").read_text() == TEN.replace("line 8\n", "line 8\nnew\n")


def test_a_hunk_keeps_its_id_while_the_user_types_around_it(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 5\n", "five\n"))
    (before,) = workspace.review.pending().hunks
    replaced(project, "a", "line 0\n", "mine\nline 0\nmine too\n")
    (after,) = workspace.review.pending().hunks
    assert after.id == before.id and not after.mixed
    assert after.new_start == before.new_start + 2 and after.old_start == before.old_start + 2


def test_what_the_user_types_within_a_hunk_is_shown_as_mixed_and_left_by_undo(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 5\n", "five\nsix\nseven\n"))
    replaced(project, "a", "six\n", "six, I say\n")
    (hunk,) = workspace.review.pending().hunks
    assert hunk.mixed
    done = workspace.review.discard(hunk.id)
    assert done.conflicts == (hunk.id,) and done.hunks == ()
    assert "six, I say\n" in (project / "a").read_text()
    assert workspace.review.discard(hunk.id, force=True).hunks == (hunk.id,)
    assert (project / "a").read_text() == TEN
    workspace.undo()
    assert "six, I say\n" in (project / "a").read_text()


def test_a_file_that_the_agent_created_and_the_user_edited_is_not_deleted_by_undo(
    project: Path, workspace: Workspace, session: str
) -> None:
    turn(workspace, session, lambda: put(project, "new", "a\nb\n"))
    replaced(project, "new", "b\n", "b\nmine\n")
    done = workspace.review.discard(paths=["new"])
    assert (project / "new").read_text() == "a\nb\nmine\n"
    assert done.hunks == () and len(done.conflicts) == 1
    assert [skip.path for skip in done.results[0].skipped] == ["new"]


def test_a_file_that_the_user_edited_is_not_deleted_by_undo_though_the_agent_has_renamed_it(
    project: Path, workspace: Workspace, session: str
) -> None:
    turn(workspace, session, lambda: put(project, "a", TEN))
    replaced(project, "a", "line 4\n", "line 4\nmine\n")
    turn(workspace, session, lambda: (project / "a").rename(project / "b"))
    (hunk,) = workspace.review.pending().hunks
    assert hunk.mixed and hunk.changed_by == ("user",)
    assert workspace.review.discard(everything=True).conflicts == (hunk.id,)
    assert "mine\n" in (project / "b").read_text()


def test_restore_spares_what_the_user_typed_since_the_last_turn_even_after_a_decision(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    put(project, "notes", "old\n")
    before = workspace.checkpoint("before")
    turn(workspace, session, lambda: replaced(project, "a", "line 5\n", "five\n"))
    put(project, "notes", "typed by hand\n")
    workspace.review.keep(everything=True)
    done = workspace.restore(before.id)
    assert (project / "notes").read_text() == "typed by hand\n"
    assert [skip.path for skip in done.skipped] == ["notes"]
    assert (project / "a").read_text() == TEN


def test_restore_spares_what_the_user_typed_in_a_file_of_which_a_hunk_was_discarded_since(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    before = workspace.sessions.begin_turn(session, "go").checkpoint
    put(project, "a", TEN.replace("line 1\n", "one\n").replace("line 5\n", "five\n"))
    workspace.sessions.end_turn(session)
    replaced(project, "a", "line 9\n", "mine\n")
    workspace.review.discard(workspace.review.pending().hunks[0].id)
    workspace.restore(before)
    assert "mine\n" in (project / "a").read_text()
    workspace.restore(before, force=True)
    workspace.undo()
    workspace.restore(before)
    assert "mine\n" in (project / "a").read_text()


def test_undoing_one_session_leaves_the_work_of_the_other_and_of_the_user(
    project: Path, workspace: Workspace, session: str, other: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 2\n", "two\n"))
    replaced(project, "a", "line 9\n", "line 9\nmine\n")
    turn(workspace, other, lambda: replaced(project, "a", "line 6\n", "six\n"))
    assert shown(workspace, session=session) == [("a", "line 2\n", "two\n")]
    assert shown(workspace, session=other) == [("a", "line 6\n", "six\n")]
    done = workspace.review.discard(session=session)
    assert done.conflicts == ()
    wanted = TEN.replace("line 6\n", "six\n").replace("line 9\n", "line 9\nmine\n")
    assert (project / "a").read_text() == wanted
    assert shown(workspace) == [("a", "line 6\n", "six\n")]


def test_a_true_conflict_of_two_sessions_is_listed_and_left(
    project: Path, workspace: Workspace, session: str, other: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 2\n", "two\n"))
    turn(workspace, other, lambda: replaced(project, "a", "two\n", "2\n"))
    done = workspace.review.discard(session=session)
    assert len(done.conflicts) == 1 and done.hunks == ()
    assert (project / "a").read_text() == TEN.replace("line 2\n", "2\n")
    workspace.review.discard(session=other)
    assert (project / "a").read_text() == TEN.replace("line 2\n", "two\n")
    workspace.review.discard(session=session)
    assert (project / "a").read_text() == TEN


@pytest.mark.parametrize("content", [b"\0\1\2", b"x" * 1000 + b"\0"])
def test_binary_files_are_reviewed_whole(
    project: Path, workspace: Workspace, session: str, content: bytes
) -> None:
    (project / "a.bin").write_bytes(b"\0old")
    turn(workspace, session, lambda: (project / "a.bin").write_bytes(content))
    (file,) = workspace.review.pending().files
    (hunk,) = file.hunks
    assert file.is_binary and hunk.kind == "whole" and (file.additions, file.deletions) == (0, 0)
    workspace.review.discard(hunk.id)
    assert (project / "a.bin").read_bytes() == b"\0old"


@pytest.mark.parametrize("coding", ["latin-1", "cp1252", "shift_jis", "euc_kr", "utf-8"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_text_in_any_coding_is_reviewed_by_lines_and_every_byte_stays(
    project: Path, workspace: Workspace, session: str, coding: str, end: str
) -> None:
    letter = {"shift_jis": "表", "euc_kr": "가"}.get(coding, "é")
    lines = [f"{letter} {number}{end}".encode(coding) for number in range(10)]
    path = project / "text"
    path.write_bytes(b"".join(lines))
    agents, mine = (f"{letter}{word}{end}".encode(coding) for word in ("agent", "mine"))
    turn(
        workspace,
        session,
        lambda: path.write_bytes(b"".join([agents, *lines[1:5], agents, *lines[6:]])),
    )
    path.write_bytes(b"".join([agents, *lines[1:5], agents, *lines[6:9], mine]))
    (file,) = workspace.review.pending().files
    first, second = file.hunks
    assert (file.is_binary, first.kind, first.mixed, second.mixed) == (False, "lines", False, False)
    json.dumps(file.as_json(), ensure_ascii=False).encode()
    workspace.review.discard(first.id)
    assert path.read_bytes() == b"".join([*lines[:5], agents, *lines[6:9], mine])
    workspace.review.keep(second.id)
    assert workspace.review.pending().files == ()
    workspace.undo()
    workspace.review.reset(session)
    assert path.read_bytes() == b"".join([*lines[:9], mine])


def test_a_binary_file_that_the_user_changed_since_is_left(
    project: Path, workspace: Workspace, session: str
) -> None:
    (project / "a.bin").write_bytes(b"\0old")
    turn(workspace, session, lambda: (project / "a.bin").write_bytes(b"\0agent"))
    (project / "a.bin").write_bytes(b"\0user")
    (hunk,) = workspace.review.pending().hunks
    assert hunk.mixed
    assert workspace.review.discard(everything=True).conflicts == (hunk.id,)
    assert (project / "a.bin").read_bytes() == b"\0user"


def test_a_binary_file_that_the_agent_changed_after_the_user_is_left_too(
    project: Path, workspace: Workspace, session: str
) -> None:
    (project / "a.bin").write_bytes(b"\0old")
    turn(workspace, session, lambda: (project / "a.bin").write_bytes(b"\0agent"))
    (project / "a.bin").write_bytes(b"\0agent, user")
    turn(workspace, session, lambda: (project / "a.bin").write_bytes(b"\0agent, user, agent"))
    assert len(workspace.review.discard(everything=True).conflicts) == 1
    assert (project / "a.bin").read_bytes() == b"\0agent, user, agent"


def test_modes_links_and_empty_files_are_reviewed_too(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "run.sh", "#!/bin/sh\n")
    (project / "run.sh").chmod(0o644)
    (project / "link").symlink_to("run.sh")

    def act() -> None:
        (project / "run.sh").chmod(0o755)
        (project / "link").unlink()
        (project / "link").symlink_to("elsewhere")
        put(project, "empty", "")

    turn(workspace, session, act)
    assert {hunk.path: hunk.kind for hunk in workspace.review.pending().hunks} == dict.fromkeys(
        ("empty", "link", "run.sh"), "whole"
    )
    workspace.review.discard(everything=True)
    assert (project / "run.sh").stat().st_mode & 0o777 == 0o644
    assert os.readlink(project / "link") == "run.sh"
    assert not (project / "empty").exists()


def test_a_mode_and_lines_are_decided_apart(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "run.sh", TEN)
    (project / "run.sh").chmod(0o644)

    def act() -> None:
        replaced(project, "run.sh", "line 3\n", "three\n")
        (project / "run.sh").chmod(0o755)

    turn(workspace, session, act)
    lines, mode = workspace.review.pending().hunks
    workspace.review.keep(mode.id)
    assert [hunk.id for hunk in workspace.review.pending().hunks] == [lines.id]
    workspace.review.discard(lines.id)
    assert (project / "run.sh").read_text() == TEN
    assert (project / "run.sh").stat().st_mode & 0o777 == 0o755


def test_pending_work_follows_a_file_that_the_user_renames(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 3\n", "three\n"))
    (project / "a").rename(project / "b")
    assert shown(workspace) == [("b", "line 3\n", "three\n")]
    workspace.review.discard(everything=True)
    assert not (project / "a").exists()
    assert (project / "b").read_text() == TEN


def test_pending_work_follows_a_file_that_the_user_renames_and_edits(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 3\n", "three\n"))
    (project / "a").rename(project / "b")
    replaced(project, "b", "line 8\n", "mine\n")
    assert shown(workspace) == [("b", "line 3\n", "three\n")]
    workspace.review.discard(everything=True)
    assert not (project / "a").exists()
    assert (project / "b").read_text() == TEN.replace("line 8\n", "mine\n")


def test_a_turn_is_known_by_its_work_in_a_file_that_the_user_has_renamed_and_edited(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 3\n", "three\n"))
    (project / "a").rename(project / "b")
    replaced(project, "b", "line 8\n", "mine\n")
    workspace.sessions.observe()
    turn(workspace, session, lambda: replaced(project, "b", "line 6\n", "six\n"))
    assert [hunk.turns for hunk in workspace.review.pending().hunks] == [(0,), (1,)]
    assert shown(workspace, session=session, turn=0) == [("b", "line 3\n", "three\n")]
    (first, second) = workspace.review.pending().hunks
    assert [each.status for each in workspace.review.turn_statuses(session)] == [
        "pending",
        "pending",
    ]
    workspace.review.keep(second.id)
    assert [each.status for each in workspace.review.turn_statuses(session)] == ["pending", "kept"]
    assert workspace.review.discard(session=session, turn=0).hunks == (first.id,)
    assert [each.status for each in workspace.review.turn_statuses(session)] == ["undone", "kept"]
    wanted = TEN.replace("line 8\n", "mine\n").replace("line 6\n", "six\n")
    assert (project / "b").read_text() == wanted
    assert not (project / "a").exists()


@pytest.mark.parametrize("act", ["keep", "discard"])
@pytest.mark.parametrize("tail", ["", "\n", "\r\n"])
def test_the_end_of_a_file_is_exact(
    project: Path, workspace: Workspace, session: str, act: str, tail: str
) -> None:
    put(project, "a", "one\ntwo")
    turn(workspace, session, lambda: put(project, "a", "one\ntwo\nthree" + tail))
    if act == "keep":
        workspace.review.keep(everything=True)
        assert (project / "a").read_bytes() == b"one\ntwo\nthree" + tail.encode()
    else:
        workspace.review.discard(everything=True)
        assert (project / "a").read_bytes() == b"one\ntwo"
    assert workspace.review.pending().files == ()


@pytest.mark.parametrize(
    "by_force",
    [
        False,
        True,
    ],
)
def test_reset_takes_back_whatever_discard_would(
    project: Path, workspace: Workspace, session: str, by_force: bool
) -> None:
    put(project, "a", "line\n")
    turn(workspace, session, lambda: put(project, "a", "line\none\ntwo\n"))
    put(project, "a", "line\none\n")
    assert not workspace.review.pending().hunks[0].mixed
    workspace.review.reset(session, force=by_force)
    assert (project / "a").read_text() == "line\n"
    assert workspace.review.pending().files == ()


def test_undo_takes_back_a_keep_and_redo_brings_it_again(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 3\n", "three\n"))
    before = workspace.review.pending()
    workspace.review.keep(everything=True)
    workspace.undo()
    assert workspace.review.pending().hunks[0].id == before.hunks[0].id
    workspace.redo()
    assert workspace.review.pending().files == ()
    assert "three\n" in (project / "a").read_text()


@pytest.mark.parametrize("decision", ["keep", "approve"])
@pytest.mark.parametrize("created", [True, False])
def test_undo_of_a_decision_still_knows_what_the_user_typed_since(
    project: Path, workspace: Workspace, session: str, decision: str, created: bool
) -> None:
    if not created:
        put(project, "a", "line\n")
    turn(workspace, session, lambda: put(project, "a", "one\ntwo\n"))
    if decision == "keep":
        workspace.review.keep(everything=True)
    else:
        workspace.review.approve(session)
    put(project, "a", "one\nmine\ntwo\n")
    workspace.undo()
    assert [hunk.mixed for hunk in workspace.review.pending().hunks] == [True]
    workspace.review.discard(everything=True)
    assert (project / "a").read_text() == "one\nmine\ntwo\n"


def test_undo_of_a_keep_finds_its_lines_in_a_file_that_the_user_has_moved_and_edited(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 3\n", "three\n"))
    workspace.review.keep(everything=True)
    (project / "a").rename(project / "b")
    replaced(project, "b", "line 8\n", "mine\n")
    workspace.undo()
    assert shown(workspace) == [("b", "line 3\n", "three\n")]


def test_undo_of_a_keep_leaves_what_the_agent_has_written_elsewhere_pending(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", "a\n")
    put(project, "b", "b\n")
    workspace.sessions.begin_turn(session, "do it")
    put(project, "a", "A\n")
    workspace.review.keep(everything=True)
    assert workspace.undo().undoes_kind == "keep"
    put(project, "b", "B\n")
    workspace.review.discard(paths=["b"])
    assert workspace.undo().undoes_kind == "discard"
    assert shown(workspace) == [("a", "a\n", "A\n"), ("b", "b\n", "B\n")]
    workspace.redo()
    assert shown(workspace) == [("a", "a\n", "A\n")]
    workspace.undo()
    assert workspace.undo().undoes_kind == "turn"
    assert (project / "b").read_text() == "b\n"


def test_undo_of_a_forced_discard_still_knows_which_lines_are_the_users(
    project: Path, workspace: Workspace, session: str
) -> None:
    turn(workspace, session, lambda: (put(project, "a", "1\n2\n"), put(project, "b", "b\n")))
    put(project, "a", "1\nmine\n2\n")
    workspace.review.discard(paths=["a"], force=True)
    assert not (project / "a").exists()
    workspace.undo()
    assert [hunk.mixed for hunk in workspace.review.pending(paths=["a"]).hunks] == [True]
    workspace.review.discard(everything=True)
    assert (project / "a").read_text() == "1\nmine\n2\n"


def test_undo_takes_back_a_discard_and_the_hunk_is_pending_again(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 3\n", "three\n"))
    before = workspace.review.pending()
    workspace.review.discard(everything=True)
    assert workspace.review.pending().files == ()
    workspace.undo()
    assert workspace.review.pending() == before


def test_what_a_restore_took_away_is_pending_again_once_it_is_back(
    project: Path, workspace: Workspace, session: str, other: str
) -> None:
    put(project, "old", "old\n")
    put(project, "a", TEN)
    base = workspace.checkpoint("by hand").id

    def act() -> None:
        put(project, "new", "new\n")
        replaced(project, "a", "line 1\n", "one\n")
        (project / "old").unlink()

    turn(workspace, session, act)
    turn(workspace, other, lambda: put(project, "new", "new\nnewer\n"))
    full = workspace.checkpoint("by hand, too").id
    waiting = workspace.review.pending()
    for back in (workspace.undo, lambda: workspace.restore(full)):
        workspace.restore(base, force=True)
        assert workspace.review.pending().files == ()
        back()
        assert workspace.review.pending() == waiting
    workspace.review.approve(session)
    approved = workspace.review.pending()
    workspace.restore(base, force=True)
    workspace.restore(full)
    assert workspace.review.pending() == approved, "what was approved since is so still"


@pytest.mark.parametrize("way", ["restore", "discard", "turn"])
def test_a_file_that_was_thrown_away_stays_away_when_what_was_built_upon_it_is_reset(
    project: Path, workspace: Workspace, session: str, other: str, way: str
) -> None:
    before = workspace.sessions.begin_turn(session, "make it").checkpoint
    put(project, "a", "one\n")
    workspace.sessions.end_turn(session)
    turn(workspace, other, lambda: put(project, "a", "one\ntwo\n"))
    waiting = workspace.review.pending()
    if way == "restore":
        workspace.restore(before, force=True)
    elif way == "discard":
        workspace.review.discard(session=session, force=True)
    else:
        turn(workspace, session, (project / "a").unlink)
    assert workspace.review.pending().files == ()
    assert not workspace.review.reset(other, force=True).files.restored
    assert not (project / "a").exists()
    workspace.undo()
    workspace.undo()
    assert (project / "a").read_text() == "one\ntwo\n"
    found = workspace.review.pending()
    assert [file.path for file in found.files] == [file.path for file in waiting.files]
    assert {hunk.id for hunk in found.hunks} == {hunk.id for hunk in waiting.hunks}


def test_lines_that_were_thrown_away_stay_away_when_what_replaced_them_is_reset(
    project: Path, workspace: Workspace, session: str, other: str
) -> None:
    put(project, "a", TEN)

    def act() -> None:
        replaced(project, "a", "line 3\n", "one\n")
        replaced(project, "a", "line 8\n", "one\n")

    def act_upon() -> None:
        put(project, "a", TEN.replace("line 3\n", "two\n").replace("line 8\n", "one\n"))

    turn(workspace, session, act)
    turn(workspace, other, act_upon)
    waiting = workspace.review.pending()
    first, _second = workspace.review.pending(session=session).hunks
    workspace.review.discard(first.id, force=True)
    assert shown(workspace, session=other) == []
    assert shown(workspace, session=session) == [("a", "line 8\n", "one\n")]
    workspace.undo()
    assert workspace.review.pending() == waiting


@pytest.mark.parametrize("way", ["keep", "approve", "discard", "reset", "restore", "by hand"])
def test_a_decision_in_an_open_turn_is_what_undo_takes_back_and_the_turn_keeps_its_work(
    project: Path, workspace: Workspace, session: str, way: str
) -> None:
    put(project, "a", TEN)
    base = workspace.checkpoint("by hand").id
    begun = workspace.sessions.begin_turn(session, "do it")
    replaced(project, "a", "line 3\n", "three\n")
    put(project, "new", "new\n")
    waiting = shown(workspace)
    if way == "keep":
        workspace.review.keep(everything=True)
    elif way == "approve":
        workspace.review.approve(session)
    elif way == "discard":
        workspace.review.discard(everything=True)
    elif way == "reset":
        workspace.review.reset(session)
    else:
        workspace.restore(begun.checkpoint if way == "restore" else base, force=True)
    assert workspace.review.pending().files == ()
    workspace.undo()
    assert shown(workspace) == waiting
    workspace.redo()
    assert workspace.review.pending().files == ()
    workspace.undo()
    put(project, "newer", "newer\n")
    workspace.sessions.end_turn(session)
    assert {hunk.path: hunk.turns for hunk in workspace.review.pending().hunks} == {
        "a": (0,),
        "new": (0,),
        "newer": (0,),
    }
    workspace.review.discard(session=session, turn=0)
    assert workspace.review.pending().files == ()


def test_a_turn_is_taken_out_and_later_turns_stay(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 1\n", "one\n"))
    turn(workspace, session, lambda: replaced(project, "a", "line 5\n", "five\n"))
    turn(workspace, session, lambda: replaced(project, "a", "line 8\n", "eight\n"))
    assert shown(workspace, session=session, turn=1) == [("a", "line 5\n", "five\n")]
    workspace.review.discard(session=session, turn=1)
    wanted = TEN.replace("line 1\n", "one\n").replace("line 8\n", "eight\n")
    assert (project / "a").read_text() == wanted
    workspace.review.keep(session=session, turn=2)
    assert shown(workspace) == [("a", "line 1\n", "one\n")]


def test_the_number_of_a_turn_means_the_one_on_the_branch_where_the_session_stands(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    first = workspace.sessions.begin_turn(session, "first").entry
    replaced(project, "a", "line 1\n", "one\n")
    workspace.sessions.end_turn(session)
    turn(workspace, session, lambda: put(project, "left", "left\n"))
    workspace.sessions.goto(first, session=session, skip_files=True)
    turn(workspace, session, lambda: put(project, "b", "b\n"))
    turn(workspace, session, lambda: put(project, "c", "c\n"))
    assert [(each.path, each.turns) for each in workspace.review.pending().hunks] == [
        ("a", ()), ("b", (0,)), ("c", (1,)), ("left", ()),
    ]  # fmt: skip
    assert shown(workspace, session=session, turn=1) == [("c", "", "c\n")]
    workspace.review.discard(session=session, turn=1)
    assert (project / "left").exists() and not (project / "c").exists()
    workspace.review.keep(session=session, turn=0)
    assert [path for path, _old, _new in shown(workspace)] == ["a", "left"]
    with pytest.raises(NotFound, match="on the branch where it stands"):
        workspace.review.discard(session=session, turn=5)


@pytest.mark.parametrize("verb", ["pending", "keep", "discard"])
def test_a_turn_without_its_session_could_be_anybodys_and_is_refused(
    project: Path, workspace: Workspace, session: str, verb: str
) -> None:
    turn(workspace, session, lambda: put(project, "a", "a\n"))
    with pytest.raises(UsageError, match="whose turn"):
        getattr(workspace.review, verb)(turn=0)
    assert len(shown(workspace)) == 1


def test_a_folder_that_the_agent_made_goes_with_its_last_file(
    project: Path, workspace: Workspace, session: str
) -> None:
    turn(workspace, session, lambda: put(project, "deep/er/new", "x\n"))
    workspace.review.discard(everything=True)
    assert list(project.iterdir()) == []


def test_a_folder_that_the_agent_made_stays_for_what_the_user_put_there(
    project: Path, workspace: Workspace, session: str
) -> None:
    turn(workspace, session, lambda: put(project, "deep/new", "x\n"))
    put(project, "deep/mine", "y\n")
    workspace.review.discard(everything=True)
    assert not (project / "deep/new").exists()
    assert (project / "deep/mine").read_text() == "y\n"
    assert workspace.review.pending().files == ()


def test_a_file_that_became_a_folder_is_undone(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)

    def act() -> None:
        (project / "a").unlink()
        put(project, "a/inner", "x\n")

    turn(workspace, session, act)
    workspace.review.discard(everything=True)
    assert (project / "a").read_text() == TEN
    assert workspace.review.pending().files == ()
    workspace.undo()
    assert (project / "a/inner").read_text() == "x\n"


def test_a_file_that_became_a_folder_is_kept(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)

    def act() -> None:
        (project / "a").unlink()
        put(project, "a/inner", "x\n")

    turn(workspace, session, act)
    workspace.review.keep(everything=True)
    assert workspace.review.pending().files == ()
    assert (project / "a/inner").read_text() == "x\n"


def test_keeping_one_file_of_a_swapped_place_keeps_the_rest_reviewable(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)

    def act() -> None:
        (project / "a").unlink()
        put(project, "a/inner", "x\n")
        put(project, "a/other", "y\n")

    turn(workspace, session, act)
    before = (project / "a/inner").read_text(), (project / "a/other").read_text()
    workspace.review.keep(paths=["a/inner"])
    workspace.review.pending()
    assert ((project / "a/inner").read_text(), (project / "a/other").read_text()) == before
    workspace.review.keep(everything=True)
    assert workspace.review.pending().files == ()


def test_a_name_of_a_hunk_that_fits_none_or_several_is_refused(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 3\n", "three\n"))
    (hunk,) = workspace.review.pending().hunks
    for verb in (workspace.review.keep, workspace.review.discard):
        with pytest.raises(mulligan.NotFound):
            verb("0000deadbeef")
        with pytest.raises(mulligan.NotFound):
            verb(paths=["nothing/here"])
        with pytest.raises(mulligan.NotFound):
            verb("")
    assert workspace.review.keep(hunk.id[:6]).hunks == (hunk.id,)


def test_equal_hunks_in_one_file_have_names_of_their_own(
    project: Path, workspace: Workspace, session: str
) -> None:
    put(project, "a", TEN)

    def act() -> None:
        replaced(project, "a", "line 2\n", "line 2\nsame\n")
        replaced(project, "a", "line 7\n", "line 7\nsame\n")

    turn(workspace, session, act)
    first, second = workspace.review.pending().hunks
    assert first.id != second.id
    workspace.review.discard(second.id)
    assert (project / "a").read_text() == TEN.replace("line 2\n", "line 2\nsame\n")


def test_preview_changes_nothing(project: Path, workspace: Workspace, session: str) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 3\n", "three\n"))
    operations, log = workspace.operations(), workspace.log()
    done = workspace.review.discard(everything=True, preview=True)
    assert done.results[0].restored == ("a",) and done.results[0].preview
    workspace.review.reset(session, preview=True)
    assert "three\n" in (project / "a").read_text()
    assert (workspace.operations(), workspace.log()) == (operations, log)


def test_looking_writes_nothing_down(project: Path, workspace: Workspace, session: str) -> None:
    put(project, "a", TEN)
    turn(workspace, session, lambda: replaced(project, "a", "line 3\n", "three\n"))
    replaced(project, "a", "line 9\n", "mine\n")
    operations, log = workspace.operations(), workspace.log()
    workspace.review.pending()
    workspace.review.stats()
    workspace.review.position()
    workspace.review.round_status(session)
    workspace.review.turn_statuses(session)
    assert (workspace.operations(), workspace.log()) == (operations, log)


def test_several_agents_and_binary_bytes_in_names(
    project: Path, workspace: Workspace, session: str
) -> None:
    name = os.fsdecode(b"na\xffme\n")
    put(project, name, "one\n")
    turn(workspace, session, lambda: put(project, name, "two\n"))
    (hunk,) = workspace.review.pending().hunks
    workspace.review.discard(paths=[hunk.path])
    assert (project / name).read_text() == "one\n"


def test_restore_brings_back_what_was_deleted_since_the_last_turn(
    project: Path, workspace: Workspace, session: str
) -> None:
    """To leave alone what the user changed is right where there is something to overwrite."""
    put(project, "src/a", "a\n")
    put(project, "b", "b\n")
    turn(workspace, session, lambda: put(project, "b", "agent\n"))
    (project / "src" / "a").unlink()
    (project / "src").rmdir()
    put(project, "b", "mine\n")
    done = workspace.restore("@")
    assert (project / "src" / "a").read_text() == "a\n"
    assert (project / "b").read_text() == "mine\n"
    assert [skip.path for skip in done.skipped] == ["b"]
