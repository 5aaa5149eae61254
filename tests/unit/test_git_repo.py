"""Reading git's files: each answer is compared with what git itself says."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mulligan.worktree.ignore import git_config
from mulligan.worktree.ignore.git_repo import GitSources, git_sources, repository_of, tracked_paths

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
NOTHING = GitSources((), b"", None, None, None, b"")


def git(folder: Path | bytes, *arguments: str) -> bytes:
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout


def listed(folder: Path) -> set[bytes]:
    return set(git(folder, "ls-files", "-z").split(b"\0")) - {b""}


def sources(root: Path, **environ: str) -> GitSources:
    return git_sources(os.fsencode(root), {"GIT_CONFIG_NOSYSTEM": "1", **environ})


def index(folder: Path) -> bytes:
    path = sources(folder).index_path
    assert path is not None
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a commit, and with names of every kind."""
    top = tmp_path / "top"
    (top / "a" / "b").mkdir(parents=True)
    names = [b"f", b"a/f", b"a/b/f", b"a/b/g", b"a-b", b"new\nline", b"\xff\xfe", b"l" * 200]
    deep = (
        b"/".join([b"d" * 240] * 6) + b"/" + b"e" * 250 + b"/deep"
    )  # past the 12 bits of a length
    for name in [*names, deep, *(b"a/%d" % number for number in range(40))]:
        path = os.path.join(os.fsencode(top), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(name)
    git(tmp_path, "init", "-q", "top")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "first")
    return top


@needs_git
def test_a_plain_folder_has_no_git_sources(tmp_path: Path) -> None:
    assert sources(tmp_path) == NOTHING
    assert sources(tmp_path / "missing") == NOTHING
    assert repository_of(os.fsencode(tmp_path)) is None


@needs_git
def test_the_top_of_a_work_tree(repository: Path) -> None:
    (repository / ".gitignore").write_bytes(b"inside, so not our business")
    (repository / ".git" / "info" / "exclude").write_bytes(b"mine\n")
    top = os.fsencode(repository)
    assert sources(repository) == GitSources(
        (), b"", b"mine\n", None, os.path.join(top, b".git/index"), b""
    )
    assert repository_of(top) == (top + b"/.git", top + b"/.git")


@needs_git
def test_a_folder_in_a_work_tree_sees_the_files_above_it(repository: Path) -> None:
    (repository / ".gitignore").write_bytes(b"top\n")
    (repository / "a" / "b" / "c").mkdir()
    (repository / "a" / "b" / ".gitignore").write_bytes(b"b\n")
    (repository / "a" / "b" / "c" / ".gitignore").write_bytes(b"inside\n")
    found = sources(repository / "a" / "b" / "c")
    assert found.outer == ((b"a/b/c", b"top\n"), (b"c", b"b\n"))
    assert found.prefix == found.info_prefix == b"a/b/c"
    assert found.index_path == os.fsencode(repository / ".git" / "index")


@needs_git
def test_a_root_reached_by_a_symlink_belongs_to_the_work_tree_it_lies_in(repository: Path) -> None:
    link = repository.parent / "link"
    link.symlink_to(repository / "a")
    assert sources(link).prefix == b"a"


@needs_git
def test_a_gitignore_that_is_a_symlink_or_a_folder_or_a_pipe_does_not_count(
    repository: Path,
) -> None:
    (repository / "rules").write_bytes(b"x\n")
    (repository / ".gitignore").symlink_to("rules")
    (repository / "a" / ".gitignore").mkdir()
    os.mkfifo(repository / "a" / "b" / ".gitignore")
    (repository / "a" / "b" / "c").mkdir()
    assert sources(repository / "a" / "b" / "c").outer == ()


@needs_git
def test_a_linked_work_tree_has_its_own_index_and_the_common_exclude(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "../linked")
    linked = repository.parent / "linked"
    (linked / "only-here").write_bytes(b"")
    git(linked, "add", "only-here")
    (repository / ".git" / "info" / "exclude").write_bytes(b"common\n")
    gitdir = os.fsencode(repository / ".git" / "worktrees" / "linked")
    assert repository_of(os.fsencode(linked)) == (gitdir, os.fsencode(repository / ".git"))
    assert sources(linked).info_exclude == b"common\n"
    assert set(tracked_paths(index(linked))) == listed(linked)
    assert b"only-here" in listed(linked)


@needs_git
def test_a_submodule_is_found_through_its_git_file(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "super")
    outer = tmp_path / "super"
    git(outer, "submodule", "--quiet", "add", str(repository), "lib/sub")
    inner = outer / "lib" / "sub"
    assert (inner / ".git").is_file()
    gitdir = os.fsencode(outer / ".git" / "modules" / "lib" / "sub")
    assert repository_of(os.fsencode(inner)) == (gitdir, gitdir)
    assert sources(inner / "a").prefix == b"a"
    assert set(tracked_paths(index(inner))) == listed(inner)
    assert set(tracked_paths(index(outer))) == {b".gitmodules", b"lib/sub"}


@needs_git
def test_a_git_file_may_be_absolute_or_relative_and_must_lead_to_a_repository(
    repository: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    expected = os.fsencode(repository / ".git")
    for link in (
        b"gitdir: ../top/.git\n",
        b"gitdir: " + expected,
        b"gitdir: " + expected + b"\r\n",
    ):
        (elsewhere / ".git").write_bytes(link)
        assert repository_of(os.fsencode(elsewhere)) == (expected, expected)
    for link in (b"gitdir: ../nowhere\n", b"gitdir:\n", b"", b"nonsense", b"gitdir: a\0b\n"):
        (elsewhere / ".git").write_bytes(link)
        assert repository_of(os.fsencode(elsewhere)) is None


@needs_git
def test_an_empty_folder_named_git_hides_nothing(repository: Path) -> None:
    (repository / "a" / ".git").mkdir()
    assert repository_of(os.fsencode(repository / "a")) is None
    assert sources(repository / "a" / "b").prefix == b"a/b"


@needs_git
@pytest.mark.parametrize("version", ["2", "4"])
def test_the_index_lists_what_git_lists(repository: Path, version: str) -> None:
    git(repository, "update-index", "--index-version", version)
    assert (repository / ".git" / "index").read_bytes()[7] == int(version)
    assert set(tracked_paths(index(repository))) == listed(repository)
    assert len(listed(repository)) > 40


@needs_git
@pytest.mark.parametrize("version", ["3", "4"])
def test_entries_with_extended_flags_are_read_too(repository: Path, version: str) -> None:
    (repository / "intended").write_bytes(b"")
    git(repository, "update-index", "--index-version", version)
    git(repository, "add", "--intent-to-add", "intended")
    git(repository, "update-index", "--skip-worktree", "a/b/f")
    assert (repository / ".git" / "index").read_bytes()[7] == int(version)
    assert set(tracked_paths(index(repository))) == listed(repository)


@needs_git
def test_a_path_in_conflict_is_listed_once(repository: Path) -> None:
    blob = git(repository, "rev-parse", "HEAD:f").decode().strip()
    stages = "".join(f"100644 {blob} {stage}\tf\n" for stage in (1, 2, 3))
    git(repository, "rm", "-q", "--cached", "f")
    command = ["git", "update-index", "--index-info"]
    subprocess.run(command, cwd=repository, input=stages.encode(), check=True)
    assert tracked_paths(index(repository)).count(b"f") == 1


@needs_git
def test_the_index_of_a_repository_with_sha256(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256", "top")
    for name in ("one", "two", "three"):
        (tmp_path / "top" / name).write_text(name)
    git(tmp_path / "top", "add", "-A")
    assert tracked_paths(index(tmp_path / "top")) == [b"one", b"three", b"two"]


@needs_git
def test_a_sparse_index_names_no_directories(repository: Path) -> None:
    git(repository, "sparse-checkout", "init", "--cone", "--sparse-index")
    git(repository, "sparse-checkout", "set", "a/b")
    raw = git(repository, "ls-files", "--sparse", "-z").split(b"\0")
    assert any(path.endswith(b"/") for path in raw)
    expected = {path for path in raw if path and not path.endswith(b"/")}
    assert set(tracked_paths(index(repository))) == expected


@needs_git
def test_a_split_index_is_read_with_its_other_half(repository: Path) -> None:
    git(repository, "update-index", "--split-index")
    (repository / "added").write_bytes(b"")
    (repository / "f").write_bytes(b"changed")
    git(repository, "add", "added", "f")
    assert list((repository / ".git").glob("sharedindex.*"))
    assert set(tracked_paths(index(repository))) == listed(repository)


@needs_git
@pytest.mark.parametrize("version", ["2", "4"])
def test_a_damaged_index_gives_what_can_be_read(
    repository: Path, tmp_path: Path, version: str
) -> None:
    git(repository, "update-index", "--index-version", version)
    data = Path(os.fsdecode(index(repository))).read_bytes()
    everything = listed(repository)
    damaged = tmp_path / "damaged"
    for length in (*range(0, 2000, 37), len(data) // 2, len(data) - 1):
        damaged.write_bytes(data[:length])
        assert len(set(tracked_paths(os.fsencode(damaged))) - everything) == 0
    for at in range(0, 3000, 41):
        damaged.write_bytes(data[:at] + bytes((data[at] ^ 0xFF,)) + data[at + 1 :])
        tracked_paths(os.fsencode(damaged))
    damaged.write_bytes(data[:-100])
    assert len(tracked_paths(os.fsencode(damaged))) > 40
    assert tracked_paths(os.fsencode(tmp_path / "missing")) == []


VALUES = [
    b"excludesFile = ~/ex",
    b"excludesfile=~/ex",
    b"\tEXCLUDESFILE   =   ~/ex   ",
    b"excludesFile = ~/ex ; comment",
    b"excludesFile = ~/ex# comment",
    b'excludesFile = "~/ex" # comment',
    b'excludesFile = ~/"a ; b"',
    b'excludesFile = "~/quo\\"ted"',
    b"excludesFile = ~/back\\\\slash",
    b"excludesFile = ~/two  words",
    b'excludesFile = "~/trailing "',
    b"excludesFile = ~/con\\\ntinued",
    b"excludesFile = /absolute",
    b"excludesFile = ~/first\nexcludesFile = ~/second",
    b'excludesFile = ~/ex\n[core "sub"]\nexcludesFile = ~/other',
    b"excludesFile = ~/ex\n[core.sub]\nexcludesFile = ~/other",
    b"bare\nexcludesFile = ~/ex",
    b'excludesFile = ~/ex\n[alias] x = "!f() { [ a ]; }; f"\n[other]\n\tkey = [core]\n',
    b"excludesFile = ~/ex\r\n[user]\r\n\tname = x\r\n",
    b"x = 1\n# [other]\n; [other]\nexcludesFile = ~/ex",
    b'x = "a # b"\n[other "a ] \\" b"]\nx = 2\n[CORE]excludesFile = ~/ex',
    b"excludesFile = ~/caf\xc3\xa9\xff",
]


@needs_git
@pytest.mark.parametrize("value", VALUES)
def test_the_configuration_is_read_as_git_reads_it(value: bytes, tmp_path: Path) -> None:
    home = os.fsencode(tmp_path)
    config = tmp_path / ".gitconfig"
    config.write_bytes(b"[core]\n" + value.replace(b"/absolute", home + b"/absolute") + b"\n")
    environ = {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    command = ["git", "config", "--type=path", "-z", "core.excludesFile"]
    answer = subprocess.run(command, cwd=tmp_path, env=environ, check=True, capture_output=True)
    named = answer.stdout.removesuffix(b"\0")
    assert named.startswith(home)
    Path(os.fsdecode(named)).write_bytes(b"this one")
    assert git_sources(home, environ).global_excludes == b"this one"


def test_a_broken_configuration_counts_up_to_where_it_breaks(tmp_path: Path) -> None:
    (tmp_path / "ex").write_bytes(b"this one")
    rests = [b"[", b"[core", b'x = "', b"x = \\q", b"= x", b"[core]]", b'[a "b', b"\0\xff"]
    rests += [b"[include]\npath = a\0b\n", b"[include]\npath = ~a\0b/c\n"]
    for rest in rests:
        (tmp_path / ".gitconfig").write_bytes(b"[core]\nexcludesFile = ~/ex\n" + rest)
        assert sources(tmp_path, HOME=str(tmp_path)).global_excludes == b"this one"


def test_the_global_excludes_have_a_place_by_default(tmp_path: Path) -> None:
    for folder in (".config/git", "xdg/git"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "ignore").write_text(folder)
    home, xdg = str(tmp_path), str(tmp_path / "xdg")
    assert sources(tmp_path, HOME=home).global_excludes == b".config/git"
    assert sources(tmp_path, HOME=home, XDG_CONFIG_HOME="").global_excludes == b".config/git"
    assert sources(tmp_path, HOME=home, XDG_CONFIG_HOME=xdg).global_excludes == b"xdg/git"
    assert sources(tmp_path, XDG_CONFIG_HOME=xdg).global_excludes == b"xdg/git"
    assert sources(tmp_path).global_excludes is None
    (tmp_path / ".gitconfig").write_text("[core]\nexcludesFile =\n")
    assert sources(tmp_path, HOME=home).global_excludes is None


@needs_git
def test_the_more_specific_configuration_wins(repository: Path, tmp_path: Path) -> None:
    def point(file: Path, name: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as config:
            config.write(f'[core]\nexcludesFile = "{tmp_path / name}"\n')
        (tmp_path / name).write_text(name)

    environ = {"HOME": str(tmp_path)}
    system = {"GIT_CONFIG_NOSYSTEM": "0", "GIT_CONFIG_SYSTEM": str(tmp_path / "system-config")}
    point(tmp_path / "system-config", "system")
    assert sources(repository, **environ, **system).global_excludes == b"system"
    assert sources(repository, **environ).global_excludes is None
    point(tmp_path / ".config/git/config", "xdg")
    assert sources(repository, **environ, **system).global_excludes == b"xdg"
    point(tmp_path / ".gitconfig", "home")
    assert sources(repository, **environ).global_excludes == b"home"
    point(tmp_path / "another", "global")
    environ["GIT_CONFIG_GLOBAL"] = str(tmp_path / "another")
    assert sources(repository, **environ).global_excludes == b"global"
    point(repository / ".git/config", "local")
    assert sources(repository, **environ).global_excludes == b"local"
    assert sources(tmp_path, **environ).global_excludes == b"global"
    point(repository / ".git/config.worktree", "worktree")
    assert sources(repository, **environ).global_excludes == b"local"
    git(repository, "config", "extensions.worktreeConfig", "true")
    assert sources(repository, **environ).global_excludes == b"worktree"


def test_included_configuration_counts_where_it_is_included(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    (tmp_path / "more").mkdir()
    (tmp_path / "more/a").write_text(
        "[include]\npath = b\n[include]\npath = ../.gitconfig\npath = a\n"
    )
    (tmp_path / "more/b").write_text("[core]\nexcludesFile = ~/two\n")
    point = "[core]\nexcludesFile = ~/one\n"
    for include in ("more/a", "~/more/a", f"{tmp_path}/more/b"):
        line = f"[include]\npath = {include}\n"
        (tmp_path / ".gitconfig").write_text(point + line)
        assert sources(tmp_path, HOME=str(tmp_path)).global_excludes == b"two"
        (tmp_path / ".gitconfig").write_text(line + point)
        assert sources(tmp_path, HOME=str(tmp_path)).global_excludes == b"one"


@pytest.mark.parametrize("fan_out", [2, 50])
def test_configuration_that_includes_more_and_more_is_read_within_bounds(
    fan_out: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file includes the next one many times over: ten levels would be 50 to the tenth."""
    opened: list[bytes] = []
    whole = git_config.read

    def counted(path: bytes, **given: Any) -> bytes | None:
        opened.append(path)
        return whole(path, **given)

    monkeypatch.setattr(git_config, "read", counted)
    for level in range(12):
        includes = f"[include]\npath = c{level + 1}\n" * fan_out
        (tmp_path / f"c{level}").write_text(f"{includes}[core]\nexcludesFile = {level}\n")

    found = list(git_config.settings(os.fsencode(tmp_path / "c0"), {}))

    assert len(opened) == 1 + git_config.MAX_INCLUDED_FILES
    assert found[-1] == (b"core.excludesfile", b"0"), "what the file itself says comes last"
    assert os.fsencode(tmp_path / "c11") not in opened, "git includes ten deep"


def test_configuration_is_read_up_to_a_size_in_all(tmp_path: Path) -> None:
    most = git_config.MAX_CONFIG_BYTES
    (tmp_path / "small").write_text("[core]\neol = small\n")
    with open(tmp_path / "large", "wb") as file:
        file.write(b"[core]\neol = large\n")
        file.truncate(most - 10)
    (tmp_path / "top").write_text("[include]\npath = small\npath = large\npath = small\n")
    found = list(git_config.settings(os.fsencode(tmp_path / "top"), {}))
    assert [value for key, value in found if key == b"core.eol"] == [b"small", b"small"]


@pytest.mark.parametrize(
    "content",
    [
        *(b"[core]\neol = " + b"x" * (1 << 21), b"[core]\neol = x" + b" " * (1 << 21) + b"y"),
        *(
            b'[a "' + b"b" * (1 << 21) + b'"]\n',
            b"[" + b"n" * (1 << 20) + b"]\n" + b"a\n" * 100_000,
        ),
        b'[a    "b"]\n' * 100_000,
    ],
    ids=["value", "spaces", "section", "keys", "sections"],
)
def test_long_configuration_is_read_in_time_that_grows_with_its_length(content: bytes) -> None:
    """Within the limit of any test: by copying what is read so far, each would take hours."""
    assert len(list(git_config._parse(content))) in (0, 1, 100_000)
