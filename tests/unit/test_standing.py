"""Whose account a change goes to, when several work on the same lines of the same files."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
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


def letters(project: Path, content: str | None, name: str = "f") -> None:
    """A letter is a line, so that a row shows where everything stands."""
    if content is None:
        (project / name).unlink()
    else:
        (project / name).write_bytes("".join(f"{letter}\n" for letter in content).encode())


def read(project: Path, name: str = "f") -> str | None:
    path = project / name
    return path.read_text().replace("\n", "") if path.exists() else None


def turn(workspace: Workspace, session: str, act: Callable[[], object]) -> None:
    workspace.sessions.begin_turn(session, "go")
    act()
    workspace.sessions.end_turn(session)


def shown(workspace: Workspace, session: str) -> list[str]:
    """Each pending hunk as `old>new`, with a star if others had a part in it."""
    return [
        "".join(hunk.old_lines).replace("\n", "")
        + ">"
        + "".join(hunk.new_lines).replace("\n", "")
        + ("*" if hunk.mixed else "")
        for hunk in workspace.review.pending(session=session).hunks
    ]


@pytest.mark.parametrize(
    ("start", "agent", "user", "pending", "discarded"),
    [
        # Elsewhere: the user's lines join the baseline.
        ("abcdef", "aBcdef", "aBcdEf", ["b>B"], "abcdEf"),
        ("abcdef", "aBcdef", "XaBcdef", ["b>B"], "Xabcdef"),
        ("abcdef", "abXYcdef", "abXYcde", [">XY"], "abcde"),
        ("abcdef", "adef", "adeUf", ["bc>"], "abcdeUf"),
        # Right beside: still the user's own.
        ("abcdef", "aBcdef", "aBUcdef", ["b>B"], "abUcdef"),
        ("abcdef", "aBcdef", "aUBcdef", ["b>B"], "aUbcdef"),
        ("abcdef", "abXcdef", "abXUcdef", [">X"], "abUcdef"),
        # Within: shown as both, and left.
        ("abcdef", "aBCDef", "aBUDef", ["bcd>BUD*"], "aBUDef"),
        ("abcdef", "abXYZcdef", "abXUYZcdef", [">XUYZ*"], "abXUYZcdef"),
        ("abcdef", "aBCDef", "aBDef", ["bcd>BD*"], "aBDef"),
        # Less of it at the edge is less to decide about, and has nothing of the user's in it.
        ("abcdef", "aBCdef", "aBdef", ["bc>B"], "abcdef"),
        # The user takes back what the agent did: nothing is left to decide.
        ("abcdef", "aBcdef", "abcdef", [], "abcdef"),
        ("abcdef", "abXcdef", "abcdef", [], "abcdef"),
        ("abcdef", "aBcdEf", "abcdEf", ["e>E"], "abcdef"),
        # Everything goes, or comes anew.
        ("abcdef", "aBcdef", "", ["abcdef>*"], ""),
        (None, "AB", "ABU", [">ABU*"], "ABU"),
        (None, "AB", None, [], None),
        ("abc", None, "U", ["abc>U*"], "U"),
        ("abc", None, "abc", [], "abc"),
        ("abc", "aBc", None, [], None),
    ],
)
def test_what_the_user_types_after_a_turn(
    project: Path,
    workspace: Workspace,
    session: str,
    start: str | None,
    agent: str | None,
    user: str | None,
    pending: list[str],
    discarded: str | None,
) -> None:
    if start is not None:
        letters(project, start)
    turn(workspace, session, lambda: letters(project, agent))
    letters(project, user)
    assert shown(workspace, session) == pending
    workspace.sessions.begin_turn(session, "written down, it is the same")
    assert shown(workspace, session) == pending
    workspace.sessions.end_turn(session)
    workspace.review.discard(everything=True)
    assert read(project) == discarded


@pytest.mark.parametrize(
    ("start", "one", "two", "of_one", "of_two", "without_one"),
    [
        ("abcdef", "aBcdef", "aBcdEf", ["b>B"], ["e>E"], "abcdEf"),
        ("abcdef", "abXcdef", "abXYcdef", [">X"], [">Y"], "abYcdef"),
        ("abcdef", "abcdefX", "abcdefXY", [">X"], [">Y"], "abcdefY"),
        ("abcdef", "aBcdef", "aCcdef", ["b>C*"], ["B>C"], "aCcdef"),
        ("abcdef", "aBCDef", "aBYDef", ["bcd>BYD*"], ["C>Y"], "aBYDef"),
        (None, "ABC", "AYC", [">AYC*"], ["B>Y"], "AYC"),
    ],
)
def test_what_two_agents_do_one_after_the_other(
    project: Path,
    workspace: Workspace,
    session: str,
    other: str,
    start: str | None,
    one: str,
    two: str,
    of_one: list[str],
    of_two: list[str],
    without_one: str,
) -> None:
    if start is not None:
        letters(project, start)
    turn(workspace, session, lambda: letters(project, one))
    turn(workspace, other, lambda: letters(project, two))
    assert shown(workspace, session) == of_one
    assert shown(workspace, other) == of_two
    workspace.review.discard(session=session)
    assert read(project) == without_one
    workspace.review.discard(session=other)
    workspace.review.discard(session=session)
    assert read(project) == start


@pytest.mark.parametrize("first", ["one", "two"])
def test_what_two_agents_did_is_undone_in_either_order(
    project: Path, workspace: Workspace, session: str, other: str, first: str
) -> None:
    letters(project, "abcdefghij")
    turn(workspace, session, lambda: letters(project, "aBcdefghij"))
    turn(workspace, other, lambda: letters(project, "aBcdEfghij"))
    letters(project, "aBcdEfghUj")
    turn(workspace, session, lambda: letters(project, "aBcdEfGhUj"))
    order = (session, other) if first == "one" else (other, session)
    for each in order:
        assert workspace.review.discard(session=each).conflicts == ()
    assert read(project) == "abcdefghUj"


def test_a_proposal_that_comes_back_because_anothers_deletion_is_undone_is_pending_again(
    project: Path, workspace: Workspace, session: str, other: str
) -> None:
    letters(project, "abc")
    turn(workspace, session, lambda: letters(project, "abcX"))
    turn(workspace, other, lambda: letters(project, "abc"))
    assert shown(workspace, other) == ["X>"]
    workspace.review.discard(session=other)
    assert read(project) == "abcX"
    assert shown(workspace, session) == [">X"]


@pytest.mark.parametrize(
    ("start", "one", "two", "again"),
    [
        ("", "b", "", [">b"]),
        ("x", "xb", "x", [">b"]),
        ("x", "xbc", "xc", [">b"]),
        ("x", "bxc", "xc", [">b"]),
        ("x", "bxc", "x", [">b", ">c"]),
        ("xy", "xby", "xy", [">b"]),
    ],
)
@pytest.mark.parametrize("decision", ["discard", "reset"])
def test_what_was_thrown_away_and_another_agent_had_deleted_does_not_come_back_approved(
    project: Path,
    workspace: Workspace,
    session: str,
    other: str,
    start: str,
    one: str,
    two: str,
    again: list[str],
    decision: str,
) -> None:
    letters(project, start)
    turn(workspace, session, lambda: letters(project, one))
    turn(workspace, other, lambda: letters(project, two))
    if decision == "discard":
        workspace.review.discard(session=session)
        workspace.review.discard(session=other)
    else:
        workspace.review.reset(session)
        workspace.review.reset(other)
    assert shown(workspace, other) == []
    assert shown(workspace, session) == again
    workspace.review.discard(session=session)
    assert read(project) == start


@pytest.mark.parametrize("left", ["XZ", "Y", "", None])
@pytest.mark.parametrize("how", ["abort", "undo", "restore"])
def test_lines_of_the_user_stay_theirs_when_what_an_agent_did_to_them_is_taken_back(
    project: Path, workspace: Workspace, session: str, how: str, left: str | None
) -> None:
    letters(project, "")
    turn(workspace, session, lambda: letters(project, "XY"))
    letters(project, "XuY")
    before = workspace.sessions.begin_turn(session, "go").checkpoint
    edit = workspace.sessions.start_edit(session, ["f"])
    letters(project, left)
    if how == "abort":
        workspace.sessions.abort_edit(edit)
    workspace.sessions.end_turn(session)
    if how == "undo":
        workspace.undo()
    elif how == "restore":
        workspace.restore(before)
    assert shown(workspace, session) == [">XuY*"]
    workspace.review.discard(everything=True)
    assert read(project) == "XuY"


def test_pending_lines_that_another_agent_removed_are_known_while_the_user_types_there(
    project: Path, workspace: Workspace, session: str, other: str
) -> None:
    letters(project, "")
    turn(workspace, session, lambda: letters(project, "X"))
    turn(workspace, other, lambda: letters(project, ""))
    letters(project, "u")
    assert shown(workspace, session) == []
    workspace.review.discard(session=other)
    assert read(project) == "uX"
    assert shown(workspace, session) == [">X"]


@pytest.mark.parametrize("left", ["Y", "", "uY"])
def test_pending_lines_that_come_back_together_with_the_users_are_pending_as_before(
    project: Path, workspace: Workspace, session: str, other: str, left: str
) -> None:
    letters(project, "")
    turn(workspace, session, lambda: letters(project, "XY"))
    letters(project, "XuY")
    assert shown(workspace, session) == [">XuY*"]
    turn(workspace, other, lambda: letters(project, left))
    workspace.review.discard(session=other)
    assert read(project) == "XuY"
    assert shown(workspace, session) == [">XuY*"]


@pytest.mark.parametrize("who", ["agent", "user"])
@pytest.mark.parametrize("later", ["uX", "Xu", "XuY"])
def test_lines_in_a_file_that_was_deleted_and_made_again_stay_their_authors(
    project: Path, workspace: Workspace, session: str, other: str, who: str, later: str
) -> None:
    letters(project, "ab")
    turn(workspace, session, lambda: letters(project, None))
    if who == "user":
        letters(project, "u")
    else:
        turn(workspace, other, lambda: letters(project, "u"))
    turn(workspace, session, lambda: letters(project, later))
    assert shown(workspace, session) == [f"ab>{later}*"]
    assert workspace.review.discard(session=session).hunks == ()
    assert read(project) == later


@pytest.mark.parametrize("returned", ["undo", "discard"])
@pytest.mark.parametrize(
    "start",
    ["abc", None],
)
def test_pending_lines_in_a_file_that_another_agent_deleted_are_pending_again_when_it_returns(
    project: Path,
    workspace: Workspace,
    session: str,
    other: str,
    start: str | None,
    returned: str,
) -> None:
    if start is not None:
        letters(project, start)
    turn(workspace, session, lambda: letters(project, "aXc"))
    before = shown(workspace, session)
    turn(workspace, other, lambda: letters(project, None))
    if returned == "undo":
        workspace.undo()
    else:
        workspace.review.discard(session=other)
    assert read(project) == "aXc"
    assert shown(workspace, session) == before
    assert shown(workspace, other) == []


@pytest.mark.parametrize("who", ["agent", "user"])
def test_a_line_after_a_line_without_an_end_is_still_its_authors(
    project: Path, workspace: Workspace, session: str, other: str, who: str
) -> None:
    (project / "f").write_bytes(b"u")
    turn(workspace, session, lambda: letters(project, "uB"))
    if who == "user":
        letters(project, "uBA")
    else:
        turn(workspace, other, lambda: letters(project, "uBA"))
    assert shown(workspace, session) == ["u>uBA*"]
    workspace.review.discard(session=session)
    assert read(project) == "uBA"


@pytest.mark.parametrize("gone", ["undo", "discard", "by hand", "by the other"])
@pytest.mark.parametrize(
    ("start", "deleted", "inserted"),
    [("u", "", "A"), ("abc", "ac", "aAc"), ("abc", "ab", "abA"), ("abcd", "ad", "aAd")],
)
def test_a_line_that_went_again_beside_a_pending_deletion_is_in_no_baseline(
    project: Path,
    workspace: Workspace,
    session: str,
    other: str,
    start: str,
    deleted: str,
    inserted: str,
    gone: str,
) -> None:
    letters(project, start)
    turn(workspace, session, lambda: letters(project, deleted))
    before = shown(workspace, session)
    turn(workspace, other, lambda: letters(project, inserted))
    if gone == "undo":
        workspace.undo()
    elif gone == "discard":
        workspace.review.discard(session=other)
    elif gone == "by hand":
        letters(project, deleted)
    else:
        turn(workspace, other, lambda: letters(project, deleted))
    assert read(project) == deleted
    assert shown(workspace, session) == before
    workspace.review.discard(session=session)
    assert read(project) == start
    assert workspace.review.pending().files == ()


@pytest.mark.parametrize(
    ("start", "agent", "user", "again"),
    [
        (None, "AB", "ABuv", "ABuX"),
        (None, "AB", "uvAB", "XvAB"),
        (None, "AB", "AuvB", "AuXB"),
        (None, "AB", "ABuv", "ABXuv"),
        (None, "AB", "ABuv", "ABv"),
        (None, "AB", "ABuv", "Cuv"),
        ("abc", "aXYZc", "aXuvZc", "aXuWZc"),
        ("abc", "aXYZc", "aXuvZc", "auc"),
        ("abc", "aXYZc", "aXuvZc", "aXvYZc"),
    ],
)
def test_lines_of_the_user_in_a_hunk_stay_theirs_when_the_agent_touches_one_of_them(
    project: Path,
    workspace: Workspace,
    session: str,
    start: str | None,
    agent: str,
    user: str,
    again: str,
) -> None:
    if start is not None:
        letters(project, start)
    turn(workspace, session, lambda: letters(project, agent))
    letters(project, user)
    turn(workspace, session, lambda: letters(project, again))
    assert any(row.endswith("*") for row in shown(workspace, session))
    workspace.review.discard(everything=True)
    left = read(project) or ""
    assert {letter for letter in again if letter in "uv"} <= set(left)


def test_approving_one_session_leaves_the_other_pending_and_undo_returns(
    project: Path, workspace: Workspace, session: str, other: str
) -> None:
    letters(project, "abcdef")
    turn(workspace, session, lambda: letters(project, "aBcdef"))
    turn(workspace, other, lambda: letters(project, "aBcdEf"))
    workspace.review.approve(session)
    assert (shown(workspace, session), shown(workspace, other)) == ([], ["e>E"])
    letters(project, "aBUcdEf")
    workspace.undo()
    assert (shown(workspace, session), shown(workspace, other)) == (["b>B"], ["e>E"])
    workspace.review.discard(everything=True)
    assert read(project) == "abUcdef"


def test_a_rename_by_the_user_takes_the_work_of_both_along(
    project: Path, workspace: Workspace, session: str, other: str
) -> None:
    letters(project, "abcdef")
    turn(workspace, session, lambda: letters(project, "aBcdef"))
    turn(workspace, other, lambda: letters(project, "aBcdEf"))
    (project / "sub").mkdir()
    (project / "f").rename(project / "sub/g")
    assert (shown(workspace, session), shown(workspace, other)) == (["b>B"], ["e>E"])
    workspace.review.discard(session=session)
    assert read(project, "sub/g") == "abcdEf" and read(project) is None


def test_a_folder_renamed_by_the_user_takes_pending_work_along(
    project: Path, workspace: Workspace, session: str
) -> None:
    (project / "old").mkdir()
    for name in "xyz":
        letters(project, f"abc{name}", f"old/{name}")
    turn(workspace, session, lambda: letters(project, "aBcx", "old/x"))
    (project / "old").rename(project / "new")
    assert shown(workspace, session) == ["b>B"]
    workspace.review.discard(everything=True)
    assert read(project, "new/x") == "abcx"


def test_a_session_without_any_turn_has_nothing_pending_whatever_happens(
    project: Path, workspace: Workspace, session: str, other: str
) -> None:
    letters(project, "abc")
    turn(workspace, session, lambda: letters(project, "aBc"))
    letters(project, "aBcU")
    assert shown(workspace, other) == []
    workspace.review.approve(other)
    workspace.review.reset(other)
    assert shown(workspace, session) == ["b>B"]
    assert read(project) == "aBcU"


def test_modes_of_the_user_join_and_those_of_the_agent_wait(
    project: Path, workspace: Workspace, session: str
) -> None:
    letters(project, "abc")
    (project / "f").chmod(0o644)
    turn(workspace, session, lambda: letters(project, "aBc"))
    (project / "f").chmod(0o600)
    assert [hunk.kind for hunk in workspace.review.pending().hunks] == ["lines"]
    workspace.review.discard(everything=True)
    assert read(project) == "abc"
    assert (project / "f").stat().st_mode & 0o777 == 0o600


def git(project: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True)


@pytest.fixture
def repository(project: Path, workspace: Workspace) -> Path:
    git(project, "init", "-q")
    letters(project, "abcdefghij")
    letters(project, "xyz", "g")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    return project


def test_a_commit_counts_as_keeping_what_is_in_it(
    repository: Path, workspace: Workspace, session: str
) -> None:
    def act() -> None:
        letters(repository, "aBcdefghij")
        letters(repository, "new", "h")

    turn(workspace, session, act)
    git(repository, "add", "-A")
    assert shown(workspace, session) == ["b>B", ">new"], "what is only staged is not kept"
    git(repository, "commit", "-qm", "second")
    assert shown(workspace, session) == []
    assert workspace.review.turn_statuses(session)[0].status == "kept"
    assert not workspace.review.round_status(session).has_unapproved


def test_a_commit_of_one_file_or_hunk_keeps_that_and_nothing_else(
    repository: Path, workspace: Workspace, session: str
) -> None:
    def act() -> None:
        letters(repository, "aBcdefgHij")
        letters(repository, "xYz", "g")

    turn(workspace, session, act)
    git(repository, "commit", "-qm", "g alone", "g")
    assert shown(workspace, session) == ["b>B", "h>H"]
    letters(repository, "aBcdefghij")
    git(repository, "add", "f")
    letters(repository, "aBcdefgHij")
    git(repository, "commit", "-qm", "the first hunk")
    assert shown(workspace, session) == ["h>H"]
    workspace.review.discard(everything=True)
    assert read(repository) == "aBcdefghij"


def test_a_commit_of_a_deletion_keeps_it(
    repository: Path, workspace: Workspace, session: str
) -> None:
    turn(workspace, session, lambda: letters(repository, None, "g"))
    git(repository, "commit", "-qam", "gone")
    assert shown(workspace, session) == []


def test_a_commit_in_the_agents_own_turn_is_still_a_proposal(
    repository: Path, workspace: Workspace, session: str
) -> None:
    def act() -> None:
        letters(repository, "aBcdefghij")
        git(repository, "commit", "-qam", "by the agent")

    turn(workspace, session, act)
    assert shown(workspace, session) == ["b>B"]
    workspace.sessions.begin_turn(session, "go on")
    workspace.sessions.end_turn(session)
    assert shown(workspace, session) == ["b>B"]


def test_a_commit_of_the_users_does_not_keep_what_the_agent_committed_before_it(
    repository: Path, workspace: Workspace, session: str
) -> None:
    def act() -> None:
        letters(repository, "aBcdefghij")
        git(repository, "commit", "-qam", "by the agent")
        letters(repository, "xYz", "g")

    turn(workspace, session, act)
    git(repository, "commit", "-qam", "by the user")
    assert shown(workspace, session) == ["b>B"]
    git(repository, "reset", "-q", "--soft", "HEAD~2")
    git(repository, "commit", "-qm", "both, by the user")
    assert shown(workspace, session) == []


def test_undo_of_a_keep_by_commit_is_up_to_git_and_earlier_work_can_be_undone(
    repository: Path, workspace: Workspace, session: str
) -> None:
    turn(workspace, session, lambda: letters(repository, "aBcdefghij"))
    git(repository, "commit", "-qam", "kept")
    assert shown(workspace, session) == []
    workspace.undo()
    assert read(repository) == "abcdefghij", "the turn itself"
    workspace.redo()
    assert read(repository) == "aBcdefghij"


def test_a_checkout_of_another_branch_is_the_users_doing(
    repository: Path, workspace: Workspace, session: str
) -> None:
    git(repository, "branch", "other")
    turn(workspace, session, lambda: letters(repository, "aBcdefghij"))
    letters(repository, "xyzU", "g")
    git(repository, "commit", "-qm", "mine alone", "g")
    git(repository, "stash", "-q")
    git(repository, "checkout", "-q", "other")
    assert shown(workspace, session) == [], "the work is not on the disk"
    git(repository, "checkout", "-q", "-")
    git(repository, "stash", "pop", "-q")
    assert read(repository) == "aBcdefghij" and read(repository, "g") == "xyzU"


def test_commits_do_not_count_if_the_setting_says_so(repository: Path, session: str) -> None:
    (repository / ".mulligan.toml").write_text("[review]\nkeep_on_commit = false\n")
    with mulligan.open(repository) as workspace:
        turn(workspace, session, lambda: letters(repository, "aBcdefghij"))
        git(repository, "add", "-A")
        git(repository, "commit", "-qm", "second")
        assert shown(workspace, session) == ["b>B"]


def test_looking_at_a_commit_leaves_the_repository_alone(
    repository: Path, workspace: Workspace, session: str
) -> None:
    turn(workspace, session, lambda: letters(repository, "aBcdefghij"))
    git(repository, "commit", "-qam", "second")
    before = {
        path: path.stat().st_mtime_ns for path in (repository / ".git").rglob("*") if path.is_file()
    }
    workspace.review.pending()
    workspace.review.approve(session)
    after = {
        path: path.stat().st_mtime_ns for path in (repository / ".git").rglob("*") if path.is_file()
    }
    assert after == before
