"""The commands of turns, rounds and review: what they say, what they do, and how they end."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

import mulligan
from run import mull, quick, write

NUMBERS = "".join(f"{number}\n" for number in range(1, 31))


def begin(project: Path, agent: str = "robot", message: str = "do it") -> str:
    done = quick("turn", "begin", "--new", "--agent", agent, message, project=project)
    return done.lines[0]


def turn(project: Path, session: str, files: dict[str, str | bytes], *gone: str) -> None:
    """One turn of a session that writes some files and deletes others."""
    quick("turn", "begin", session, "more", project=project)
    write(project, files)
    for name in gone:
        (project / name).unlink()
    quick("turn", "end", session, project=project)


def hunks(project: Path, *arguments: str) -> list[dict[str, Any]]:
    found = quick("pending", "--json", *arguments, project=project).json
    return [hunk for file in found["files"] for hunk in file["hunks"]]


def texts(project: Path) -> dict[str, str]:
    return {
        str(path.relative_to(project)): path.read_text()
        for path in sorted(project.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def worked(project: Path) -> Path:
    """An agent changed two places of one file, deleted another, and made a third."""
    write(project, {"a.txt": NUMBERS, "b.txt": "b\n", "keep.txt": "k\n"})
    session = begin(project)
    write(
        project,
        {
            "a.txt": NUMBERS.replace("\n5\n", "\nFIVE\n").replace("\n20\n", "\nTWENTY\n"),
            "new/n.txt": "n\n",
        },
    )
    (project / "b.txt").unlink()
    quick("turn", "end", session, project=project)
    return project


def test_a_turn_begins_with_a_checkpoint_and_ends_with_what_it_changed(project: Path) -> None:
    write(project, {"a": "1\n"})
    begun = quick(
        "turn", "begin", "--new", "--agent", "x", "do", "it", "--json", project=project
    ).json
    names = {"session", "round", "entry", "checkpoint", "operation", "turn", "ended"}
    assert set(begun) == names
    assert begun["turn"] == 0 and begun["round"] == "session_1"
    log = quick("log", "--json", project=project).json
    assert any(each["message"] == "Before user message: do it" for each in log["checkpoints"])
    write(project, {"a": "2\n", "b": "b\n"})
    ended = quick("turn", "end", begun["session"], "--json", project=project).json
    assert (ended["added"], ended["modified"], ended["deleted"]) == (["b"], ["a"], [])
    again = quick("turn", "begin", begun["session"][:6], "again", project=project)
    assert again.lines == [begun["session"]] and "Turn 1 has begun" in again.stderr
    done = quick("turn", "end", "@", project=project)
    assert done.lines == [] and "it changed nothing" in done.stderr
    quick("verify", project=project)


@pytest.mark.parametrize(
    "arguments",
    [
        ("turn", "begin"),
        ("turn", "begin", "@"),
        ("turn", "begin", "--new"),
        ("turn", "begin", "--agent", "x", "@", "words"),
        ("turn", "end"),
        ("turn",),
        ("turn", "middle"),
        ("keep",),
        ("discard",),
        ("discard", "--preview", "--force"),
        ("keep", "--all", "a.txt"),
        ("discard", "--all", "a.txt"),
        ("discard", "--turn", "-1"),
    ],
)
def test_a_request_that_makes_no_sense_changes_nothing(
    worked: Path, arguments: tuple[str, ...]
) -> None:
    before, pending = texts(worked), hunks(worked)
    assert quick(*arguments, project=worked, code=2).stdout == b""
    assert texts(worked) == before and hunks(worked) == pending


def test_a_turn_that_nobody_began_cannot_end(worked: Path) -> None:
    assert "no turn" in quick("turn", "end", "@", project=worked, code=2).stderr
    assert quick("turn", "end", "nobody", project=worked, code=3).stdout == b""


def test_pending_lists_files_and_hunks_with_their_ids(worked: Path) -> None:
    done = quick("pending", project=worked)
    ids = [each["hunk"] for each in hunks(worked)]
    assert [line.split() for line in done.lines] == [
        ["M", "a.txt", "+2", "−2"],
        [ids[0], "line", "5", "+1", "−1", "turn", "0"],
        [ids[1], "line", "20", "+1", "−1", "turn", "0"],
        ["D", "b.txt", "+0", "−1"],
        [ids[2], "line", "1", "+0", "−1", "turn", "0"],
        ["A", "new/n.txt", "+1", "−0"],
        [ids[3], "line", "1", "+1", "−0", "turn", "0"],
    ]
    assert "4 changes in 3 files, +3 −3." in done.stderr
    data = quick("pending", "--json", project=worked).json
    assert (data["total"], data["additions"], data["deletions"]) == (4, 3, 3)
    assert [each["path"] for each in hunks(worked, "new", "b.txt")] == ["b.txt", "new/n.txt"]
    assert [each["hunk"] for each in hunks(worked, "--session", "@", "--turn", "0")] == ids
    assert hunks(worked, "--turn", "1") == []
    assert quick("-C", str(worked / "new"), "pending", "n.txt", project=worked).lines


def test_the_whole_project_can_be_named_by_its_folder(worked: Path) -> None:
    assert hunks(worked, ".") == hunks(worked)
    quick("keep", ".", project=worked)
    assert hunks(worked) == []


def test_review_into_a_pipe_shows_every_line_of_every_hunk(worked: Path) -> None:
    done = mull("review", cwd=worked)
    lines = [line.strip() for line in done.lines]
    for line in ("-5", "+FIVE", "-20", "+TWENTY", "-b", "+n"):
        assert line in lines
    for each in hunks(worked):
        assert any(line.startswith(each["hunk"]) for line in lines)
    assert b"\x1b" not in done.stdout
    assert mull("review", "--json", cwd=worked).json == mull("pending", "--json", cwd=worked).json
    write(worked, {"no-end": "x"})
    turn(worked, "@", {"no-end": "y"})
    assert "\\ No newline at end of file" in mull("review", cwd=worked).stdout.decode()


def test_keep_takes_hunks_paths_or_everything_and_undo_takes_it_back(worked: Path) -> None:
    before = texts(worked)
    all_ids = ids = [each["hunk"] for each in hunks(worked)]
    done = quick("keep", ids[0], project=worked)
    assert done.lines == [ids[0]]
    assert "Kept 1 change. `mulligan undo` takes it back." in done.stderr
    assert [each["hunk"] for each in hunks(worked)] == ids[1:]
    quick("keep", ids[1][:4], "b.txt", project=worked)
    assert [each["hunk"] for each in hunks(worked)] == ids[3:]
    assert quick("keep", "--all", "--json", project=worked).json["files"] == ["new/n.txt"]
    assert hunks(worked) == []
    assert "nothing was kept" in quick("keep", "--all", project=worked).stderr
    assert texts(worked) == before
    for left in (ids[3:], ids[1:], all_ids):
        quick("undo", project=worked)
        assert [each["hunk"] for each in hunks(worked)] == left
    assert texts(worked) == before
    assert quick("keep", "00000", project=worked, code=3).stdout == b""
    assert quick("keep", "keep.txt", project=worked, code=3).stdout == b""


def test_discard_takes_hunks_paths_or_everything_and_undo_takes_it_back(worked: Path) -> None:
    before = texts(worked)
    ids = [each["hunk"] for each in hunks(worked)]
    done = quick("discard", ids[0], project=worked)
    assert done.lines == ["R  a.txt"]
    assert "Undid 1 change. `mulligan undo` takes it back." in done.stderr
    assert "\n5\n" in texts(worked)["a.txt"] and "TWENTY" in texts(worked)["a.txt"]
    quick("discard", ids[1], "new", project=worked)
    assert texts(worked) == {"a.txt": NUMBERS, "keep.txt": "k\n"}
    preview = quick("discard", "--all", "--preview", project=worked)
    assert preview.lines == ["R  b.txt"] and "Nothing was changed" in preview.stderr
    assert "b.txt" not in texts(worked)
    assert quick("discard", "--all", "--json", project=worked).json["hunks"] == [ids[2]]
    assert texts(worked) == {"a.txt": NUMBERS, "b.txt": "b\n", "keep.txt": "k\n"}
    assert "nothing was undone" in quick("discard", "--all", project=worked).stderr
    for _each in range(3):
        quick("undo", project=worked)
    assert texts(worked) == before
    assert [each["hunk"] for each in hunks(worked)] == ids
    quick("verify", project=worked)


def test_a_name_that_could_be_a_hunk_is_a_path_if_there_is_one(worked: Path) -> None:
    id = hunks(worked)[0]["hunk"]
    write(worked, {"cafe": "c\n", "beef/file": "f\n"})
    turn(worked, "@", {id[:5]: "new\n", "beef/file": "g\n"}, "cafe")
    quick("keep", id[:5], "cafe", "beef", project=worked)
    assert sorted(each["path"] for each in hunks(worked)) == [
        "a.txt",
        "a.txt",
        "b.txt",
        "new/n.txt",
    ]
    assert quick("keep", id[:6], project=worked).lines == [id]


def test_what_the_user_changed_since_is_left_alone_and_said_so(worked: Path) -> None:
    mine = texts(worked)["a.txt"].replace("FIVE", "FIVE, but mine")
    write(worked, {"a.txt": mine})
    first = hunks(worked)[0]
    assert first["mixed"]
    assert "you changed lines in here" in quick("pending", project=worked).stdout.decode()
    done = quick("discard", first["hunk"], project=worked, code=4)
    assert re.fullmatch(r"left alone: a\.txt, because .+", done.lines[0])
    assert "Nothing was undone" in done.stderr and texts(worked)["a.txt"] == mine
    data = quick("discard", first["hunk"], "--json", project=worked, code=4).json
    assert data["conflicts"] == [first["hunk"]] and data["error"]["code"] == "would_lose_work"
    done = quick("discard", "--all", project=worked)
    assert "Undid 3 changes, 1 change left alone." in done.stderr
    assert texts(worked)["a.txt"] == NUMBERS.replace("\n5\n", "\nFIVE, but mine\n")
    quick("discard", "--all", "--force", project=worked)
    assert texts(worked)["a.txt"] == NUMBERS
    quick("undo", project=worked)
    assert "FIVE, but mine" in texts(worked)["a.txt"]


def test_one_turn_can_be_kept_or_undone(worked: Path) -> None:
    turn(worked, "@", {"keep.txt": "changed\n", "late.txt": "late\n"})
    assert {each["path"] for each in hunks(worked, "--turn", "1")} == {"keep.txt", "late.txt"}
    done = quick("discard", "--turn", "1", "--session", "@", project=worked)
    assert done.lines == ["R  keep.txt", "D  late.txt"]
    quick("keep", "--turn", "0", project=worked)
    assert hunks(worked) == []
    quick("undo", project=worked)
    assert "leave --turn out" in quick(
        "discard", hunks(worked)[0]["hunk"], "--turn", "0", project=worked, code=2
    ).stderr  # fmt: skip
    assert quick("discard", "--turn", "7", project=worked, code=3).stdout == b""


def test_with_several_sessions_at_work_one_has_to_be_named(worked: Path) -> None:
    one = mulligan_session(worked)
    other = begin(worked, "other", "also")
    write(worked, {"other.txt": "o\n"})
    quick("turn", "end", other, project=worked)
    before = texts(worked)
    for command in (["approve"], ["reset"], ["keep", "--turn", "0"], ["discard", "--turn", "0"]):
        words = quick(*command, project=worked, code=2).stderr
        assert one in words and other in words and "robot" in words
        data = quick(*command, "--json", project=worked, code=2).json
        assert data["error"]["code"] == "usage"
    assert texts(worked) == before
    lines = quick("pending", project=worked).lines
    assert any(line.endswith(f"other {other[:4]}") for line in lines)
    assert [each["path"] for each in hunks(worked, "--session", other)] == ["other.txt"]
    quick("discard", "--session", other, project=worked)
    assert "other.txt" not in texts(worked)
    assert quick("approve", "--json", project=worked).json["session"] == one


def mulligan_session(project: Path) -> str:
    with mulligan.open(project) as workspace:
        return workspace.sessions.get("@").id


def test_approve_moves_the_baseline_and_can_be_taken_back(worked: Path) -> None:
    before, pending = texts(worked), hunks(worked)
    data = quick("approve", "-m", "fine", "--json", project=worked).json
    assert data["new_session"] == data["new_round"] == "session_2"
    assert data["approved_commit"] == data["approved_checkpoint"]
    assert data["commits_approved"] == data["checkpoints"] == 2
    assert hunks(worked) == [] and texts(worked) == before
    again = quick("approve", "@", "--json", project=worked).json
    assert (again["new_session"], again["commits_approved"]) == ("session_3", 0)
    quick("undo", project=worked)
    quick("undo", project=worked)
    assert hunks(worked) == pending and texts(worked) == before
    done = quick("approve", project=worked)
    assert re.fullmatch(r"[0-9a-z]{16}", done.lines[0]) and "session_2 begins" in done.stderr


def test_reset_undoes_what_is_pending_and_can_be_taken_back(worked: Path) -> None:
    before = texts(worked)
    preview = quick("reset", "--preview", project=worked)
    assert preview.lines == ["R  a.txt", "R  b.txt", "D  new/n.txt"]
    assert "Would do: 2 restored, 1 deleted. Nothing was changed." in preview.stderr
    assert quick("reset", "--preview", "--json", project=worked).json["preview"]
    assert texts(worked) == before
    data = quick("reset", "--json", project=worked).json
    assert data["new_session"] == "session_2" and data["reset_to"] and data["safety_checkpoint"]
    assert data["files"]["deleted"] == ["new/n.txt"]
    assert texts(worked) == {"a.txt": NUMBERS, "b.txt": "b\n", "keep.txt": "k\n"}
    quick("undo", project=worked)
    assert texts(worked) == before
    mine = before["a.txt"].replace("FIVE", "FIVE, but mine")
    write(worked, {"a.txt": mine})
    done = quick("reset", project=worked)
    assert any(line.startswith("left alone: a.txt, because") for line in done.lines)
    assert "but mine" in texts(worked)["a.txt"]
    quick("undo", project=worked)
    quick("reset", "--force", project=worked)
    assert texts(worked)["a.txt"] == NUMBERS
    quick("verify", project=worked)


def test_reset_and_discard_say_alike_that_all_of_it_is_somebody_elses(project: Path) -> None:
    session = begin(project)
    write(project, {"a": "1\n2\n3\n"})
    quick("turn", "end", session, project=project)
    write(project, {"a": "1\nmine\n3\n"})
    for command in (["reset"], ["discard", "--all"]):
        done = quick(*command, project=project, code=4)
        assert done.lines[0].startswith("left alone: a, because")
        assert "Nothing was undone" in done.stderr
        found = quick(*command, "--json", project=project, code=4).json
        assert found["error"]["code"] == "would_lose_work"
    assert quick("reset", "--json", project=project, code=4).json["new_session"] == "session_1"
    assert texts(project)["a"] == "1\nmine\n3\n"
    assert len(hunks(project)) == 1
    quick("reset", "--force", project=project)
    assert "a" not in texts(project)


def test_a_mixed_hunk_tells_who_changed_lines_in_it(project: Path) -> None:
    write(project, {"a": "a\nb\n", "b": "1\n"})
    first = begin(project, "one")
    write(project, {"a": "a\n1\n2\n3\n4\n5\nb\n"})
    quick("turn", "end", first, project=project)
    second = begin(project, "two")
    write(project, {"a": "a\n1\ntwo\n3\n4\n5\nb\n"})
    quick("turn", "end", second, project=project)

    def told() -> str:
        text = quick("pending", "--session", first, project=project).stdout.decode()
        return text.splitlines()[1].split("  ")[-1]

    assert told() == f"two {second[:4]} changed lines in here"
    write(project, {"a": "a\n1\ntwo\n3\nmine\n5\nb\n"})
    assert told() == f"you and two {second[:4]} changed lines in here"
    quick("keep", "--session", second, project=project)
    assert told() == "you changed lines in here"


def test_undo_and_redo_overwrite_others_work_only_when_forced(worked: Path) -> None:
    done, mine = texts(worked)["a.txt"], "FIVE, but mine"
    write(worked, {"a.txt": done.replace("FIVE", mine)})
    quick("undo", project=worked)
    assert texts(worked)["a.txt"] == NUMBERS.replace("\n5\n", f"\n{mine}\n")
    quick("redo", project=worked)
    assert texts(worked)["a.txt"] == done.replace("FIVE", mine)


def test_undo_and_redo_overwrite_everything_when_forced(worked: Path) -> None:
    done = texts(worked)["a.txt"]
    write(worked, {"a.txt": done.replace("FIVE", "FIVE, but mine")})
    quick("undo", "--force", project=worked)
    assert texts(worked)["a.txt"] == NUMBERS
    write(worked, {"a.txt": NUMBERS.replace("\n20\n", "\n20, but mine\n")})
    quick("redo", "--force", project=worked)
    assert texts(worked)["a.txt"] == done.replace("FIVE", "FIVE, but mine")


def test_nothing_is_made_by_asking(project: Path) -> None:
    for command in (["pending"], ["review"], ["keep", "--all"], ["approve"], ["turn", "end", "@"]):
        assert quick(*command, project=project, code=3).stdout == b""
    quick("checkpoint", project=project)
    assert "Nothing is pending." in quick("pending", project=project).stderr
    assert quick("pending", "--json", project=project).json["files"] == []
    assert quick("approve", project=project, code=3).stdout == b""


def test_binary_files_folders_and_modes_are_decided_on_as_a_whole(project: Path) -> None:
    write(project, {"bin": bytes(range(256)), "run.sh": "echo\n"})
    session = begin(project)
    write(project, {"bin": bytes(range(255))})
    (project / "run.sh").chmod(0o755)
    (project / "empty").mkdir()
    quick("turn", "end", session, project=project)
    text = quick("review", project=project).stdout.decode()
    assert "bin  (binary)" in text and "A  empty/" in text and "0644 → 0755" in text
    assert [each["kind"] for each in hunks(project)] == ["whole"] * 3
    quick("discard", *(each["hunk"] for each in hunks(project)), project=project)
    assert (project / "bin").read_bytes() == bytes(range(256))
    assert not (project / "empty").exists() and not os.access(project / "run.sh", os.X_OK)


def test_text_that_is_not_utf_8_is_shown_by_its_bytes_and_marked_in_json(project: Path) -> None:
    (project / "latin").write_bytes(b"caf\xe9\nstays\n")
    session = begin(project)
    (project / "latin").write_bytes(b"caf\xe8\nstays\n")
    quick("turn", "end", session, project=project)
    text = quick("review", project=project).stdout.decode()
    assert "-caf\\xe9\n" in text and "+caf\\xe8\n" in text and "(binary)" not in text
    (hunk,) = hunks(project)
    assert (hunk["old_lines"], hunk["new_lines"]) == (["caf\ufffd\n"], ["caf\ufffd\n"])
    assert "latin  +1 −1" in quick("diff", "--stat", "@", project=project).stdout.decode()
    quick("discard", hunk["hunk"], project=project)
    assert (project / "latin").read_bytes() == b"caf\xe9\nstays\n"


def test_content_and_names_cannot_disturb_the_terminal(project: Path) -> None:
    session = begin(project, "agent\x1b[2J", "message\x1b[2J")
    write(project, {"evil\x1b[2J": "text\x1b]0;x\x07\u202e\n"})
    (project / os.fsdecode(b"bytes\xff")).write_bytes(b"caf\xe9\x1b\n")
    quick("turn", "end", session, project=project)
    quick("turn", "begin", "--new", "x", project=project)
    write(project, {"second": "x\n"})
    for command in (["pending"], ["review"], ["approve"], ["discard", "--all"]):
        done = mull(*command, cwd=project, code=None)
        words = done.stdout.decode() + done.stderr
        assert "\x1b" not in words and "\x07" not in words and "\u202e" not in words


@pytest.mark.parametrize("name", ["keep", "discard"])
def test_hunks_and_pending_paths_are_completed(worked: Path, name: str) -> None:
    id = hunks(worked)[0]["hunk"]
    for begun, found in ((id[:3], id), ("new/", "new/n.txt"), ("b", "b.txt")):
        environment = {
            **os.environ,
            "_MULLIGAN_COMPLETE": "bash_complete",
            "COMP_WORDS": f"mulligan {name} {begun}",
            "COMP_CWORD": "2",
        }
        assert found in mull(cwd=worked, env=environment).stdout.decode()
