"""The peers, each driven the way its own users or its own code drive it.

`git` and `git-tuned` keep a shadow repository outside the tree. `opencode` repeats the git calls
that OpenCode makes at each step, with no objects of the user's to borrow. `cline` keeps stash
commits in the user's own repository, so a repository with an initial commit is made for it first.
`jj`, `restic` and `borg` take part where they are installed.

Automatic garbage collection is off for all that use git: it would run in the background and
disturb whoever is measured next. Nothing of the machine's git configuration is read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from bench.contestant import Contestant, allocated, run, timed

_OPENCODE_LARGEST = 2 * 1024 * 1024
_OPENCODE_BATCH = 100


class Git(Contestant):
    """`git add -A` and `git commit` with the settings git comes with."""

    name = "git"
    settings: tuple[str, ...] = ()

    @classmethod
    def missing(cls) -> str | None:
        return _not_installed("git")

    def environment(self) -> dict[str, str]:
        return _git_environment() | {
            "GIT_DIR": str(self.state / "git"),
            "GIT_WORK_TREE": str(self.tree),
        }

    def git(self, *arguments: str, stdin: bytes = b"", accept: Sequence[int] = (0,)) -> bytes:
        return run(
            ["git", *arguments],
            cwd=self.tree,
            env=self.environment(),
            stdin=stdin,
            accept=accept,
        )

    def setup(self) -> None:
        self.git("init", "-q")
        for setting in ("gc.auto=0", "maintenance.auto=false", *self.settings):
            self.git("config", *setting.split("=", 1))

    def checkpoint(self) -> float:
        seconds = timed(self._commit)
        self.checkpoints.append(self.git("rev-parse", "HEAD").decode().strip())
        return seconds

    def _commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "--no-verify", "-m", "checkpoint")

    def diff(self) -> float:
        return timed(self._diff)

    def _diff(self) -> None:
        before, after = self.checkpoints[-2:]
        self.git("diff", "--name-status", before, after)
        self.git("diff", before, after)

    def restore_last(self) -> float:
        return timed(lambda: self.git("reset", "-q", "--hard", self.checkpoints[-2]))

    def restore_one(self, path: str) -> float:
        return timed(lambda: self.git("checkout", "-q", self.checkpoints[-2], "--", path))


class GitTuned(Git):
    """git with everything that makes it faster, durability given up included."""

    name = "git-tuned"
    settings = ("core.untrackedCache=true", "index.version=4", "core.fsync=none")

    def _commit(self) -> None:
        # `git commit` would look at the whole tree a second time.
        self.git("add", "-A")
        tree = self.git("write-tree").decode().strip()
        parents = ["-p", self.checkpoints[-1]] if self.checkpoints else []
        commit = self.git("commit-tree", tree, *parents, "-m", "checkpoint").decode().strip()
        self.git("update-ref", "HEAD", commit)

    def _diff(self) -> None:
        before, after = self.checkpoints[-2:]
        printed = self.git("diff", "--raw", "--patch", before, after)
        # A line for each file, with both names of a renamed one.
        raw = printed.partition(b"\n\n")[0]
        self.listed = sum(line.count(b"\t") for line in raw.splitlines())


class OpenCode(Git):
    """The calls of OpenCode's snapshot module: list what changed, add, write a tree."""

    name = "opencode"
    leaves_out_large = True

    def checkpoint(self) -> float:
        return timed(self._track)

    def _track(self) -> None:
        self._exclude([])
        changed = self.git("diff-files", "--name-only", "-z", "--", ".")
        others = self.git("ls-files", "--others", "--exclude-standard", "-z", "--", ".")
        names = [os.fsdecode(name) for name in (changed + others).split(b"\0") if name]
        if names:
            self._exclude([name for name in names if self._is_large(name)])
            self.git("add", "--sparse", ".")
        self.checkpoints.append(self.git("write-tree").decode().strip())

    def _exclude(self, names: list[str]) -> None:
        exclude = self.state / "git" / "info" / "exclude"
        exclude.write_text("".join(f"/{name}\n" for name in names))

    def _is_large(self, name: str) -> bool:
        try:
            return (self.tree / name).stat().st_size > _OPENCODE_LARGEST
        except FileNotFoundError:
            return False

    def _diff(self) -> None:
        before, after = self.checkpoints[-2:]
        self.git("diff", "--name-status", "--no-renames", before, after, "--", ".")
        self.git("diff", "--no-renames", "--numstat", before, after, "--", ".")
        printed = self.git("diff", "--no-renames", before, after, "--", ".")
        self.listed = (b"\n" + printed).count(b"\ndiff --git ")

    def restore_last(self) -> float:
        # Its revert, batch by batch. Its other form (read-tree, checkout-index -a -f) writes every
        # file of the tree again, which takes many times as long.
        return timed(self._revert)

    def _revert(self) -> None:
        before, after = self.checkpoints[-2:]
        listed = self.git("diff", "--name-only", "--no-renames", "-z", before, after, "--", ".")
        names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
        for start in range(0, len(names), _OPENCODE_BATCH):
            batch = names[start : start + _OPENCODE_BATCH]
            held = self.git("ls-tree", "--name-only", "-z", before, "--", *batch)
            existing = {os.fsdecode(name) for name in held.split(b"\0") if name}
            kept = [name for name in batch if name in existing]
            if kept:
                self.git("checkout", "-q", before, "--", *kept)
            for name in batch:
                if name not in existing:
                    (self.tree / name).unlink()


class Cline(Git):
    """Stash commits under private refs in the user's repository."""

    name = "cline"

    def environment(self) -> dict[str, str]:
        return _git_environment()

    def setup(self) -> None:
        super().setup()
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "the user's own commit")

    def checkpoint(self) -> float:
        return timed(self._stash)

    def _stash(self) -> None:
        stash = self.git("stash", "create").decode().strip()
        others = self.git("ls-files", "--others", "--exclude-standard", "-z")
        head = self.git("rev-parse", "HEAD").decode().strip()
        commit = stash or head
        if others:
            untracked = self._commit_of_untracked(others)
            index = self.git("rev-parse", f"{stash}^2").decode().strip() if stash else head
            commit = self._commit_tree(f"{commit}^{{tree}}", head, index, untracked)
        self.git("update-ref", f"refs/cline/checkpoints/session/{len(self.checkpoints)}", commit)
        self.checkpoints.append(commit)

    def _commit_of_untracked(self, names: bytes) -> str:
        index = self.state / "index"
        index.unlink(missing_ok=True)
        env = self.environment() | {"GIT_INDEX_FILE": str(index)}
        add = ["git", "update-index", "--add", "-z", "--stdin"]
        run(add, cwd=self.tree, env=env, stdin=names)
        tree = run(["git", "write-tree"], cwd=self.tree, env=env).decode().strip()
        index.unlink()
        return self._commit_tree(tree)

    def _commit_tree(self, tree: str, *parents: str) -> str:
        options = [option for parent in parents for option in ("-p", parent)]
        made = self.git("commit-tree", tree, *options, "-m", "checkpoint")
        return made.decode().strip()

    def restore_last(self) -> float:
        return timed(self._apply)

    def _apply(self) -> None:
        self.git("reset", "-q", "--hard", "HEAD")
        self.git("clean", "-q", "-fd")
        target = self.checkpoints[-2]
        if target != self.git("rev-parse", "HEAD").decode().strip():
            self.git("stash", "apply", "-q", target)

    def _diff(self) -> None:
        before, after = self.checkpoints[-2:]
        self.git("diff", "--name-status", before, after)
        self.git("diff", before, after)
        sides = [self._untracked_tree(commit) for commit in (before, after)]
        self.git("diff", *sides)

    def _untracked_tree(self, commit: str) -> str:
        third = self.git("rev-parse", "-q", "--verify", f"{commit}^3^{{tree}}", accept=(0, 1))
        return third.decode().strip() or "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

    def disk_bytes(self) -> int:
        return allocated(self.tree / ".git")


class Jujutsu(Contestant):
    name = "jj"

    @classmethod
    def missing(cls) -> str | None:
        return _not_installed("jj")

    def jj(self, *arguments: str) -> bytes:
        # The largest new file is raised from 1 MiB, else it would leave out files others keep.
        options = ["--config", "snapshot.max-new-file-size=1073741824", "--no-pager", "--quiet"]
        env = os.environ | {"JJ_CONFIG": "", "JJ_USER": "bench", "JJ_EMAIL": "bench@localhost"}
        return run(["jj", *options, *arguments], cwd=self.tree, env=env)

    def setup(self) -> None:
        self.jj("git", "init")

    def checkpoint(self) -> float:
        seconds = timed(lambda: self.jj("commit", "-m", "checkpoint"))
        template = ["--no-graph", "-r", "@-", "-T", "commit_id"]
        self.checkpoints.append(self.jj("log", *template).decode().strip())
        return seconds

    def diff(self) -> float:
        return timed(self._diff)

    def _diff(self) -> None:
        sides = ["--from", self.checkpoints[-2], "--to", self.checkpoints[-1]]
        self.jj("diff", "--summary", *sides)
        self.jj("diff", "--git", *sides)

    def restore_last(self) -> float:
        return timed(lambda: self.jj("restore", "--from", self.checkpoints[-2]))

    def restore_one(self, path: str) -> float:
        return timed(lambda: self.jj("restore", "--from", self.checkpoints[-2], path))

    def disk_bytes(self) -> int:
        return allocated(self.tree / ".jj")


class Restic(Contestant):
    name = "restic"

    @classmethod
    def missing(cls) -> str | None:
        absent = _not_installed("restic")
        if absent is not None:
            return absent
        words = run(["restic", "version"], cwd=Path("/")).decode().split()
        version = tuple(int(part) for part in words[1].split(".")[:2])
        # Older ones cannot put a folder back in place and delete what is not in it.
        return None if version >= (0, 17) else f"restic {words[1]} is older than 0.17"

    def restic(self, *arguments: str) -> bytes:
        env = os.environ | {
            "RESTIC_REPOSITORY": str(self.state / "repository"),
            "RESTIC_PASSWORD": "bench",
            "RESTIC_CACHE_DIR": str(self.state / "cache"),
        }
        return run(["restic", "--quiet", *arguments], cwd=self.tree, env=env)

    def setup(self) -> None:
        self.restic("init")

    def checkpoint(self) -> float:
        excludes = [option for name in _ignored(self.tree) for option in ("--exclude", name)]
        seconds = timed(lambda: self.restic("backup", *excludes, "."))
        snapshots = json.loads(self.restic("snapshots", "--json"))
        self.checkpoints.append(snapshots[-1]["id"])
        return seconds

    def diff(self) -> float:
        return timed(lambda: self.restic("diff", *self.checkpoints[-2:]))

    def restore_last(self) -> float:
        target = f"{self.checkpoints[-2]}:{self.tree}"
        return timed(lambda: self.restic("restore", target, "--target", str(self.tree), "--delete"))

    def restore_one(self, path: str) -> float:
        target = f"{self.checkpoints[-2]}:{self.tree}"
        options = ["--target", str(self.tree), "--include", f"/{path}"]
        return timed(lambda: self.restic("restore", target, *options))


class Borg(Contestant):
    name = "borg"

    @classmethod
    def missing(cls) -> str | None:
        return _not_installed("borg")

    def borg(self, *arguments: str) -> bytes:
        env = os.environ | {
            "BORG_REPO": str(self.state / "repository"),
            "BORG_BASE_DIR": str(self.state / "base"),
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
        }
        return run(["borg", *arguments], cwd=self.tree, env=env)

    def setup(self) -> None:
        self.borg("init", "--encryption", "none")

    def checkpoint(self) -> float:
        excludes = [option for name in _ignored(self.tree) for option in ("--exclude", name)]
        name = f"checkpoint-{len(self.checkpoints)}"
        seconds = timed(lambda: self.borg("create", *excludes, f"::{name}", "."))
        self.checkpoints.append(name)
        return seconds

    def diff(self) -> float:
        before, after = self.checkpoints[-2:]
        return timed(lambda: self.borg("diff", f"::{before}", after))

    def restore_last(self) -> float:
        return timed(self._extract)

    def _extract(self) -> None:
        before, after = self.checkpoints[-2:]
        # Extracting removes nothing, so what was added since is removed by its list.
        for line in self.borg("diff", "--json-lines", f"::{before}", after).splitlines():
            entry = json.loads(line)
            if any(change["type"] == "added" for change in entry["changes"]):
                (self.tree / entry["path"]).unlink()
        self.borg("extract", f"::{before}")

    def restore_one(self, path: str) -> float:
        return timed(lambda: self.borg("extract", f"::{self.checkpoints[-2]}", path))


PEERS: dict[str, type[Contestant]] = {
    peer.name: peer for peer in (Git, GitTuned, OpenCode, Cline, Jujutsu, Restic, Borg)
}


def _not_installed(command: str) -> str | None:
    return None if shutil.which(command) else "not installed"


def _git_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "bench",
        "GIT_AUTHOR_EMAIL": "bench@localhost",
        "GIT_COMMITTER_NAME": "bench",
        "GIT_COMMITTER_EMAIL": "bench@localhost",
    }


def _ignored(tree: Path) -> list[str]:
    """The names in .gitignore, for the peers that do not read it themselves."""
    return [line.rstrip("/") for line in (tree / ".gitignore").read_text().split()]
