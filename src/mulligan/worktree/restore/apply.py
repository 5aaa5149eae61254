"""Changing the user's files from one known state to another.

The order, and why each step waits for the last:

1. Every new content is written to a staging folder beside the files, synced, and read back. A full
   disk ends here, before anything has changed.
2. Files that must go are moved to the staging folder, looked at, and only then deleted.
3. Folders that are empty now and are not wanted go; wanted ones are made.
4. Each staged file changes places with the one it replaces, in one step; what came out is looked
   at, and only then deleted: not while a program has it open for writing (`leases`).
5. Modes are set, the staging folder is removed, and the folders are synced.

A path is touched only if what is there can be what the caller believes (`before`), to go by its
kind and length. What came out is read; if it is anything else, or cannot be read, it is somebody's
work: it goes back, and is reported. That also makes it safe to do the whole thing again after a
crash at any point: `staging.rescue` first puts back bytes that were caught in the middle, then
`apply` goes on where it stopped.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress

from mulligan.core.tree import Change
from mulligan.errors import NO_SPACE_ERRNOS, Corrupt, OutOfSpace
from mulligan.worktree.fs.deferred_unlink import DeferredUnlink
from mulligan.worktree.fs.rename import NoExchange, exchange, move_if_free
from mulligan.worktree.fs.safe_paths import (
    RESOURCE_ERRORS,
    Directories,
    content_matches,
    could_match,
    status_of,
)
from mulligan.worktree.fs.sync import MAX_SEPARATE_SYNCS, BackgroundSync, sync_folders
from mulligan.worktree.restore.displaced import CHANGED_CONCURRENTLY, DisplacedFiles
from mulligan.worktree.restore.making import UnnamedFile, made_for
from mulligan.worktree.restore.metadata import keep_owner, set_mode
from mulligan.worktree.restore.readback import read_back, verify
from mulligan.worktree.restore.staging_area import Slot, StagingArea, sync_file, unlink_if_there
from mulligan.worktree.restore.staging_recovery import Read, clear, set_aside
from mulligan.worktree.restore.steps import is_folder, is_removal, is_write, names_of, wants_mode

NO_NAMES = frozenset((b"", b".", b".."))


class Applied:
    """What became of each change. `skipped` paths were left as they are.

    Of those, `failed` could not be changed, while others are somebody's. `rescued` are new names
    of what somebody saved at the very moment, and whose place was taken; `wrong` are paths that,
    read back, did not hold what they should. All of it is on the disk for good when `settle` has
    returned, which is for the caller to call in any case.
    """

    __slots__ = ("done", "failed", "rescued", "settling", "skipped", "wrong")

    def __init__(self) -> None:
        self.done: list[Change] = []
        self.wrong: list[bytes] = []
        self.skipped: dict[bytes, str] = {}
        self.failed: set[bytes] = set()
        self.rescued: list[bytes] = []
        self.settling: Callable[[], None] | None = None

    def wait_durable(self) -> None:
        settling, self.settling = self.settling, None
        if settling is not None:
            settling()


def apply(
    root: bytes,
    tag: str,
    changes: Sequence[Change],
    read: Read,
    progress: Callable[[int, int], None] = lambda done, total: None,
    freeing: DeferredUnlink | None = None,
    check: Callable[[], None] = lambda: None,
    given_up: Callable[[BaseException], None] = lambda problem: None,
    *,
    replace_open: bool = False,
) -> Applied:
    """Makes every change that can be made without losing anything, and reads it back.

    `tag` names the staging folder and must be the same when an interrupted call is repeated.
    What is deleted is let go by `freeing`, if the caller has one. `check` is called before the
    first file changes, while the new contents are being synced; what it raises ends it there.
    `given_up` is told what ended it, if that was before the first file changed and nothing is left.
    With `replace_open`, files that a program has open for writing are replaced too, and what the
    program writes on goes into a file beside it, one of `rescued`.
    Raises `OutOfSpace` with nothing changed when the new contents do not fit.
    """
    with Directories(root) as directories, DeferredUnlink() as own:
        rubbish = DisplacedFiles(freeing or own, replace_open=replace_open)
        work = _Work(directories, root, tag, changes, read, progress, freeing or own, rubbish)
        try:
            return work.run(check)
        except BaseException as problem:
            if not work.has_begun and not work.stage.places:
                given_up(problem)
            raise


class _Work:
    def __init__(
        self,
        directories: Directories,
        root: bytes,
        tag: str,
        changes: Sequence[Change],
        read: Read,
        progress: Callable[[int, int], None],
        freeing: DeferredUnlink,
        rubbish: DisplacedFiles,
    ) -> None:
        self.directories = directories
        self.root = root
        self.freeing = freeing
        self.changes = changes
        self.read = read
        self.progress = progress
        self.result = Applied()
        self.has_begun = False
        self.stage = StagingArea(directories, tag)
        self.slots: dict[bytes, Slot] = {}
        self.asides: dict[bytes, Slot] = {}
        self.known: dict[bytes, os.stat_result] = {}
        self.synced: set[bytes] = set()
        self.places: list[bytes] = []
        self.rubbish = rubbish
        self.number = {change.path: index for index, change in enumerate(changes)}

    def run(self, check: Callable[[], None]) -> Applied:
        for change in self.changes:
            names = names_of(change.path)
            if b".git" in names:
                self._skip(change, "it is git's own")
            elif not NO_NAMES.isdisjoint(names):
                self._skip(change, "it is no path below the project")
        mine = [each for each in self.changes if each.path not in self.result.skipped]
        writes = [each for each in mine if is_write(each)]
        removals = [each for each in mine if is_removal(each)]
        try:
            try:
                self._stage(writes, removals, check)
            except BaseException:
                self._discard_staged()
                raise
            self.has_begun = True
            for change in removals:
                self._attempt(change, self._remove)
            for change in reversed(self.changes):
                if is_folder(change.before) and not is_folder(change.after):
                    self._attempt(change, self._remove_folder)
            for change in self.changes:
                if is_folder(change.after) and not is_folder(change.before):
                    self._attempt(change, self._make_folder)
            for index, change in enumerate(writes):
                if change.path in self.slots:
                    self._attempt(change, self._place)
                    self.progress(index + 1, len(writes))
            for change in reversed(self.changes):
                if wants_mode(change):
                    self._attempt(change, self._set_mode)
        finally:
            self._unstage()
        self._finish()
        return self.result

    def _attempt(self, change: Change, step: Callable[[Change], None]) -> None:
        """One path that cannot be changed does not keep the others from it."""
        if change.path in self.result.skipped:
            return
        try:
            step(change)
        except OSError as problem:
            if change.after is None and self._went_with_its_folder(change.path, problem):
                return
            if isinstance(problem, NotADirectoryError) or problem.errno == errno.ELOOP:
                self._skip(change, "a folder above it is not a folder any more")
            else:
                self._fail(change, problem.strerror or str(problem))

    def _went_with_its_folder(self, path: bytes, problem: OSError) -> bool:
        """Whether a path that was to go is gone because the plan let its folder go."""
        if isinstance(problem, FileNotFoundError):
            return True
        while isinstance(problem, NotADirectoryError) and path:
            path = path.rpartition(b"/")[0]
            if path in self.number and not is_folder(self.changes[self.number[path]].after):
                return True
        return False

    def _skip(self, change: Change, reason: str) -> None:
        self.result.skipped[change.path] = reason

    def _fail(self, change: Change, reason: str) -> None:
        self._skip(change, reason)
        self.result.failed.add(change.path)

    def _stage(
        self, writes: Sequence[Change], removals: Sequence[Change], check: Callable[[], None]
    ) -> None:
        is_few = len(writes) < MAX_SEPARATE_SYNCS
        try:
            self._write_all(writes, sync=is_few)
            syncing = BackgroundSync(() if is_few else self.stage.folders.values())
            try:
                check()
                self._read_back_staged(writes)
                self._make_room(removals)
            finally:
                durable = syncing.wait() or is_few
            for path, slot in self.slots.items() if not durable else ():
                if path not in self.result.skipped:
                    sync_file(*slot)
        except OSError as problem:
            if problem.errno in NO_SPACE_ERRNOS:
                raise OutOfSpace(
                    "There is not enough space on the disk for this; nothing was changed."
                ) from problem
            raise

    def _write_all(self, writes: Sequence[Change], *, sync: bool) -> None:
        made_for_each = made_for(self.root, writes)
        with Directories(self.root) as directories, closing(made_for_each):
            for change, made in made_for_each:
                try:
                    self._stage_one(directories, change, made, sync=sync)
                finally:
                    if made is not None:
                        os.close(made.fd)

    def _stage_one(
        self, directories: Directories, change: Change, made: UnnamedFile | None, *, sync: bool
    ) -> None:
        """Writes what is to come where it waits, unless it is in its place already."""
        assert change.after is not None
        near = device = None
        try:
            if made is not None:
                device = made.device
            else:
                directory, _slash, name = change.path.rpartition(b"/")
                near = directories.open_if_there(directory)
                if near is not None and content_matches(near, name, change.after):
                    return
                device = os.fstat(near).st_dev if near is not None else None
            slot = self._slot(change.path, b"w", device)
        except OSError as problem:
            if problem.errno in RESOURCE_ERRORS:
                raise
            self._fail(change, problem.strerror or str(problem))
            return
        self.slots[change.path] = slot
        try:
            self.stage.write(slot, change.after, self.read, near=near, made=made, sync=sync)
        except Corrupt as problem:
            unlink_if_there(slot)
            self._fail(change, str(problem))

    def _read_back_staged(self, writes: Sequence[Change]) -> None:
        """While it is being synced: what would not be right in its place never gets there."""
        for change in writes:
            slot = self.slots.get(change.path)
            if slot is None or change.after is None or change.path in self.result.skipped:
                continue
            try:
                known = read_back(slot, change.after)
            except ValueError as problem:
                unlink_if_there(slot)
                self._fail(change, str(problem))
            else:
                if known is not None:
                    self.known[change.path] = known

    def _make_room(self, removals: Sequence[Change]) -> None:
        for change in removals:
            try:
                device = self._device_of(change.path)
                self.asides[change.path] = self._slot(change.path, b"r", device)
            except OSError as problem:
                if problem.errno in RESOURCE_ERRORS:
                    raise
                self._fail(change, problem.strerror or str(problem))

    def _device_of(self, path: bytes) -> int | None:
        """The file system that the folder of a path seems to be on. Were that not so, what is there
        could not be moved, and would stay."""
        with suppress(OSError):
            folder = self.directories.lstat_unchecked(path.rpartition(b"/")[0])
            return folder.st_dev if folder is not None else None
        return None

    def _remove(self, change: Change) -> None:
        before = change.before
        assert before is not None
        parent, name = self._parent(change.path)
        status = status_of(parent, name)
        if status is None:
            return
        if not could_match(status, before):
            if change.after is None or not content_matches(parent, name, change.after, status):
                self._skip(change, CHANGED_CONCURRENTLY)
            return
        slot = self.asides[change.path]
        os.rename(name, slot.name, src_dir_fd=parent, dst_dir_fd=slot.fd)
        self._touched(change.path)
        reason = self.rubbish.accept(change, slot)
        if reason is None:
            return
        # It was changed since it was looked at, or will be: what came out is theirs, and goes back.
        self._skip(change, reason)
        move_if_free(slot.name, slot.fd, name, parent)

    def _remove_folder(self, change: Change) -> None:
        parent, name = self._parent(change.path)
        try:
            os.rmdir(name, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError as problem:
            if problem.errno in (errno.ENOTEMPTY, errno.EEXIST):
                self._skip(change, "holds files that are not part of the checkpoint")
                return
            if problem.errno == errno.ENOTDIR and self._is_done(change):
                return
            raise
        self.directories.forget()
        self._touched(change.path)

    def _make_folder(self, change: Change) -> None:
        assert change.after is not None
        parent, name = self._parent(change.path)
        try:
            os.mkdir(name, 0o700 | change.after.mode & 0o777, dir_fd=parent)
        except FileExistsError:
            if not content_matches(parent, name, change.after):
                self._skip(change, "something else is in its place")
            return
        self._touched(change.path)

    def _place(self, change: Change) -> None:
        assert change.after is not None
        parent, name = self._parent(change.path)
        slot = self.slots[change.path]
        if change.before is None or is_folder(change.before):
            try:
                move_if_free(slot.name, slot.fd, name, parent)
            except FileExistsError:
                if not content_matches(parent, name, change.after):
                    self._skip(change, "something is there that no checkpoint had in view")
                return
            self._touched(change.path)
            return
        status = status_of(parent, name)
        if status is None:
            # Deleted in the meantime: there is nothing left to lose by bringing it back.
            move_if_free(slot.name, slot.fd, name, parent)
            self._touched(change.path)
            return
        if content_matches(parent, name, change.after, status):
            return
        if not could_match(status, change.before):
            self._skip(change, CHANGED_CONCURRENTLY)
            return
        keep_owner(slot, status, self.known.get(change.path))
        try:
            exchange(slot.name, slot.fd, name, parent)
        except NoExchange:
            self._replace_in_two_steps(change, parent, name, slot)
            return
        self._touched(change.path)
        reason = self.rubbish.accept(change, slot)
        if reason is None:
            return
        # It was changed since it was looked at, or will be: what came out is theirs, and goes back.
        self._skip(change, reason)
        exchange(slot.name, slot.fd, name, parent)
        if not content_matches(slot.fd, slot.name, change.after):
            # And faster again: the name gets what was saved last, and the other is set aside.
            exchange(slot.name, slot.fd, name, parent)

    def _replace_in_two_steps(self, change: Change, parent: int, name: bytes, slot: Slot) -> None:
        assert change.before is not None
        aside = Slot(slot.fd, b"r" + slot.name[1:])
        os.rename(name, aside.name, src_dir_fd=parent, dst_dir_fd=aside.fd)
        self._touched(change.path)
        reason = self.rubbish.accept(change, aside)
        if reason is not None:
            self._skip(change, reason)
            move_if_free(aside.name, aside.fd, name, parent)
            return
        try:
            move_if_free(slot.name, slot.fd, name, parent)
        except OSError:
            # Its place is empty, unless somebody was faster: then that is theirs.
            self.rubbish.give_back()
            with suppress(FileExistsError):
                move_if_free(aside.name, aside.fd, name, parent)
            raise

    def _set_mode(self, change: Change) -> None:
        assert change.after is not None
        if not set_mode(*self._parent(change.path), change.after):
            self._skip(change, "something else is in its place")

    def _is_done(self, change: Change) -> bool:
        try:
            parent, name = self._parent(change.path)
        except OSError:
            return False
        return change.after is not None and content_matches(parent, name, change.after)

    def _parent(self, path: bytes) -> tuple[int, bytes]:
        directory, _slash, name = path.rpartition(b"/")
        return self.directories.open(directory), name

    def _slot(self, path: bytes, kind: bytes, device: int | None = None) -> Slot:
        return self.stage.slot(path, kind + b"%d" % self.number[path], device)

    def _touched(self, path: bytes) -> None:
        self.synced.add(path.rpartition(b"/")[0])

    def _finish(self) -> None:
        """Looks whether everything is right, and begins to have it on the disk for good."""
        skipped = self.result.skipped
        self.result.done = [each for each in self.changes if each.path not in skipped]
        # Before the disk is busy, for then each look takes several times as long.
        self.result.wrong = verify(self.root, self.result.done, self.known)
        places = self.places if len(self.synced) >= MAX_SEPARATE_SYNCS else []
        descriptors = [os.dup(self.directories.open(place)) for place in places]
        syncing = BackgroundSync(descriptors)

        def settle() -> None:
            durable = syncing.wait()
            for fd in descriptors:
                os.close(fd)
            if not durable:
                sync_folders(self.root, self.synced)

        self.result.settling = settle

    def _discard_staged(self) -> None:
        for slot in self.slots.values():
            unlink_if_there(slot)

    def _unstage(self) -> None:
        """Whatever is left in the staging folders goes where it belongs; nothing is lost."""
        for change, slot, reason in self.rubbish.delete_all():
            if reason == CHANGED_CONCURRENTLY or not self.rubbish.replace_open:
                self._skip(change, reason)
            else:
                directory, _slash, name = change.path.rpartition(b"/")
                saved = set_aside(self.directories, slot.fd, slot.name, directory, name)
                self.result.rescued.append(saved)
        for place, fd in list(self.stage.folders.items()):
            try:
                self.result.rescued += clear(self.directories, fd, self.changes, self.read)
            except BaseException:
                os.close(fd)
                raise
            self.freeing.hold(fd)
            self.places.append(place)
            if not self.stage.remove(place):
                # Some file systems keep a name for what is deleted while it is open: by us, or by
                # somebody else. Then the folder stays, and nothing of ours is in it.
                self.freeing.finish()
                self.stage.remove(place)
            self.synced.add(place)
