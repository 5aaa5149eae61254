"""A project's rule files weaken nothing unless accepted, and break nothing if broken."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import mulligan
from mulligan.errors import NotFound
from mulligan.workspace.excludes import excludes, write_excludes
from mulligan.workspace.settings.settings import (
    PROTECTS,
    SECTIONS,
    Settings,
    change_settings,
    read_settings,
)
from mulligan.workspace.trust import accept, revoke, rule_files

BEFORE = {"a.txt": "a\n", "b.txt": "b\n", "d/e": "e\n", "d/f/g": "g\n", "notes.md": "n\n"}
TOML, IGNORE = ".mulligan.toml", ".mulliganignore"


def write(project: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def covered(project: Path) -> dict[str, str]:
    return {name: (project / name).read_text() for name in BEFORE if (project / name).exists()}


def work(project: Path) -> None:
    """Change files as an agent does."""
    write(project, {"a.txt": "changed\n", "d/e": "changed too\n", "d/f/g": ""})
    (project / "b.txt").unlink()


def paths(workspace: mulligan.Workspace) -> set[str]:
    return {
        each.path for each in workspace.entries("@") if not each.guarded and each.kind == "file"
    }


RULES: dict[str, Mapping[str, str]] = {
    "a limit of one byte": {TOML: "[checkpoints]\nmax_file_size = 1\n"},
    "no guards": {TOML: "[checkpoints]\nguard = false\n"},
    "a setting that is broken": {TOML: "[checkpoints\n"},
    "our own ignore file": {IGNORE: "*\n"},
    "our own ignore file, nested": {"d/" + IGNORE: "*\n"},
    "a folder": {IGNORE: "d/\n"},
    "git's ignore file": {".gitignore": "*\n"},
    "git's ignore file with a folder": {".gitignore": "d/\n"},
    "git's ignore file, nested": {"d/.gitignore": "*\n", "d/f/.gitignore": "*\n"},
    "git's exclude file": {".git/info/exclude": "*\n"},
    "all of them": {TOML: "[checkpoints]\nmax_file_size = 1\n", IGNORE: "*\n", ".gitignore": "*\n"},
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("way", ["undo", "restore", "reset", "discard", "open"])
def test_what_an_agent_writes_into_rule_files_does_not_weaken_the_undo_of_its_turn(
    rules: Mapping[str, str], way: str, project: Path
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    write(project, BEFORE)
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create(agent="one").id
        turn = workspace.sessions.begin_turn(session, "go")
        write(project, rules)
        work(project)
        if way != "open":
            step = workspace.sessions.end_turn(session)
            assert {*step.modified, *step.deleted} >= {"a.txt", "b.txt", "d/e", "d/f/g"}
            workspace.status()
            workspace.review.pending(session=session)
        after = covered(project)
        take_back: dict[str, Callable[[], object]] = {
            "undo": workspace.undo,
            "open": workspace.undo,
            "restore": lambda: workspace.restore(turn.checkpoint),
            "reset": lambda: workspace.review.reset(session),
            "discard": lambda: workspace.review.discard(session=session),
        }
        take_back[way]()
        assert covered(project) == BEFORE
        assert not any((project / each).exists() for each in rules if not each.startswith(".git/"))
        workspace.undo() if way == "restore" else workspace.redo() if way == "undo" else None
        if way in ("restore", "undo"):
            assert covered(project) == after
        assert workspace.maintenance.verify().clean


def test_rules_that_come_after_a_turn_do_not_weaken_its_undo_either(project: Path) -> None:
    write(project, BEFORE)
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create(agent="one").id
        workspace.sessions.begin_turn(session, "go")
        work(project)
        write(project, {"new.txt": "new\n"})
        workspace.sessions.end_turn(session)
        workspace.review.approve(session)
        write(project, {IGNORE: "*\n"})
        accept(workspace.project, rule_files(workspace.project))
        assert not {"a.txt", "new.txt"} & paths_now(workspace)
        workspace.undo()
        done = workspace.undo() if covered(project) != BEFORE else None
        assert covered(project) == BEFORE, done
        assert not (project / "new.txt").exists()
        assert workspace.maintenance.verify().clean


def paths_now(workspace: mulligan.Workspace) -> set[str]:
    workspace.checkpoint()
    return paths(workspace)


def test_a_turn_keeps_the_size_limit_that_it_began_with(project: Path) -> None:
    write(project, {"large": "l" * 3000, TOML: "[checkpoints]\nmax_file_size = 5000\n"})
    with mulligan.open(project) as workspace:
        change_settings(
            workspace.project.location.directory, {"checkpoints": {"max_file_size": 1000}}
        )
        session = workspace.sessions.create(agent="one").id
        workspace.sessions.begin_turn(session, "go")
        (project / TOML).unlink()
        (project / "large").write_text("m" * 4000)
        assert workspace.sessions.end_turn(session).modified == ("large",)
        workspace.undo()
        assert (project / "large").read_text() == "l" * 3000
        assert (project / TOML).exists()


def test_a_move_keeps_what_a_lower_limit_leaves_out(project: Path) -> None:
    write(project, {"large": "l" * 3000})
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        (project / "large").write_text("m" * 4000)
        change_settings(
            workspace.project.location.directory, {"checkpoints": {"max_file_size": 1000}}
        )
        done = workspace.restore(first.id)
        assert (done.restored, done.skipped) == (("large",), ())
        assert (project / "large").read_text() == "l" * 3000
        assert done.safety_checkpoint is not None
        assert workspace.read(done.safety_checkpoint, "large") == b"m" * 4000
        workspace.undo()
        assert (project / "large").read_text() == "m" * 4000
        assert workspace.maintenance.verify().clean


def test_new_files_follow_gits_rules_and_files_that_were_covered_stay(project: Path) -> None:
    write(project, BEFORE)
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create(agent="one").id
        workspace.sessions.begin_turn(session, "go")
        write(project, {".gitignore": "*.txt\n", "new.txt": "new\n", "new.md": "new\n"})
        work(project)
        step = workspace.sessions.end_turn(session)
    assert set(step.added) == {".gitignore", "new.md"}
    assert set(step.modified) >= {"a.txt"}


# What counts of a file that the user has not accepted


LESS: dict[str, int | bool] = {
    "max_file_size": 5, "guard": False, "guard_file_size": 5, "guard_total_size": 5,
    "keep_on_commit": True, "tell_rejections": True, "strict": True, "keep_last": 5,
    "keep_days": 5, "keep_size": 5,
}  # fmt: skip
MORE: dict[str, int | bool] = {
    "max_file_size": 20, "guard": True, "guard_file_size": 20, "guard_total_size": 20,
    "keep_on_commit": False, "keep_last": 20, "keep_days": 20, "keep_size": 20,
}  # fmt: skip
OWN: dict[str, int | bool] = dict.fromkeys(LESS, 10) | {
    "guard": True, "keep_on_commit": False, "tell_rejections": False, "strict": False,
}  # fmt: skip


def said(name: str, value: int | bool) -> str:
    section = next(section for section, names in SECTIONS.items() if name in names)
    return f"[{section}]\n{name} = {str(value).lower()}\n"


def set_to(name: str, home: Path, project: Path) -> int | bool:
    return read_settings(str(home), str(project).encode(), str(home)).as_json()[name]


def test_every_setting_has_a_direction() -> None:
    assert PROTECTS.keys() == LESS.keys() == Settings().as_json().keys()


@pytest.mark.parametrize("name", LESS)
def test_a_project_can_ask_for_more_protection_and_not_for_less(
    name: str, project: Path, mulligan_home: Path
) -> None:
    mulligan_home.mkdir()
    (mulligan_home / "config.toml").write_text(said(name, OWN[name]))
    (project / TOML).write_text(said(name, LESS[name]))
    assert set_to(name, mulligan_home, project) == OWN[name]
    if name in MORE:
        (mulligan_home / "config.toml").write_text(said(name, not MORE[name]) if MORE[name] in (
            True, False) else said(name, OWN[name]))  # fmt: skip
        (project / TOML).write_text(said(name, MORE[name]))
        assert set_to(name, mulligan_home, project) == MORE[name]


def test_no_rule_by_which_to_forget_is_more_protection_than_any(
    project: Path, mulligan_home: Path
) -> None:
    mulligan_home.mkdir()
    (mulligan_home / "config.toml").write_text(said("keep_last", 10))
    (project / TOML).write_text(said("keep_last", 0))
    assert set_to("keep_last", mulligan_home, project) == 0
    (mulligan_home / "config.toml").unlink()
    (project / TOML).write_text(said("keep_last", 1000))
    assert set_to("keep_last", mulligan_home, project) == 0


def test_an_ignore_file_brings_files_in_without_being_accepted(project: Path) -> None:
    write(project, {"dist/x": "x", "secret": "s", IGNORE: "secret\n!dist/\n*\n"})
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
        assert paths(workspace) == {IGNORE, "dist/x", "secret"}
        (passed_over,) = taken.coverage.passed_over
        assert (passed_over.path, passed_over.broken) == (IGNORE.encode(), False)


@pytest.mark.parametrize("watch", [False, True])
def test_accepted_is_a_content_and_another_one_asks_anew(project: Path, watch: bool) -> None:
    write(project, {"a": "a", "data": "d", "d/data": "d", IGNORE: "data\n", "d/x": "x"})
    (project / TOML).write_text("[checkpoints]\nmax_file_size = 1000\n")
    with mulligan.open(project, watch=watch) as workspace:
        everything = paths_now(workspace)
        shown = rule_files(workspace.project)
        assert [(each.path, each.weakens) for each in shown] == [
            (TOML, ("max_file_size",)), (IGNORE, ("data",)),
        ]  # fmt: skip
        assert accept(workspace.project, shown) == (TOML, IGNORE)
        assert paths_now(workspace) == everything - {"data", "d/data"}
        assert workspace.find("@").coverage.passed_over == ()
        assert workspace.project.limits.file_bytes == 1000
        (project / IGNORE).write_text("data\na\n")
        assert paths_now(workspace) == everything
        (project / IGNORE).write_text("data\n")
        assert paths_now(workspace) == everything - {"data", "d/data"}
        revoke(workspace.project)
        assert paths_now(workspace) == everything
        assert workspace.project.limits.file_bytes > 1000
        assert workspace.maintenance.verify().clean


def test_what_changed_after_it_was_shown_is_not_accepted(project: Path) -> None:
    (project / IGNORE).write_text("data\n")
    with mulligan.open(project) as workspace:
        shown = rule_files(workspace.project)
        (project / IGNORE).write_text("*\n")
        assert accept(workspace.project, shown) == ()
        assert not any(each.accepted for each in rule_files(workspace.project))


def test_acceptance_is_of_one_path(project: Path) -> None:
    write(project, {IGNORE: "data\n", "d/" + IGNORE: "data\n", "d/data": "d"})
    with mulligan.open(project) as workspace:
        accept(workspace.project, rule_files(workspace.project, [IGNORE.encode()]))
        found = {each.path: each.accepted for each in rule_files(workspace.project)}
        assert found == {IGNORE: True, "d/" + IGNORE: False}
        with pytest.raises(NotFound):
            rule_files(workspace.project, [b"nothing"])


def test_what_the_user_has_mulligan_write_is_accepted_at_once(project: Path) -> None:
    write(project, {"a": "a", "data": "d"})
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        write_excludes(workspace.project, "data\n", None)
        assert paths_now(workspace) == {IGNORE, "a"}
        write_excludes(workspace.project, "data\na\n", excludes(workspace.project).version)
        assert paths_now(workspace) == {IGNORE}
        (project / IGNORE).write_text("data\n")
        assert paths_now(workspace) == {IGNORE, "a"}


def test_a_line_added_through_mulligan_does_not_accept_the_lines_of_others(project: Path) -> None:
    write(project, {"a": "a", "dist/x": "x", IGNORE: "*\n"})
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        write_excludes(workspace.project, "*\n!dist/\n", excludes(workspace.project).version)
        assert paths_now(workspace) == {IGNORE, "a", "dist/x"}
        write_excludes(workspace.project, "a\n", excludes(workspace.project).version)
        assert paths_now(workspace) == {IGNORE}


def test_a_restore_knows_what_was_passed_over_when_the_checkpoint_was_taken(project: Path) -> None:
    write(project, {"a": "a", IGNORE: "new\n"})
    with mulligan.open(project) as workspace:
        not_accepted = workspace.checkpoint()
        write(project, {"new": "1"})
        workspace.restore(not_accepted.id)
        assert not (project / "new").exists()
        accept(workspace.project, rule_files(workspace.project))
        accepted = workspace.checkpoint()
        write(project, {"new": "2"})
        revoke(workspace.project)
        done = workspace.restore(accepted.id)
        assert [each.path for each in done.skipped] == ["new"]
        assert (project / "new").read_text() == "2"


# Files that are broken


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100 << 20)


def unlike_text(path: Path) -> None:
    path.write_bytes(b"a = '\xff'")


def nested(path: Path) -> None:
    path.write_text("a = " + "[" * 20_000)


def wrong(path: Path) -> None:
    path.write_text("[checkpoints]\nmax_file_size = 'big'\n")


def dotted(path: Path) -> None:
    path.write_text(".".join("a" * 30_000) + " = 1\n")


def digits(path: Path) -> None:
    path.write_text("a = " + "1" * 5000)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("name", [TOML, IGNORE])
@pytest.mark.parametrize(
    "make",
    [fifo, link, large, folder, unlike_text, nested, wrong, digits, dotted],
    ids=lambda m: m.__name__,
)
def test_a_broken_rule_file_is_reported_and_passed_over(
    name: str, make: Callable[[Path], None], project: Path
) -> None:
    if name == IGNORE and make in (unlike_text, nested, wrong, digits, dotted):
        pytest.skip("any text is an ignore file")
    write(project, BEFORE)
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create(agent="one").id
        workspace.sessions.begin_turn(session, "go")
        make(project / name)
        work(project)
        workspace.sessions.end_turn(session)
        assert workspace.settings == Settings()
        (passed_over,) = workspace.status().coverage.passed_over
        assert (passed_over.path, passed_over.broken) == (name.encode(), True)
        (finding,) = [each for each in workspace.maintenance.doctor() if each.subject == "rules"]
        assert finding.level == "problem" and name in finding.message
    with mulligan.open(project) as workspace:
        workspace.undo()
        assert covered(project) == BEFORE
        assert workspace.maintenance.verify().clean


@pytest.mark.parametrize("way", ["undo", "restore"])
@pytest.mark.parametrize("name", [TOML, "a.txt"])
def test_a_pipe_in_the_place_of_a_file_is_left_and_the_rest_comes_back_unverified(
    name: str, way: str, project: Path
) -> None:
    write(project, BEFORE | {TOML: "[checkpoints]\nmax_file_size = '200 MB'\n"})
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create(agent="one").id
        turn = workspace.sessions.begin_turn(session, "go")
        (project / name).unlink()
        os.mkfifo(project / name)
        write(project, {"d/e": "changed\n"})
        workspace.sessions.end_turn(session)
        done = workspace.undo() if way == "undo" else workspace.restore(turn.checkpoint)
        assert (project / "d/e").read_text() == BEFORE["d/e"]
        assert [each.path for each in done.skipped] == [name] and not done.verified
        again = workspace.restore(turn.checkpoint)
        assert again.operation is None and not again.verified
        (project / name).unlink()
        assert workspace.restore(turn.checkpoint).verified
        assert covered(project) == BEFORE


def test_dots_in_comments_and_in_values_are_fine(project: Path, mulligan_home: Path) -> None:
    (project / TOML).write_text(f"  # {'.' * 500}\n[review]\nkeep_on_commit = false # ...\n")
    assert not read_settings(str(mulligan_home), str(project).encode()).keep_on_commit


def test_ignore_files_that_hide_what_git_tracks_go_with_the_turn_that_wrote_them(
    project: Path,
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    write(project, BEFORE)
    subprocess.run(["git", "add", "."], cwd=project, check=True)
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create(agent="one").id
        workspace.sessions.begin_turn(session, "go")
        written = {"d/.gitignore": "*\n", "d/f/.gitignore": "*\n"}
        write(project, written)
        work(project)
        workspace.sessions.end_turn(session)
        workspace.undo()
        assert covered(project) == BEFORE
        assert not any((project / each).exists() for each in written)


def test_a_restore_deletes_nothing_that_only_a_broken_ignore_file_asked_for(project: Path) -> None:
    write(project, {"a": "a", IGNORE: "!dist/\n" + "#" * (2 << 20)})
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
        write(project, {IGNORE: "!dist/\n", "dist/new": "1"})
        assert "dist/new" in paths_now(workspace)
        done = workspace.restore(taken.id)
        assert [each.path for each in done.skipped] == ["dist/new"]
        assert (project / "dist/new").read_text() == "1"
