"""Change the user's files from one known state to another.

The order, and why each step waits for the last:

1. Write every new content to a staging directory beside the files, sync it and read it back. A
   full disk ends the restore here, before anything has changed.
2. Move the files to remove into the staging directory, compare them, and only then delete them.
3. Remove empty directories that the plan drops; create those that it adds.
4. Exchange each staged file with the file it replaces, atomically; compare the displaced file, and
   only then delete it: not while a program has it open for writing (`leases`).
5. Set modes, remove the staging directory, and sync the directories.

A path is changed only if kind and size of the file there allow the content that the plan expects
(`before`). A displaced file is read: if it has other content, or cannot be read, the user or a
program has changed it. It goes back and is reported. So the whole restore can be repeated after a
crash at any point: `staging_recovery.rescue` first puts displaced files back, then `apply` goes on.
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
from mulligan.worktree.fs.sync import MAX_SEPARATE_SYNCS, BackgroundSync, sync_directories
from mulligan.worktree.restore.displaced import CHANGED_CONCURRENTLY, DisplacedFiles
from mulligan.worktree.restore.metadata import keep_owner, set_mode
from mulligan.worktree.restore.readback import read_back, verify
from mulligan.worktree.restore.staging_area import Slot, StagingArea, sync_file, unlink_if_there
from mulligan.worktree.restore.staging_recovery import Read, clear, set_aside
from mulligan.worktree.restore.steps import is_directory, is_removal, is_write, names_of, needs_mode
from mulligan.worktree.restore.unnamed_files import UnnamedFile, with_unnamed_files

NOT_NAMES = frozenset((b"", b".", b".."))


class Applied:
    """The result of each change; durable once the caller has called `wait_durable`.

    `skipped` maps the paths that were left alone to the reason; `failed` are those of them that
    could not be changed, the others were changed by the user or a program. `rescued` are the new
    names of files that were saved during the restore and whose place was taken. `wrong` are paths
    that did not have the planned content when read back.
    """

    __slots__ = ("done", "failed", "finish_sync", "rescued", "skipped", "wrong")

    def __init__(self) -> None:
        self.done: list[Change] = []
        self.wrong: list[bytes] = []
        self.skipped: dict[bytes, str] = {}
        self.failed: set[bytes] = set()
        self.rescued: list[bytes] = []
        self.finish_sync: Callable[[], None] | None = None

    def wait_durable(self) -> None:
        """Wait until all changes are on the disk; required in any case."""
        finish_sync, self.finish_sync = self.finish_sync, None
        if finish_sync is not None:
            finish_sync()


def apply(
    root: bytes,
    tag: str,
    changes: Sequence[Change],
    read: Read,
    progress: Callable[[int, int], None] = lambda done, total: None,
    unlinker: DeferredUnlink | None = None,
    check: Callable[[], None] = lambda: None,
    on_abandon: Callable[[BaseException], None] = lambda problem: None,
    *,
    replace_open: bool = False,
) -> Applied:
    """Make every change that loses no bytes, and read it back.

    - `tag` names the staging directory; repeat an interrupted call with the same one.
    - `unlinker` deletes displaced files; by default a new one, which ends with the call.
    - `check` runs before the first file changes, while the new contents are synced; an exception
      ends the restore there.
    - `on_abandon` gets the exception if it came before the first file changed and nothing is left.
    - `replace_open` also replaces files that a program has open for writing; the displaced file
      stays beside the new one and is in `rescued`.

    Raises `OutOfSpace` with nothing changed if the new contents do not fit.
    """
    with Directories(root) as directories, DeferredUnlink() as own:
        displaced = DisplacedFiles(unlinker or own, replace_open=replace_open)
        restore = _Restore(
            directories, root, tag, changes, read, progress, unlinker or own, displaced
        )
        try:
            return restore.run(check)
        except BaseException as problem:
            if not restore.has_begun and not restore.staging.places:
                on_abandon(problem)
            raise


class _Restore:
    def __init__(
        self,
        directories: Directories,
        root: bytes,
        tag: str,
        changes: Sequence[Change],
        read: Read,
        progress: Callable[[int, int], None],
        unlinker: DeferredUnlink,
        displaced: DisplacedFiles,
    ) -> None:
        self.directories = directories
        self.root = root
        self.unlinker = unlinker
        self.changes = changes
        self.read = read
        self.progress = progress
        self.result = Applied()
        self.has_begun = False
        self.staging = StagingArea(directories, tag)
        self.slots: dict[bytes, Slot] = {}
        self.removal_slots: dict[bytes, Slot] = {}
        self.read_back_stats: dict[bytes, os.stat_result] = {}
        self.changed_directories: set[bytes] = set()
        self.staged_in: list[bytes] = []
        self.displaced = displaced
        self.index = {change.path: index for index, change in enumerate(changes)}

    def run(self, check: Callable[[], None]) -> Applied:
        self._skip_unsafe_paths()
        changes = [each for each in self.changes if each.path not in self.result.skipped]
        writes = [each for each in changes if is_write(each)]
        removals = [each for each in changes if is_removal(each)]
        try:
            try:
                self._stage(writes, removals, check)
            except BaseException:
                self._discard_staged()
                raise
            self.has_begun = True
            self._change_files(writes, removals)
        finally:
            self._unstage()
        self._finish()
        return self.result

    def _change_files(self, writes: Sequence[Change], removals: Sequence[Change]) -> None:
        """Do steps 2 to 4, and set the modes."""
        for change in removals:
            self._attempt(change, self._remove)
        for change in reversed(self.changes):
            if is_directory(change.before) and not is_directory(change.after):
                self._attempt(change, self._remove_directory)
        for change in self.changes:
            if is_directory(change.after) and not is_directory(change.before):
                self._attempt(change, self._create_directory)
        for index, change in enumerate(writes):
            if change.path in self.slots:
                self._attempt(change, self._place)
                self.progress(index + 1, len(writes))
        for change in reversed(self.changes):
            if needs_mode(change):
                self._attempt(change, self._set_mode)

    def _skip_unsafe_paths(self) -> None:
        for change in self.changes:
            names = names_of(change.path)
            if b".git" in names:
                self._skip(change, "it is inside .git")
            elif not NOT_NAMES.isdisjoint(names):
                self._skip(change, "it is not a path inside the project")

    def _attempt(self, change: Change, step: Callable[[Change], None]) -> None:
        """Run a step; an error is recorded for its path and does not stop the others."""
        if change.path in self.result.skipped:
            return
        try:
            step(change)
        except OSError as problem:
            if change.after is None and self._was_removed_with_directory(change.path, problem):
                return
            if isinstance(problem, NotADirectoryError) or problem.errno == errno.ELOOP:
                self._skip(change, "a parent directory was replaced by a file or link")
            else:
                self._fail(change, problem.strerror or str(problem))

    def _was_removed_with_directory(self, path: bytes, problem: OSError) -> bool:
        """Return whether a path to remove is gone because the plan removed its directory."""
        if isinstance(problem, FileNotFoundError):
            return True
        while isinstance(problem, NotADirectoryError) and path:
            path = path.rpartition(b"/")[0]
            if path in self.index and not is_directory(self.changes[self.index[path]].after):
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
        """Do step 1; read back while the file system syncs."""
        separately = len(writes) < MAX_SEPARATE_SYNCS
        try:
            self._write_all(writes, sync=separately)
            syncing = BackgroundSync(() if separately else self.staging.directories.values())
            try:
                check()
                self._read_back_staged(writes)
                self._assign_removal_slots(removals)
            finally:
                durable = syncing.wait() or separately
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
        files = with_unnamed_files(self.root, writes)
        with Directories(self.root) as directories, closing(files):
            for change, file in files:
                try:
                    self._stage_one(directories, change, file, sync=sync)
                finally:
                    if file is not None:
                        os.close(file.fd)

    def _stage_one(
        self, directories: Directories, change: Change, file: UnnamedFile | None, *, sync: bool
    ) -> None:
        """Write a new content to its slot, unless the path has it already."""
        assert change.after is not None
        parent = device = None
        try:
            if file is not None:
                device = file.device
            else:
                directory, _slash, name = change.path.rpartition(b"/")
                parent = directories.open_if_there(directory)
                if parent is not None and content_matches(parent, name, change.after):
                    return
                device = os.fstat(parent).st_dev if parent is not None else None
            slot = self._slot(change.path, b"w", device)
        except OSError as problem:
            if problem.errno in RESOURCE_ERRORS:
                raise
            self._fail(change, problem.strerror or str(problem))
            return
        self.slots[change.path] = slot
        try:
            self.staging.write(slot, change.after, self.read, parent=parent, file=file, sync=sync)
        except Corrupt as problem:
            unlink_if_there(slot)
            self._fail(change, str(problem))

    def _read_back_staged(self, writes: Sequence[Change]) -> None:
        """Compare the staged files with the plan; a wrong one is not moved to its place."""
        for change in writes:
            slot = self.slots.get(change.path)
            if slot is None or change.after is None or change.path in self.result.skipped:
                continue
            try:
                status = read_back(slot, change.after)
            except ValueError as problem:
                unlink_if_there(slot)
                self._fail(change, str(problem))
            else:
                if status is not None:
                    self.read_back_stats[change.path] = status

    def _assign_removal_slots(self, removals: Sequence[Change]) -> None:
        for change in removals:
            try:
                device = self._device_of(change.path)
                self.removal_slots[change.path] = self._slot(change.path, b"r", device)
            except OSError as problem:
                if problem.errno in RESOURCE_ERRORS:
                    raise
                self._fail(change, problem.strerror or str(problem))

    def _device_of(self, path: bytes) -> int | None:
        """Return the device of a path's directory; if it is wrong, the move fails harmlessly."""
        with suppress(OSError):
            status = self.directories.lstat_unchecked(path.rpartition(b"/")[0])
            return status.st_dev if status is not None else None
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
        slot = self.removal_slots[change.path]
        os.rename(name, slot.name, src_dir_fd=parent, dst_dir_fd=slot.fd)
        self._mark_changed(change.path)
        reason = self.displaced.accept(change, slot)
        if reason is None:
            return
        # Another program has changed the file, or can: put it back.
        self._skip(change, reason)
        move_if_free(slot.name, slot.fd, name, parent)

    def _remove_directory(self, change: Change) -> None:
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
        self._mark_changed(change.path)

    def _create_directory(self, change: Change) -> None:
        assert change.after is not None
        parent, name = self._parent(change.path)
        try:
            os.mkdir(name, 0o700 | change.after.mode & 0o777, dir_fd=parent)
        except FileExistsError:
            if not content_matches(parent, name, change.after):
                self._skip(change, "another kind of file is at this path")
            return
        self._mark_changed(change.path)

    def _place(self, change: Change) -> None:
        assert change.after is not None
        parent, name = self._parent(change.path)
        slot = self.slots[change.path]
        if change.before is None or is_directory(change.before):
            try:
                move_if_free(slot.name, slot.fd, name, parent)
            except FileExistsError:
                if not content_matches(parent, name, change.after):
                    self._skip(change, "no checkpoint has the file that is at this path")
                return
            self._mark_changed(change.path)
            return
        status = status_of(parent, name)
        if status is None:
            # Deleted meanwhile: nothing can be lost by restoring it.
            move_if_free(slot.name, slot.fd, name, parent)
            self._mark_changed(change.path)
            return
        if content_matches(parent, name, change.after, status):
            return
        if not could_match(status, change.before):
            self._skip(change, CHANGED_CONCURRENTLY)
            return
        keep_owner(slot, status, self.read_back_stats.get(change.path))
        try:
            exchange(slot.name, slot.fd, name, parent)
        except NoExchange:
            self._replace_in_two_steps(change, parent, name, slot)
            return
        self._mark_changed(change.path)
        reason = self.displaced.accept(change, slot)
        if reason is None:
            return
        # Another program has changed the file, or can: put it back.
        self._skip(change, reason)
        exchange(slot.name, slot.fd, name, parent)
        if not content_matches(slot.fd, slot.name, change.after):
            # The file was saved again in between: the newest content keeps the name, and
            # `_unstage` sets the other one aside.
            exchange(slot.name, slot.fd, name, parent)

    def _replace_in_two_steps(self, change: Change, parent: int, name: bytes, slot: Slot) -> None:
        assert change.before is not None
        removal_slot = Slot(slot.fd, b"r" + slot.name[1:])
        os.rename(name, removal_slot.name, src_dir_fd=parent, dst_dir_fd=removal_slot.fd)
        self._mark_changed(change.path)
        reason = self.displaced.accept(change, removal_slot)
        if reason is not None:
            self._skip(change, reason)
            move_if_free(removal_slot.name, removal_slot.fd, name, parent)
            return
        try:
            move_if_free(slot.name, slot.fd, name, parent)
        except OSError:
            # Put the old file back, unless a program has taken its place.
            self.displaced.give_back()
            with suppress(FileExistsError):
                move_if_free(removal_slot.name, removal_slot.fd, name, parent)
            raise

    def _set_mode(self, change: Change) -> None:
        assert change.after is not None
        if not set_mode(*self._parent(change.path), change.after):
            self._skip(change, "another kind of file is at this path")

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
        return self.staging.slot(path, kind + b"%d" % self.index[path], device)

    def _mark_changed(self, path: bytes) -> None:
        self.changed_directories.add(path.rpartition(b"/")[0])

    def _finish(self) -> None:
        """Verify every path, then start the final sync."""
        skipped = self.result.skipped
        self.result.done = [each for each in self.changes if each.path not in skipped]
        # Before the sync: a `stat` on a busy disk takes several times as long.
        self.result.wrong = verify(self.root, self.result.done, self.read_back_stats)
        places = self.staged_in if len(self.changed_directories) >= MAX_SEPARATE_SYNCS else []
        descriptors = [os.dup(self.directories.open(place)) for place in places]
        syncing = BackgroundSync(descriptors)

        def finish_sync() -> None:
            durable = syncing.wait()
            for fd in descriptors:
                os.close(fd)
            if not durable:
                sync_directories(self.root, self.changed_directories)

        self.result.finish_sync = finish_sync

    def _discard_staged(self) -> None:
        for slot in self.slots.values():
            unlink_if_there(slot)

    def _unstage(self) -> None:
        """Empty and remove the staging directories; keep files that are not stored."""
        for change, slot, reason in self.displaced.delete_all():
            if reason == CHANGED_CONCURRENTLY or not self.displaced.replace_open:
                self._skip(change, reason)
            else:
                directory, _slash, name = change.path.rpartition(b"/")
                saved = set_aside(self.directories, slot.fd, slot.name, directory, name)
                self.result.rescued.append(saved)
        for place, fd in list(self.staging.directories.items()):
            try:
                self.result.rescued += clear(self.directories, fd, self.changes, self.read)
            except BaseException:
                os.close(fd)
                raise
            self.unlinker.hold(fd)
            self.staged_in.append(place)
            if not self.staging.remove(place):
                # Some file systems keep a name for a deleted file that is still open. If another
                # program has it open, the directory stays.
                self.unlinker.finish()
                self.staging.remove(place)
            self.changed_directories.add(place)
