"""AgentSmithy's debugging commands work in the git export: `main`, merges and `session_N`."""

from __future__ import annotations

from pathlib import Path

from acts import write

from git_command import git
from mulligan.workspace.workspace import Workspace


def turn(workspace: Workspace, session: str, message: str, files: dict[str, str | bytes]) -> None:
    workspace.sessions.begin_turn(session, message)
    write(Path(workspace.root), files)
    workspace.sessions.end_turn(session)


def subjects(repository: Path, *arguments: str) -> list[str]:
    return git(repository, "log", "--reverse", "--format=%s", *arguments).decode().splitlines()


def test_f_as_5_main_has_the_approvals_as_merges_and_each_round_is_a_branch(
    workspace: Workspace, tmp_path: Path
) -> None:
    session = workspace.sessions.create().id
    turn(workspace, session, "One", {"a": "1\n"})
    approved = workspace.review.approve(session, "Feature complete").approved_checkpoint
    turn(workspace, session, "Two", {"a": "2\n"})
    workspace.review.reset(session)
    turn(workspace, session, "Three", {"a": "3\n"})
    workspace.review.approve(session)
    workspace.review.approve(session)
    turn(workspace, session, "Four", {"a": "4\n"})
    repository = tmp_path / "r"
    done = workspace.sessions.export_git(session, str(repository))
    names = [f"session_{number}" for number in range(1, 6)]
    assert done.branches == ("main", *names) and done.branch == "session_5"
    assert git(repository, "symbolic-ref", "HEAD").decode().strip() == "refs/heads/session_5"
    shown = [git(repository, "show", f"{name}:a") for name in done.branches]
    assert shown == [b"3\n", b"1\n", b"2\n", b"3\n", b"3\n", b"4\n"]
    # What was approved, by whom it was merged, and what is left to approve.
    assert subjects(repository, "--merges", "main") == ["Feature complete", "Approve session_3"]
    first, second = git(repository, "rev-list", "--merges", "--parents", "main").split(b"\n")[:2]
    assert len(first.split()) == len(second.split()) == 3
    assert second.split()[2] == git(repository, "rev-parse", "session_1").strip()
    assert f"Mulligan-Checkpoint: {approved}".encode() in git(repository, "log", "session_1")
    for name in ("session_1", "session_3", "session_4"):
        assert subjects(repository, f"main..{name}") == []
    assert subjects(repository, "main..session_2")[0] == "Before user message: Two"
    assert subjects(repository, "main..session_5")[0] == "Before user message: Four"
    assert subjects(repository, "--first-parent", "main")[0] == "Session begins"
    assert git(repository, "diff", "main", "session_5").count(b"\n+4") == 1
    git(repository, "fsck", "--strict")


def test_f_as_5_a_later_export_adds_to_the_branches(workspace: Workspace, tmp_path: Path) -> None:
    session = workspace.sessions.create().id
    repository = tmp_path / "r"
    heads = []
    for number in range(3):
        turn(workspace, session, str(number), {"a": f"{number}\n"})
        assert (
            workspace.sessions.export_git(session, str(repository)).branch
            == f"session_{number + 1}"
        )
        workspace.review.approve(session)
        assert workspace.sessions.export_git(session, str(repository)).branches[0] == "main"
        heads.append(git(repository, "rev-parse", "main").strip())
    log = git(repository, "log", "--format=%H", "main").splitlines()
    assert heads[-1] == log[0] and set(heads) <= set(log) and len(set(heads)) == 3
    # Another session has names of its own there, and leaves the first one's as they are.
    other = workspace.sessions.create().id
    turn(workspace, other, "Other", {"b": "1\n"})
    done = workspace.sessions.export_git(other, str(repository))
    assert done.branches == (f"mulligan-{other[:8]}/main", f"mulligan-{other[:8]}/session_1")
    assert git(repository, "rev-parse", "main").strip() == heads[-1]
    assert git(repository, "symbolic-ref", "HEAD").strip() == b"refs/heads/session_4"


def test_f_as_5_a_repository_with_a_work_tree_keeps_its_head(
    workspace: Workspace, tmp_path: Path
) -> None:
    session = workspace.sessions.create().id
    turn(workspace, session, "One", {"a": "1\n"})
    git(tmp_path, "init", "--quiet", "-b", "main", "theirs")
    repository = tmp_path / "theirs"
    git(repository, "config", "mulligan.session", session)
    done = workspace.sessions.export_git(session, str(repository))
    assert done.branches[0] == f"mulligan-{session[:8]}/main"
    assert git(repository, "symbolic-ref", "HEAD").strip() == b"refs/heads/main"
