"""Objects of a git repository, read without git: as git gives them, or refused."""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from pathlib import Path
from random import Random

import pytest

from git_command import git
from mulligan.importers import git_objects
from mulligan.importers.git_objects import Repository
from mulligan.importers.records import InvalidRecord, SnapshotFile

LINES = [f"line {number}, as it was at first\n" for number in range(3000)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with many versions of one file, and one of each kind of entry."""
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "sub" / "deeper").mkdir(parents=True)
    (tmp_path / "sub" / "deeper" / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "sub" / "deeper" / "run.sh").chmod(0o755)
    (tmp_path / "link").symlink_to("sub")
    (tmp_path / os.fsdecode(b"not \xff UTF-8")).write_bytes(bytes(range(256)) * 2000)
    lines = list(LINES)
    for number in range(12):
        lines[number * 200] = f"changed in version {number}\n"
        (tmp_path / "text").write_text("".join(lines))
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-q", "-m", f"Version {number}\n\nMore words.")
    return tmp_path


def pack_by_offset(folder: Path) -> None:
    git(folder, "repack", "-adfq", "--depth=50")


def pack_by_name(folder: Path) -> None:
    git(folder, "-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq", "--depth=50")


def leave(folder: Path) -> None:
    assert not list(folder.glob(".git/objects/pack/*"))


@pytest.mark.parametrize("kept", [leave, pack_by_offset, pack_by_name])
def test_every_commit_tree_and_file_is_the_same_as_in_git(folder: Path, kept: object) -> None:
    assert callable(kept)
    kept(folder)
    repository = Repository(str(folder / ".git"))
    (head,) = repository.heads()
    names = git(folder, "rev-list", "HEAD").decode().split()
    seen = []
    while head:
        commit = repository.commit(head)
        seen.append(commit.id)
        shown = git(folder, "show", "-s", "--format=%T %ct %P%n%B", head).decode().rstrip("\n")
        first, _newline, message = shown.partition("\n")
        told = f"{commit.tree} {commit.time} {' '.join(commit.parents)}"
        assert (told, commit.message) == (first, message)
        for held in files(repository, commit.tree):
            content = b"".join(repository.blob(held.content))
            assert content == git(folder, "cat-file", "blob", held.content)
        head = next(iter(commit.parents), "")
    assert seen == names
    assert {each for each in files(repository, commit.tree) if each.path != "text"} == {
        SnapshotFile("sub/deeper/run.sh", name_of(folder, "sub/deeper/run.sh"), 0o755),
        SnapshotFile("link", name_of(folder, "link"), 0o644, is_link=True),
        SnapshotFile("not \udcff UTF-8", name_of(folder, "not \udcff UTF-8")),
    }


def files(repository: Repository, tree: str) -> list[SnapshotFile]:
    found = list(repository.files(tree))
    assert all(isinstance(each, SnapshotFile) for each in found)
    return [each for each in found if isinstance(each, SnapshotFile)]


def name_of(folder: Path, path: str) -> str:
    return git(folder, "rev-parse", f"HEAD:{path}").decode().strip()


def test_damaged_packs_never_yield_wrong_content(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pack_by_offset(folder)
    repository = Repository(str(folder / ".git"))
    commit = repository.commit(git(folder, "rev-parse", "HEAD").decode().strip())
    right = {
        each.content: b"".join(repository.blob(each.content))
        for each in files(repository, commit.tree)
    }
    copy = tmp_path_factory.mktemp("copy") / ".git"
    shutil.copytree(folder / ".git", copy)
    damageable = [*copy.glob("objects/pack/*.pack"), *copy.glob("objects/pack/*.idx")]
    chance = Random(5)
    refused = 0
    for _attempt in range(150):
        path = chance.choice(damageable)
        path.chmod(0o600)
        whole = path.read_bytes()
        at = chance.randrange(len(whole))
        damage = bytes(chance.randrange(256) for _byte in range(chance.choice((1, 4, 40))))
        path.write_bytes((whole[:at] + damage + whole[at + len(damage) :])[: len(whole)])
        repository = Repository(str(copy))
        try:
            tree = repository.commit(commit.id).tree
            for each in files(repository, tree):
                assert b"".join(repository.blob(each.content)) == right[each.content]
        except InvalidRecord:
            refused += 1
        path.write_bytes(whole)
    assert refused > 20


def put(repository: Path, kind: str, content: bytes) -> str:
    whole = f"{kind} {len(content)}\0".encode() + content
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    path = repository / "objects" / name[:2] / name[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zlib.compress(whole))
    return name


def test_a_tree_of_few_bytes_and_countless_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_objects, "MAX_FILES", 1000)
    below = put(tmp_path, "blob", b"x")
    mode = b"100644"
    for _level in range(6):
        entries = (b"%b %d\0" % (mode, number) + bytes.fromhex(below) for number in range(10))
        below, mode = put(tmp_path, "tree", b"".join(entries)), b"40000"
    with pytest.raises(InvalidRecord, match="more than 1,000"):
        list(Repository(str(tmp_path)).files(below))
    for _level in range(300):
        below = put(tmp_path, "tree", b"40000 d\0" + bytes.fromhex(below))
    with pytest.raises(InvalidRecord, match="deeper"):
        list(Repository(str(tmp_path)).files(below))


def test_objects_of_another_type_or_size_are_refused(tmp_path: Path) -> None:
    repository = Repository(str(tmp_path))
    blob = put(tmp_path, "blob", b"tree and parents\n")
    for read in (repository.commit, lambda name: list(repository.files(name))):
        with pytest.raises(InvalidRecord, match="is a blob"):
            read(blob)
    name = put(tmp_path, "commit", b"tree zzz\n\nwords")
    with pytest.raises(InvalidRecord, match="malformed"):
        repository.commit(name)
    path = tmp_path / "objects" / blob[:2] / blob[2:]
    for wrong in (b"blob 3\0tree and parents\n", b"blob 17\0tree", b"blob -1\0", b"nothing"):
        path.write_bytes(zlib.compress(wrong))
        with pytest.raises(InvalidRecord, match="damaged"):
            list(repository.blob(blob))
    for missing in ("0" * 40, "../../../etc/passwd", ""):
        with pytest.raises(InvalidRecord):
            list(repository.blob(missing))
