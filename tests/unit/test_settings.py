"""Settings: what can be said, which file wins, and how a mistake is answered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mulligan
from mulligan.errors import UsageError
from mulligan.workspace.settings.settings import (
    MAX_FILE_BYTES,
    SECTIONS,
    Retention,
    change_settings,
    origins,
    parse_size,
    read_settings,
)
from mulligan.worktree.scan.classify import Limits

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (17, 17),
        ("17", 17),
        ("17 B", 17),
        ("0", 0),
        ("100 MB", 100 * MB),
        ("100MB", 100 * MB),
        (" 100  mb ", 100 * MB),
        ("1.5 MB", 3 * MB // 2),
        ("10k", 10 * KB),
        ("10 KB", 10 * KB),
        ("2G", 2 * GB),
        ("1 TB", 1024 * GB),
    ],
)
def test_sizes_are_read(value: object, expected: int) -> None:
    assert parse_size(value, "here") == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        "MB",
        "-1",
        -1,
        "-5 MB",
        "5 XB",
        "5 MBMB",
        "many",
        True,
        1.5,
        None,
        [],
        "0x10",
        "nan",
        "inf",
        "1e400 MB",
        "-inf",
    ],
)
def test_what_is_no_size_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(UsageError, match=r"here: .* is not a size"):
        parse_size(value, "here")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def limits(home: Path, project: Path) -> Limits:
    return read_settings(str(home), str(project).encode()).limits


def test_without_files_the_defaults_hold(project: Path, mulligan_home: Path) -> None:
    assert limits(mulligan_home, project) == Limits()
    assert Limits() == Limits(100 * MB, True, 5 * MB, 200 * MB)


def test_every_setting_is_taken(project: Path, mulligan_home: Path) -> None:
    write(
        mulligan_home / "config.toml",
        "[checkpoints]\nmax_file_size = '1 MB'\nguard = false\n"
        "guard_file_size = '2 KB'\nguard_total_size = 3\n",
    )
    assert limits(mulligan_home, project) == Limits(MB, False, 2 * KB, 3)


def test_the_project_wins_over_the_home_one_setting_at_a_time(
    project: Path, mulligan_home: Path
) -> None:
    write(mulligan_home / "config.toml", "[checkpoints]\nmax_file_size = 1\nguard_file_size = 2\n")
    write(project / ".mulligan.toml", "[checkpoints]\nmax_file_size = 3\n")
    assert limits(mulligan_home, project) == Limits(file_bytes=3, guard_bytes=2)


def test_other_tables_and_empty_files_are_fine(project: Path, mulligan_home: Path) -> None:
    write(mulligan_home / "config.toml", "[models]\nname = 'x'\n")
    write(project / ".mulligan.toml", "")
    assert limits(mulligan_home, project) == Limits()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[checkpoints", "not valid TOML"),
        ("[checkpoints]\nmax_file_sise = 1", "no setting checkpoints.max_file_sise"),
        ("[checkpoints]\nmax_file_size = 'big'", "is not a size"),
        ("[checkpoints]\nguard = 'yes'", "must be true or false"),
        ("checkpoints = 3", "must be a table"),
        ("a = " + "1" * 5000, "not valid TOML"),
        ("a = " + "[" * 5000, "nested too deeply"),
        ("a = " + "{b = " * 5000, "nested too deeply"),
        ("# " + "x" * MAX_FILE_BYTES, "is larger than 256 KiB"),
    ],
    ids=lambda value: value[:30],
)
def test_a_mistake_is_named_with_its_file(
    project: Path, mulligan_home: Path, text: str, words: str
) -> None:
    path = mulligan_home / "config.toml"
    write(path, text)
    with pytest.raises(UsageError, match=words) as caught:
        limits(mulligan_home, project)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"a = '\xff'", b"a = " + b"[" * 20_000])
def test_a_file_of_the_users_that_cannot_be_parsed_is_named(
    content: bytes, project: Path, mulligan_home: Path
) -> None:
    mulligan_home.mkdir()
    (mulligan_home / "config.toml").write_bytes(content)
    with pytest.raises(UsageError, match=r"config\.toml is not valid TOML"):
        limits(mulligan_home, project)


def test_the_command_line_answers_a_mistake_with_usage(project: Path, mulligan_home: Path) -> None:
    write(mulligan_home / "config.toml", "[checkpoints]\nmax_file_size = 'big'")
    run = subprocess.run(
        [sys.executable, "-m", "mulligan", "checkpoint"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert "config.toml" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_larger_file_is_named_not_kept_and_never_touched(
    project: Path, mulligan_home: Path
) -> None:
    write(mulligan_home / "config.toml", "[checkpoints]\nmax_file_size = '1 KB'\n")
    (project / "small").write_bytes(b"x" * 1024)
    (project / "large").write_bytes(b"x" * 1025)
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
        assert [each.path for each in taken.coverage.skipped] == [b"large"]
        assert not taken.coverage.complete
        (project / "small").write_bytes(b"y")
        (project / "large").write_bytes(b"y" * 2000)
        (project / "large too").write_bytes(b"y" * 2000)
        workspace.restore(taken.id)
        assert workspace.maintenance.verify().clean
    assert (project / "small").read_bytes() == b"x" * 1024
    assert (project / "large").read_bytes() == b"y" * 2000
    assert (project / "large too").read_bytes() == b"y" * 2000


def test_a_raised_limit_covers_the_file_at_the_next_checkpoint(
    project: Path, mulligan_home: Path
) -> None:
    write(mulligan_home / "config.toml", "[checkpoints]\nmax_file_size = '1 KB'\n")
    (project / "large").write_bytes(b"x" * 1025)
    with mulligan.open(project) as workspace:
        assert not workspace.checkpoint().coverage.complete
    write(project / ".mulligan.toml", "[checkpoints]\nmax_file_size = '2 KB'\n")
    with mulligan.open(project) as workspace:
        assert workspace.checkpoint().coverage.complete
        assert workspace.read("@", "large") == b"x" * 1025


def test_guards_can_be_switched_off(project: Path, mulligan_home: Path) -> None:
    (project / ".git").mkdir()
    write(project / ".gitignore", ".env\n")
    write(project / ".env", "SECRET=1")
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        assert workspace.read("@", ".env") == b"SECRET=1"
    write(mulligan_home / "config.toml", "[checkpoints]\nguard = false\n")
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
        assert ".env" not in [each.path for each in workspace.entries(taken.id)]


def test_where_each_setting_comes_from_is_known(project: Path, mulligan_home: Path) -> None:
    directory = mulligan_home / "data"
    write(mulligan_home / "config.toml", "[retention]\nkeep_last = 10\nkeep_days = 30\n")
    write(
        directory / "settings.toml", "[retention]\nkeep_days = 60\n[checkpoints]\nguard = false\n"
    )
    write(project / ".mulligan.toml", "[checkpoints]\nguard = true\n")
    places = (str(mulligan_home), str(project).encode(), str(directory))
    assert origins(*places) == {"keep_last": "home", "keep_days": "set", "guard": "project"}
    found = read_settings(*places)
    assert found.retention == Retention(keep_last=10, keep_days=60)
    assert found.limits.guard is True


def test_what_was_set_can_be_taken_back(project: Path, mulligan_home: Path) -> None:
    places = (str(mulligan_home), str(project).encode(), str(mulligan_home))
    mulligan_home.mkdir(exist_ok=True)
    change_settings(str(mulligan_home), {"retention": {"keep_last": 5, "keep_size": "2 GB"}})
    assert read_settings(*places).retention == Retention(keep_last=5, keep_size=2 * GB)
    change_settings(str(mulligan_home), {"retention": {"keep_last": None}})
    assert read_settings(*places).retention == Retention(keep_size=2 * GB)
    for value in (-1, "many", True, 1.5):
        with pytest.raises(UsageError, match="whole number"):
            change_settings(str(mulligan_home), {"retention": {"keep_days": value}})
    assert read_settings(*places).retention == Retention(keep_size=2 * GB)


def test_every_setting_is_in_the_json(project: Path, mulligan_home: Path) -> None:
    known = {name for inside in SECTIONS.values() for name in inside}
    assert set(read_settings(str(mulligan_home), str(project).encode()).as_json()) == known


def test_what_is_written_while_a_project_is_open_counts_at_once(
    project: Path, mulligan_home: Path
) -> None:
    with mulligan.open(project) as workspace:
        assert workspace.settings.keep_on_commit
        (project / ".mulligan.toml").write_text("[review]\nkeep_on_commit = false\n")
        assert not workspace.settings.keep_on_commit
        (project / ".mulligan.toml").write_text("[review]\nkeep_on_commit = 7\n")
        assert workspace.settings.keep_on_commit
        (passed_over,) = workspace.checkpoint().coverage.passed_over
        assert passed_over.broken and "keep_on_commit must be true or false" in passed_over.reason
        (project / ".mulligan.toml").unlink()
        assert workspace.settings.keep_on_commit
        assert workspace.checkpoint().coverage.passed_over == ()
