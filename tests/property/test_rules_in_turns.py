"""Whatever an agent writes into rule files in its turn, the undo of the turn is exact."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

import mulligan
from mulligan.workspace.trust import accept, rule_files

FILES = ("a", "b.txt", "c.log.txt", "d/a", "d/b.txt", "d/e/a", "d/e/f.txt", "x y", "-q")
PATTERNS = (
    "*", "*.txt", "a", "/a", "d/", "d/*", "e/", "**/a", "!a", "!d/", "!*", "b*", "x\\ y", "-q",
    "# a", "", "!d/e/", "/d/e/f.txt", "[", "\\",
)  # fmt: skip
IGNORE_FILES = tuple(
    folder + name for folder in ("", "d/", "d/e/") for name in (".gitignore", ".mulliganignore")
)
SETTINGS = (
    "[checkpoints]\nmax_file_size = 1\n", "[checkpoints]\nguard = false\n", "[checkpoints\n",
    "[checkpoints]\nmax_file_size = 'x'\n", "[checkpoints]\nmax_file_size = '1 GB'\n", "",
    "[review]\nkeep_on_commit = 3\n", "[agents]\nstrict = true\n", "[" * 3000,
)  # fmt: skip
rules = st.lists(st.sampled_from(PATTERNS), max_size=4).map(lambda lines: "\n".join(lines) + "\n")
ignore_files = st.tuples(st.sampled_from((*IGNORE_FILES, ".git/info/exclude")), rules)
one_rule_file = st.one_of(
    ignore_files,
    st.tuples(st.just(".mulligan.toml"), st.sampled_from(SETTINGS)),
    st.tuples(st.sampled_from((*IGNORE_FILES, ".mulligan.toml")), st.sampled_from((None, "link"))),
)
edits = st.tuples(st.sampled_from(FILES), st.sampled_from((None, "", "1\n", "two\nlines\n")))
steps = st.lists(
    st.one_of(one_rule_file, edits, st.sampled_from(("status", "observe", "pending", "reopen"))),
    max_size=12,
)


def write(path: Path, content: str | None) -> None:
    """Text; nothing; or a link that leads to no end of bytes."""
    with suppress(FileNotFoundError):
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if content == "link":
        path.symlink_to("/dev/zero")
    elif content is not None:
        path.write_text(content)


def contents(project: Path, names: set[str]) -> dict[str, bytes | None]:
    found = {}
    for name in names:
        path = project / name
        is_file = path.is_file() and not path.is_symlink()
        found[name] = path.read_bytes() if is_file else None
    return found


def covered(workspace: mulligan.Workspace, checkpoint: str) -> set[str]:
    found = workspace.entries(checkpoint)
    return {each.path for each in found if each.kind == "file" and not each.guarded}


@settings(max_examples=60, deadline=None)
@given(
    before=st.lists(one_rule_file, max_size=3),
    accepted=st.booleans(),
    turn=steps,
    between=steps,
    ended=st.booleans(),
    watch=st.booleans(),
)
def test_rule_file_edits_inside_a_turn_never_make_its_undo_inexact(
    before: list[tuple[str, str | None]],
    accepted: bool,
    turn: list[tuple[str, str | None] | str],
    between: list[tuple[str, str | None] | str],
    ended: bool,
    watch: bool,
) -> None:
    with TemporaryDirectory() as folder:
        project, home = Path(folder, "project"), str(Path(folder, "home"))
        project.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        for name in FILES:
            write(project / name, f"{name}\nbefore\n")
        for name, content in before:
            write(project / name, content)

        def reopened() -> mulligan.Workspace:
            return mulligan.open(project, home=home, watch=watch)

        workspace = reopened()
        if accepted:
            accept(workspace.project, rule_files(workspace.project))
        session = workspace.sessions.create(agent="one").id
        begun = workspace.sessions.begin_turn(session, "go").checkpoint
        names = covered(workspace, begun)
        expected = contents(project, names)
        for step in turn:
            if step == "reopen":
                workspace.close()
                workspace = reopened()
            elif isinstance(step, str):
                _look(workspace, step)
            else:
                write(project / step[0], step[1])
        if ended:
            workspace.sessions.end_turn(session)
        for step in between:
            # The rules go on changing; the user leaves the files alone.
            if isinstance(step, tuple) and step[0] not in FILES:
                if step[0] not in names:
                    write(project / step[0], step[1])
            elif isinstance(step, str) and step != "reopen":
                _look(workspace, step)
        if contents(project, names) != expected:
            workspace.undo()
        assert contents(project, names) == expected
        assert workspace.maintenance.verify().clean
        workspace.close()


def _look(workspace: mulligan.Workspace, how: str) -> None:
    looks: dict[str, Callable[[], object]] = {
        "status": workspace.status,
        "observe": workspace.sessions.observe,
        "pending": workspace.review.pending,
    }
    looks[how]()


def test_the_patterns_leave_files_out() -> None:
    """The test above would pass if nothing did."""
    with TemporaryDirectory() as folder:
        project = Path(folder, "project")
        project.mkdir()
        for name in FILES:
            write(project / name, "x")
        write(project / ".gitignore", "*.txt\nd/\n")
        with mulligan.open(project, home=os.path.join(folder, "home")) as workspace:
            assert covered(workspace, workspace.checkpoint().id) == {
                ".gitignore", "a", "x y", "-q",
            }  # fmt: skip
