"""Looking at the working tree: what changed since the last look.

A full scan goes through every directory in scope: one whose own times are unchanged is not
listed again, and a file whose times are unchanged costs one `lstat`. With the names of what may
have changed, from a watcher, only those are looked at. Both leave the cache in the same state.

Nothing here fails because of one file: what cannot be read, is special, too large or vanishes is
remembered under `odd`, with the reason.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from mulligan.core.tree import LINK
from mulligan.files import gitfiles
from mulligan.files.contents import Contents, Job, Sink, is_racy
from mulligan.files.ignore import Reason, Scope, root_scope
from mulligan.files.index import Cache, Node, Seen

DEEPEST = 256
OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
IGNORE_FILES = (b".gitignore", b".mulliganignore")
SPECIAL = {
    stat.S_IFSOCK: "is a socket",
    stat.S_IFIFO: "is a named pipe",
    stat.S_IFBLK: "is a block device",
    stat.S_IFCHR: "is a character device",
}


class Limits(NamedTuple):
    """How much is looked after; the user's settings."""

    file_bytes: int = 100 << 20
    guard: bool = True
    guard_bytes: int = 5 << 20
    guard_total: int = 200 << 20


class Watch(Protocol):
    """The part of a watcher that the scan needs: to be told of a directory before it is listed."""

    def add(self, directory: bytes) -> bool: ...


class Scan:
    """One look at a project. Afterwards `cache.root` says what is there."""

    def __init__(
        self,
        root: bytes,
        cache: Cache,
        sink: Sink,
        *,
        started: int,
        limits: Limits = Limits(),  # noqa: B008
        forced: Iterable[bytes] = (),
        hidden: Iterable[bytes] = (),
        watch: Watch | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.root = root
        self.cache = cache
        self.started = started
        self.limits = limits
        self.hidden = frozenset(hidden)
        self.forced = frozenset(forced)
        self.tracked = cache.wanted
        self.watch = watch
        self.coverage_changed = cache.root is None
        self._rules_changed = cache.root is None
        self._sink = sink
        self._contents = Contents(sink, started, progress)
        self._above = _directories_above(self.forced | self.tracked)
        self._sources = gitfiles.git_sources(root)

    def full(self) -> None:
        """Looks at everything in scope."""
        try:
            root = self.cache.root or Node()
            self.cache.root = root
            fd = os.open(self.root, OPEN_DIRECTORY & ~os.O_NOFOLLOW)
            try:
                self._look(fd, b"", root, self._root_scope(fd), depth=0)
            finally:
                os.close(fd)
            self._settle()
            self._look_at_tracked()
        finally:
            self._contents.close()

    def at(self, paths: Iterable[bytes]) -> bool:
        """Looks at these paths only; `False` if that is not enough and a full scan is needed."""
        root = self.cache.root
        if root is None or self._index_stamp() != self.cache.sources:
            return False
        paths = sorted(set(paths))
        if any(path == b"" or path.rpartition(b"/")[2] in IGNORE_FILES for path in paths):
            return False
        try:
            fd = os.open(self.root, OPEN_DIRECTORY & ~os.O_NOFOLLOW)
            try:
                scope = self._root_scope(fd)
                if scope.key != root.rules:
                    return False
                for path in paths:
                    self._look_at(fd, root, scope, path)
            finally:
                os.close(fd)
            self._settle()
        finally:
            self._contents.close()
        return True

    def _root_scope(self, fd: int) -> Scope:
        sources = self._sources
        return root_scope(
            outer=sources.outer,
            info_prefix=sources.info_prefix,
            info_exclude=sources.info_exclude,
            global_excludes=sources.global_excludes,
            gitignore=_small_file(fd, b".gitignore"),
            mulliganignore=_small_file(fd, b".mulliganignore"),
        )

    def _look(
        self, fd: int, path: bytes, node: Node, scope: Scope, depth: int, whole: bool = False
    ) -> None:
        """One directory and all below it. `whole`: everything in it was asked for by name."""
        if self.watch is not None:
            self.watch.add(path)
        status = os.fstat(fd)
        node.mode = status.st_mode & 0o7777
        signature = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)
        listed = False
        if node.signature != signature or node.rules != scope.key or node.partial:
            self._list(fd, path, node, scope, whole)
            if node.rules != scope.key:
                node.rules = scope.key
                node.changed()
                self._rules_changed = True
            racy = is_racy(max(status.st_ctime_ns, status.st_mtime_ns), self.started)
            signature_now = None if racy else signature
            if node.signature != signature_now:
                node.signature = signature_now
                node.touched = True
            listed = True
        if self._look_at_files(fd, path, node) and not listed:
            # A name turned into a directory without the listing saying so: list it after all.
            node.signature = None
            self._look(fd, path, node, scope, depth, whole)
            return
        for name in list(node.dirs):
            self._descend(fd, path, node, name, scope, depth, whole)

    def _list(self, fd: int, path: bytes, node: Node, scope: Scope, whole: bool) -> None:
        """Sorts the names of a directory into files, guards, directories and what is left out."""
        files, guards, odd, left, dirs = node.files, node.guards, node.odd, node.left, node.dirs
        node.partial = False
        new_left: dict[bytes, tuple[int, bool, int, int]] = {}
        names: set[bytes] = set()
        try:
            with os.scandir(fd) as entries:
                found = [
                    (os.fsencode(each.name), each.is_dir(follow_symlinks=False)) for each in entries
                ]
        except OSError as problem:
            odd[b"."] = f"cannot be listed: {problem.strerror}"
            found = []
        else:
            odd.pop(b".", None)
        for name, is_directory in found:
            names.add(name)
            reason = scope.decide(name, is_directory)
            if reason and (whole or self.forced or self.tracked or self.hidden):
                reason = self._overruled(_join(path, name), reason, whole)
            elif not reason and self.hidden and _join(path, name) in self.hidden:
                reason = Reason.ALWAYS
            if is_directory:
                if reason and not (self._above and _join(path, name) in self._above):
                    new_left[name] = self._count(fd, name, reason, left.get(name))
                    continue
                if name not in dirs:
                    dirs[name] = Node()
                    node.changed()
                if reason:
                    dirs[name].partial = True
                    new_left[name] = (int(reason), True, 0, 0)
                else:
                    dirs[name].partial = False
            elif not reason:
                if name not in files:
                    files[name] = UNSEEN
                    if guards.pop(name, None) is not None:
                        node.changed()
            elif reason == Reason.GITIGNORE and self.limits.guard:
                if name not in guards:
                    guards[name] = UNSEEN
                    if files.pop(name, None) is not None:
                        node.changed()
            else:
                new_left[name] = (int(reason), False, 1, 0)
        self._drop(node, lambda name: name not in names, new_left)
        node.repository = b".git" in new_left and bool(path)
        if new_left != left:
            node.left = new_left
            node.touched = True
            self.coverage_changed = True

    def _drop(
        self,
        node: Node,
        gone: Callable[[bytes], bool],
        left: dict[bytes, tuple[int, bool, int, int]],
    ) -> None:
        """Forgets names that are no longer there, or are something else now."""
        for known in (node.files, node.guards):
            for name in [name for name in known if gone(name) or name in left or name in node.dirs]:
                del known[name]
                node.changed()
        for name in [name for name in node.odd if name != b"." and (gone(name) or name in left)]:
            del node.odd[name]
            node.touched = True
            self.coverage_changed = True
        for name in [
            name for name, child in node.dirs.items()
            if gone(name) or (name in left and not child.partial)
        ]:  # fmt: skip
            del node.dirs[name]
            node.changed()
            self.coverage_changed = True

    def _overruled(self, path: bytes, reason: Reason, whole: bool) -> Reason:
        """What the ignore rules say is overruled by being asked for, and by git's own index."""
        if path in self.hidden or reason == Reason.ALWAYS:
            return Reason.ALWAYS
        if whole or path in self.forced:
            return Reason.IN_SCOPE
        if path in self.tracked and reason != Reason.MULLIGANIGNORE:
            return Reason.IN_SCOPE
        return reason

    def _look_at_files(self, fd: int, path: bytes, node: Node) -> bool:
        """Compares every file of a directory with the cache; `True` if one became a directory."""
        again = False
        for known, guard in ((node.files, False), (node.guards, True)):
            for name, seen in list(known.items()):
                try:
                    status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except OSError as problem:
                    again |= self._lost(node, name, problem)
                    continue
                if (
                    status.st_ctime_ns == seen[4]
                    and status.st_mtime_ns == seen[3]
                    and status.st_size == seen[2]
                    and status.st_ino == seen[5]
                ):
                    continue
                if stat.S_ISDIR(status.st_mode):
                    known.pop(name, None)
                    node.changed()
                    again = True
                else:
                    self._changed(fd, node, name, seen, status, guard)
        for name in list(node.odd):
            if name not in node.files and name not in node.guards and name not in node.dirs:
                if name == b".":
                    continue
                try:
                    status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except OSError:
                    continue
                if not stat.S_ISDIR(status.st_mode):
                    self._changed(fd, node, name, UNSEEN, status, guard=False)
        return again

    def _lost(self, node: Node, name: bytes, problem: OSError) -> bool:
        if isinstance(problem, FileNotFoundError):
            node.files.pop(name, None)
            node.guards.pop(name, None)
        else:
            self._odd(node, name, f"cannot be looked at: {problem.strerror}")
        node.changed()
        return False

    def _changed(
        self, fd: int, node: Node, name: bytes, seen: Seen, status: os.stat_result, guard: bool
    ) -> None:
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFLNK:
            try:
                target = os.readlink(name, dir_fd=fd)
            except OSError as problem:
                self._odd(node, name, f"cannot be read: {problem.strerror}")
                return
            id = self._sink.put(target)
            changed = -1 if is_racy(status.st_ctime_ns, self.started) else status.st_ctime_ns
            found = (LINK, 0, len(target), status.st_mtime_ns, changed, status.st_ino, id)
            self._keep(node, name, found, guard)
            return
        limit = self.limits.guard_bytes if guard else self.limits.file_bytes
        if kind != stat.S_IFREG:
            self._odd(node, name, SPECIAL.get(kind, "is no ordinary file"), guard)
        elif status.st_size > limit:
            size = f"{status.st_size / (1 << 20):.1f} MB"
            self._odd(node, name, f"is larger than the limit ({size})", guard)
        else:
            try:
                file = os.open(name, OPEN_FILE, dir_fd=fd)
            except OSError as problem:
                reason = f"cannot be read: {problem.strerror}"
                if problem.errno in (errno.ENOENT, errno.ELOOP):
                    reason = "vanished while it was looked at"
                self._odd(node, name, reason, guard)
                return
            node.changed()
            base = seen[6] or None
            self._contents.read(Job(file, node, name, status, base, guard))

    def _keep(self, node: Node, name: bytes, seen: Seen, guard: bool) -> None:
        known = node.guards if guard else node.files
        if known.get(name) != seen:
            known[name] = seen
            node.changed()
        if node.odd.pop(name, None) is not None:
            self.coverage_changed = True

    def _odd(self, node: Node, name: bytes, reason: str, guard: bool = False) -> None:
        """A name that cannot be covered. What is only guarded is not missed, just left out."""
        if node.files.pop(name, None) is not None:
            node.changed()
        if guard:
            if node.guards.get(name, UNSEEN) != TOO_LARGE:
                node.guards[name] = TOO_LARGE
                node.changed()
        elif node.odd.get(name) != reason:
            node.odd[name] = reason
            node.touched = True
            self.coverage_changed = True

    def _settle(self) -> None:
        """Takes in the contents that were read, and marks what lies above what changed."""
        for job, seen, problem in self._contents.finish():
            if seen is not None:
                self._keep(job.node, job.name, seen, job.guard)
            else:
                self._odd(job.node, job.name, problem or "cannot be read", job.guard)
        root = self.cache.root
        assert root is not None
        _drop_unseen(root)

    def _descend(
        self, fd: int, path: bytes, node: Node, name: bytes, scope: Scope, depth: int, whole: bool
    ) -> None:
        child = node.dirs[name]
        below = _join(path, name)
        mode = child.mode
        try:
            if depth >= DEEPEST:
                raise OSError(errno.ELOOP, f"more than {DEEPEST} directories deep")
            child_fd = os.open(name, OPEN_DIRECTORY, dir_fd=fd)
        except OSError as problem:
            del node.dirs[name]
            node.changed()
            node.signature = None
            self.coverage_changed = True
            if not isinstance(problem, FileNotFoundError | NotADirectoryError):
                self._odd(node, name, f"cannot be opened: {problem.strerror}")
            return
        try:
            if child.partial:
                self._look_for_wanted(child_fd, below, child, depth + 1)
            else:
                inner = self._child_scope(child_fd, below, child, name, scope)
                self._look(child_fd, below, child, inner, depth + 1, whole or below in self.forced)
        finally:
            os.close(child_fd)
        if node.odd.pop(name, None) is not None:
            self.coverage_changed = True
        if child.made is None or child.made_guards is None or mode != child.mode:
            node.changed()

    def _child_scope(self, fd: int, path: bytes, node: Node, name: bytes, scope: Scope) -> Scope:
        names: tuple[bytes | None, ...] = IGNORE_FILES
        repository = node.repository
        status = os.fstat(fd)
        signature = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)
        if node.signature == signature:
            # The directory has the names it had: only those ignore files need reading.
            names = tuple(
                each if each in node.files or each in node.guards or each in node.left else None
                for each in IGNORE_FILES
            )
        else:
            repository = _exists(fd, b".git")
        gitignore, mulliganignore = (_small_file(fd, each) if each else None for each in names)
        exclude = gitfiles.info_exclude(os.path.join(self.root, path)) if repository else None
        return scope.enter(
            name, gitignore=gitignore, mulliganignore=mulliganignore, info_exclude=exclude
        )

    def _look_for_wanted(self, fd: int, path: bytes, node: Node, depth: int) -> None:
        """A directory that is out of scope, but for some names in it that were asked for."""
        status = os.fstat(fd)
        node.mode = status.st_mode & 0o7777
        wanted = self._above.get(path, frozenset())
        for name in wanted:
            below = _join(path, name)
            try:
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(found.st_mode):
                if name not in node.dirs:
                    node.dirs[name] = Node()
                    node.changed()
                node.dirs[name].partial = below not in self.forced
            elif (below in self.forced or below in self.tracked) and name not in node.files:
                node.files[name] = UNSEEN
        keep = wanted | node.odd.keys()
        self._drop(node, lambda name: name not in keep, {})
        self._look_at_files(fd, path, node)
        nothing = root_scope(defaults=False)
        for name in list(node.dirs):
            self._descend(fd, path, node, name, nothing, depth, whole=False)

    def _look_at(self, fd: int, root: Node, scope: Scope, path: bytes) -> None:
        """One path that a watcher named."""
        *parents, name = path.split(b"/")
        node, at, open_fds, chain = root, b"", [], [root]
        here = fd
        try:
            for depth, parent in enumerate(parents):
                child = node.dirs.get(parent)
                if child is None or child.partial:
                    if child is not None:
                        at = _join(at, parent)
                        self._mark(chain)
                        self._descend(
                            here, at.rpartition(b"/")[0], node, parent, scope, depth, False
                        )
                    return
                try:
                    here = os.open(parent, OPEN_DIRECTORY, dir_fd=here)
                except OSError:
                    # It has gone: the event of its own name, or of one above it, says so too.
                    return
                open_fds.append(here)
                at = _join(at, parent)
                scope = self._child_scope(here, at, child, parent, scope)
                node = child
                chain.append(node)
            self._look_at_name(here, at, node, name, scope, len(parents))
            if any(each.made is None or each.made_guards is None for each in chain):
                self._mark(chain)
        finally:
            for each in open_fds:
                os.close(each)

    def _look_at_name(
        self, fd: int, at: bytes, node: Node, name: bytes, scope: Scope, depth: int
    ) -> None:
        path = _join(at, name)
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            self._drop(node, lambda each: each == name, {})
            if node.left.pop(name, None) is not None:
                self.coverage_changed = node.touched = True
            return
        is_directory = stat.S_ISDIR(status.st_mode)
        reason = self._overruled(path, scope.decide(name, is_directory), whole=False) or (
            Reason.ALWAYS if path in self.hidden else Reason.IN_SCOPE
        )
        left: dict[bytes, tuple[int, bool, int, int]] = {}
        if is_directory:
            self._drop(node, lambda each: each == name and each not in node.dirs, {})
            if reason and path not in self._above:
                left[name] = self._count(fd, name, reason, node.left.get(name))
            else:
                child = node.dirs.setdefault(name, Node())
                child.partial = bool(reason)
                node.left.pop(name, None)
                self._descend(fd, at, node, name, scope, depth, whole=path in self.forced)
                return
        elif not reason or (reason == Reason.GITIGNORE and self.limits.guard):
            guard = bool(reason)
            known, other = (node.guards, node.files) if guard else (node.files, node.guards)
            if other.pop(name, None) is not None or node.dirs.pop(name, None) is not None:
                node.changed()
            seen = known.get(name, UNSEEN)
            if (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino) != (
                seen[4], seen[3], seen[2], seen[5],
            ):  # fmt: skip
                known.setdefault(name, UNSEEN)
                self._changed(fd, node, name, seen, status, guard)
            return
        else:
            left[name] = (int(reason), False, 1, 0)
        self._drop(node, lambda each: False, left)
        if node.left.get(name) != left[name]:
            node.left[name] = left[name]
            self.coverage_changed = node.touched = True

    def _mark(self, chain: Iterable[Node]) -> None:
        for node in chain:
            node.changed()

    def _count(
        self, fd: int, name: bytes, reason: Reason, before: tuple[int, bool, int, int] | None
    ) -> tuple[int, bool, int, int]:
        """How many files an excluded folder holds; counted again when the folder itself changed."""
        if reason == Reason.ALWAYS:
            return (int(reason), True, 0, 0)
        try:
            modified = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mtime_ns
        except OSError:
            modified = 0
        if before is not None and before[1] and before[3] == modified and modified:
            return (int(reason), True, before[2], modified)
        return (int(reason), True, _count_files(fd, name, 0), modified)

    def _look_at_tracked(self) -> None:
        """Files that git tracks are in scope whatever the rules say: finds those left out."""
        root = self.cache.root
        assert root is not None
        stamp = self._index_stamp()
        if stamp == self.cache.sources and not self._rules_changed:
            return
        self.cache.sources = stamp
        root.touched = True
        wanted: frozenset[bytes] = frozenset()
        if self._sources.index_path is not None:
            wanted = _out_of_scope(
                root, gitfiles.tracked_paths(self._sources.index_path), self._sources.prefix
            )
        if wanted == self.cache.wanted:
            return
        self.cache.wanted = self.tracked = wanted
        self._above = _directories_above(self.forced | wanted)
        for _path, node in root.walk():
            node.signature = None
        self._contents = Contents(self._sink, self.started)
        fd = os.open(self.root, OPEN_DIRECTORY & ~os.O_NOFOLLOW)
        try:
            self._look(fd, b"", root, self._root_scope(fd), depth=0)
        finally:
            os.close(fd)
        self._settle()

    def _index_stamp(self) -> tuple[object, ...]:
        path = self._sources.index_path
        try:
            status = os.stat(path) if path is not None else None
        except OSError:
            status = None
        if status is None:
            return (None, tuple(sorted(self.forced)))
        return ((status.st_mtime_ns, status.st_size, status.st_ino), tuple(sorted(self.forced)))


UNSEEN: Seen = (b"", 0, -1, -1, -1, -1, b"")
TOO_LARGE: Seen = (b"", 0, -2, -2, -2, -2, b"")


def _drop_unseen(node: Node) -> None:
    """Forgets names whose content never came; only directories that changed can have such."""
    if node.made is not None and node.made_guards is not None:
        return
    for known in (node.files, node.guards):
        for name in [name for name, seen in known.items() if seen == UNSEEN]:
            del known[name]
    for child in node.dirs.values():
        _drop_unseen(child)


def _directories_above(paths: Iterable[bytes]) -> dict[bytes, frozenset[bytes]]:
    """For each directory above a path, which names in it lead there."""
    above: dict[bytes, set[bytes]] = {}
    for path in paths:
        while path:
            directory, _slash, name = path.rpartition(b"/")
            above.setdefault(directory, set()).add(name)
            path = directory
    return {directory: frozenset(names) for directory, names in above.items()}


def _out_of_scope(root: Node, tracked: Iterable[bytes], prefix: bytes) -> frozenset[bytes]:
    start = prefix + b"/" if prefix else b""
    nodes: dict[bytes, Node | None] = {b"": root}
    wanted = set()
    for path in tracked:
        if start:
            if not path.startswith(start):
                continue
            path = path[len(start) :]
        directory, _slash, name = path.rpartition(b"/")
        if directory not in nodes:
            nodes[directory] = root.find(directory)
        node = nodes[directory]
        if (
            node is None
            or node.partial
            or (name not in node.files and name in (*node.left, *node.guards))
        ):
            wanted.add(path)
    return frozenset(wanted)


def _count_files(fd: int, name: bytes, depth: int) -> int:
    if depth > DEEPEST:
        return 0
    try:
        inner = os.open(name, OPEN_DIRECTORY, dir_fd=fd)
    except OSError:
        return 0
    count = 0
    try:
        with os.scandir(inner) as entries:
            below = []
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    below.append(os.fsencode(entry.name))
                else:
                    count += 1
        for each in below:
            count += _count_files(inner, each, depth + 1)
    except OSError:
        return count
    finally:
        os.close(inner)
    return count


def _small_file(fd: int, name: bytes) -> bytes | None:
    """The content of an ignore file; git reads no links here, and neither do we."""
    try:
        file = os.open(name, OPEN_FILE, dir_fd=fd)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        pieces = []
        while piece := os.read(file, 1 << 16):
            pieces.append(piece)
            if len(pieces) > 1024:
                break
        return b"".join(pieces)
    except OSError:
        return None
    finally:
        os.close(file)


def _exists(fd: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return True


def _join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name
