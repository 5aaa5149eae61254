"""Git on hostile repositories: nothing that a repository names as a program ever runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import mulligan
from mulligan import Workspace
from mulligan.errors import MulliganError
from mulligan.workspace import git_program


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A program that leaves a file beside it if it ever runs."""
    path = tmp_path / "trap"
    path.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{tmp_path}/ran'\nexit 1\n")
    path.chmod(0o755)
    return path


def ran(trap: Path) -> str:
    found = trap.parent / "ran"
    return found.read_text() if found.exists() else ""


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


def hostile_config(trap: Path) -> str:
    """Everything by which a repository's configuration makes git run something."""
    return f"""
[core]
\trepositoryformatversion = 1
\tfsmonitor = {trap}
\thooksPath = {trap.parent}/hooks
\tsshCommand = {trap}
\taskPass = {trap}
\tpager = {trap}
\teditor = {trap}
\tgitProxy = {trap}
\talternateRefsCommand = {trap}
[extensions]
\tpartialClone = origin
[remote "origin"]
\turl = {trap.parent}
\tpromisor = true
\tuploadpack = {trap}
\tpartialclonefilter = blob:none
[remote "ext"]
\turl = ext::{trap}
\tpromisor = true
[protocol]
\tallow = always
[protocol "file"]
\tallow = always
[protocol "ext"]
\tallow = always
[filter "trap"]
\tclean = {trap}
\tsmudge = {trap}
\tprocess = {trap}
\trequired = true
[diff]
\texternal = {trap}
[diff "trap"]
\tcommand = {trap}
\ttextconv = {trap}
[merge "trap"]
\tdriver = {trap}
[pager]
\tdiff = {trap}
[alias]
\tdiff = !{trap}
\tls-tree = !{trap}
\tfast-import = !{trap}
[credential]
\thelper = {trap}
[gc]
\tauto = 1
"""


def poison(git_dir: Path, trap: Path) -> None:
    hooks = trap.parent / "hooks"
    hooks.mkdir(exist_ok=True)
    (git_dir / "hooks").mkdir(exist_ok=True)
    for name in ("reference-transaction", "post-index-change", "post-checkout", "pre-auto-gc"):
        for folder in (hooks, git_dir / "hooks"):
            (folder / name).write_bytes(trap.read_bytes())
            (folder / name).chmod(0o755)
    (git_dir / "config").write_text(hostile_config(trap))
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info/attributes").write_text("* filter=trap diff=trap merge=trap\n")


def lose(repository: Path, name: str) -> None:
    """Takes an object away, as a partial clone would not have fetched it yet."""
    id = git(repository, "rev-parse", name)
    (repository / ".git/objects" / id[:2] / id[2:]).unlink()


def pending_work(project: Path, workspace: Workspace) -> str:
    """A repository with a commit, and an agent's change of a file that nobody has committed."""
    git(project, "init", "-q")
    (project / "f").write_text("a\nb\nc\nd\ne\nf\ng\nh\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    session = workspace.sessions.create(agent="one").id
    workspace.sessions.begin_turn(session, "go")
    (project / "f").write_text("A\nb\nc\nd\ne\nf\ng\nH\n")
    workspace.sessions.end_turn(session)
    return session


@pytest.mark.parametrize("lost", [None, "HEAD:f", "HEAD~1"])
def test_a_commit_in_a_hostile_repository_runs_nothing(
    project: Path, trap: Path, lost: str | None
) -> None:
    with mulligan.open(project) as workspace:
        session = pending_work(project, workspace)
        (project / "f").write_text("A\nb\nc\nd\ne\nf\ng\nh\n")
        git(project, "commit", "-qam", "the first hunk")
        (project / "f").write_text("A\nb\nc\nd\ne\nf\ng\nH\n")
        if lost:
            lose(project, lost)
        (project / ".gitattributes").write_text("* filter=trap diff=trap merge=trap\n")
        poison(project / ".git", trap)

        left = [hunk.new_lines for hunk in workspace.review.pending(session=session).hunks]

        assert ran(trap) == ""
        assert left == ([("H\n",)] if lost != "HEAD:f" else [("A\n",), ("H\n",)])
        assert workspace.maintenance.verify().problems == ()


def test_a_bare_repository_among_the_files_is_not_taken_for_the_repository(
    project: Path, trap: Path
) -> None:
    """Such files can come with any clone: a folder with HEAD, objects, refs and a config."""
    inner = project / "inner"
    git(project, "init", "-q", "--bare", str(inner))
    (inner / "refs/heads/main").write_text("1" * 40 + "\n")
    poison(inner, trap)
    git(project, "init", "-q")
    (inner / "f").write_text("one\n")
    git(project, "add", "-A", "-f")
    git(project, "commit", "-qm", "first")
    with mulligan.open(inner) as workspace:
        session = workspace.sessions.create(agent="one").id
        workspace.sessions.begin_turn(session, "go")
        (inner / "f").write_text("two\n")
        workspace.sessions.end_turn(session)
        assert workspace.root == str(project)

    home = os.environ["MULLIGAN_HOME"] + "-2"
    (inner / ".mulligan.toml").touch()
    with mulligan.open(inner, home=home) as workspace:
        assert workspace.root == str(inner)
        session = workspace.sessions.create(agent="one").id
        workspace.sessions.begin_turn(session, "go")
        (inner / "f").write_text("three\n")
        workspace.sessions.end_turn(session)
        assert workspace.review.pending(session=session).hunks
        git(project, "add", "-A", "-f")
        git(project, "commit", "-qm", "second")
        assert not workspace.review.pending(session=session).hunks, "the outer repository has it"
    assert ran(trap) == ""


def test_an_export_to_a_hostile_repository_runs_nothing(
    project: Path, tmp_path: Path, trap: Path
) -> None:
    theirs = tmp_path / "theirs"
    git(tmp_path, "init", "-q", "--bare", str(theirs))
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create(agent="one").id
        for content in ("one\n", "two\n"):
            workspace.sessions.begin_turn(session, "go")
            (project / "f").write_text(content)
            workspace.sessions.end_turn(session)
        poison(theirs, trap)

        done = workspace.sessions.export_git(session, str(theirs), "work")

        assert ran(trap) == ""
        (theirs / "config").write_text("[core]\n\tbare = true\n")
        assert git(theirs, "show", f"{done.head}:f") == "two"

        # A branch whose commit is missing: to look it up, git would fetch it.
        (theirs / "refs/heads/other").write_text("1" * 40 + "\n")
        poison(theirs, trap)
        with pytest.raises(MulliganError):
            workspace.sessions.export_git(session, str(theirs), "other")
        assert ran(trap) == ""


@pytest.mark.parametrize("url", ["{folder}", "file://{folder}", "ext::{trap}", "ssh://a/b", "x::y"])
def test_what_a_partial_clone_misses_is_never_fetched(
    url: str, tmp_path: Path, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By forbidding every transport: git before 2.44 does not know GIT_NO_LAZY_FETCH."""
    git(tmp_path, "init", "-q", "r")
    repository = tmp_path / "r"
    poison(repository / ".git", trap)
    for name in ("git-remote-x", "ssh"):
        (tmp_path / name).write_bytes(trap.read_bytes())
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    config = hostile_config(trap)
    given = url.format(folder=tmp_path, trap=trap)
    (repository / ".git/config").write_text(
        config.replace(f"\turl = {tmp_path}\n", f"\turl = {given}\n")
    )

    missing = ["cat-file", "-p", "1" * 40]

    done = git_program.run(str(repository / ".git"), missing)

    assert done.returncode != 0
    assert ran(trap) == ""
    subprocess.run(["git", *missing], cwd=repository, check=False, capture_output=True)
    assert ran(trap) != "", "the trap is none"


def test_the_callers_variables_and_a_program_in_the_project_lead_git_nowhere(
    project: Path, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = trap.parent / "other"
    git(trap.parent, "init", "-q", "other")
    with mulligan.open(project) as workspace:
        session = pending_work(project, workspace)
        git(project, "commit", "-qam", "second")
        (project / "git").write_bytes(trap.read_bytes())
        (project / "git").chmod(0o755)
        for name, value in {
            "GIT_DIR": f"{other}/.git",
            "GIT_WORK_TREE": str(other),
            "GIT_INDEX_FILE": f"{other}/index",
            "GIT_EXTERNAL_DIFF": str(trap),
            "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor'='{trap}'",
            "PATH": f".:{os.pathsep}{os.environ['PATH']}",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(project)
        assert not workspace.review.pending(session=session).hunks
    assert ran(trap) == ""


def crlf(project: Path) -> None:
    git(project, "config", "core.autocrlf", "true")


def attributes(project: Path) -> None:
    (project / ".git/info/attributes").write_text("* text eol=crlf\n")


def split_index(project: Path) -> None:
    git(project, "update-index", "--split-index")


@pytest.mark.parametrize("prepare", [crlf, attributes, split_index])
def test_what_git_is_told_about_files_still_counts(
    prepare: Callable[[Path], None], project: Path
) -> None:
    """A commit is recognised through the ends of lines, and in an index that is split."""
    end = "\n" if prepare is split_index else "\r\n"
    git(project, "init", "-q")
    prepare(project)
    with mulligan.open(project) as workspace:
        (project / "f").write_bytes(end.join("abcdefgh").encode() + end.encode())
        git(project, "add", "-A")
        git(project, "commit", "-qm", "first")
        session = workspace.sessions.create(agent="one").id
        workspace.sessions.begin_turn(session, "go")
        (project / "f").write_bytes(end.join("Abcdefgh").encode() + end.encode())
        workspace.sessions.end_turn(session)
        git(project, "commit", "-qam", "second")
        (project / "f").write_bytes(end.join("AbcdefgH").encode() + end.encode())
        os.utime(project / "f")
        assert not workspace.review.pending(session=session).hunks


def test_a_linked_work_tree_and_a_folder_in_it_are_read(project: Path, tmp_path: Path) -> None:
    git(project, "init", "-q")
    (project / "sub").mkdir()
    (project / "sub/f").write_text("one\n")
    (project / "f").write_text("one\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    linked = tmp_path / "linked"
    git(project, "worktree", "add", "-q", str(linked))
    (linked / "sub/.mulligan.toml").touch()
    with mulligan.open(linked / "sub") as workspace:
        session = workspace.sessions.create(agent="one").id
        workspace.sessions.begin_turn(session, "go")
        (linked / "sub/f").write_text("two\n")
        (linked / "sub/g").write_text("new\n")
        workspace.sessions.end_turn(session)
        git(linked, "commit", "-qam", "second")
        assert [hunk.path for hunk in workspace.review.pending(session=session).hunks] == ["g"]


def test_no_other_module_starts_git() -> None:
    source = Path(git_program.__file__).parents[1]
    callers = [
        path.name
        for path in source.rglob("*.py")
        if "subprocess" in (text := path.read_text()) and ('"git"' in text or "b'git'" in text)
    ]
    assert callers == ["git_program.py"]
