"""Compare checkpoints with each other, or with the disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

from mulligan.core import patches, tree
from mulligan.core.coverage import Coverage, decode_lossy, decode_path
from mulligan.core.diff import compare as compare_lines
from mulligan.core.diff import is_binary, split_lines
from mulligan.core.renames import Candidate, exact_renames, similar_renames
from mulligan.core.tree import LINK, Change, Entry, Load
from mulligan.errors import Busy, NotFound, NotWritable, OutOfSpace
from mulligan.journal import checkpoints, operations
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.store.writer import Writer
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import Differences, FileChange, FolderChange, Status
from mulligan.workspace.snapshot.checkpoints import coverage
from mulligan.workspace.snapshot.snapshot import Snapshot
from mulligan.workspace.snapshot.take import take_snapshot, take_unstored
from mulligan.worktree.fs.safe_paths import Directories, is_file

MAX_COMPARED_BYTES = 1 << 20
MAX_PATCHED_BYTES = 16 << 20
"""Larger files are omitted even from a patch with whole contents."""
Read = Callable[[bytes], bytes]


def status(project: OpenProject) -> Status:
    """Return every change since the last checkpoint."""
    row = baseline(project)
    seen, load, read = _scan_disk(project)
    changes = tree.differences(row.tree, seen.tree, load)
    rows = (_describe(change, read) for change in _files(changes, seen.coverage, project))
    folders = _folders(changes, seen.coverage, project)
    guarded = guarded_changes(row, seen, load)
    return Status(row.id, tuple(rows), seen.coverage, guarded, tuple(folders))


def guarded_changes(before: CheckpointRow, seen: Snapshot, load: Load) -> tuple[str, ...]:
    """Return the guarded files of a checkpoint that were deleted or modified since."""
    return tuple(
        decode_path(path)
        for path, was, now in tree.differences(before.guarded, seen.guarded, load)
        if was is not None
        and not was.is_directory
        and not was.same_content(now)
        and tree.find(seen.tree, path, load) is None
    )


def described(project: OpenProject, before: bytes, seen: Snapshot) -> tuple[FileChange, ...]:
    """Describe the files that differ between a tree and a snapshot, as `status` does."""
    files = _files(project.differences(before, seen.tree), seen.coverage, project)
    return tuple(_describe(change, project.store.get) for change in files)


def compare(
    project: OpenProject,
    before: str | None,
    after: str | None,
    paths: tuple[bytes, ...],
    *,
    binary: bool = False,
) -> Differences:
    """Return differences with full patches; a rename is one row.

    With `binary`, patches of binary and large files hold their contents.
    """
    if before is not None:
        old = checkpoints.resolve(project.journal, before)
    else:
        old = baseline(project)
    new = checkpoints.resolve(project.journal, after) if after is not None else None
    if new is not None:
        new_tree: bytes = new.tree
        load: Load = project.load
        read: Read = project.store.get
        covered = Coverage()
    else:
        seen, load, read = _scan_disk(project)
        new_tree, covered = seen.tree, seen.coverage
    for path in paths:
        _check_named(project, path, (old.tree, new_tree), load)
    on_disk = project if new is None else None
    changes = [
        change
        for change in _known_to_both(
            project, old, new, project.differences(old.tree, new_tree, load)
        )
        if not paths or any(within(change.path, path) for path in paths)
    ]
    files = list(_split_type_changes(_files(changes, covered, on_disk)))
    project.store.prefetch({each.id for change in files for each in change[1:] if each})
    return Differences(
        old.id,
        new.id if new is not None else None,
        tuple(_with_renames(files, read, binary=binary)),
        tuple(_folders(changes, covered, on_disk)),
    )


def baseline(project: OpenProject) -> CheckpointRow:
    """Return the checkpoint to compare the project with.

    It is the last one taken, or the one that the whole project was restored to since.
    """
    latest = checkpoints.latest(project.journal)
    if latest is not None and latest.kind == "restored":
        operation = operations.newest_first(project.journal, 1)[0]
        target = checkpoints.by_id(project.journal, operation.target or "")
        whole = target is not None and target.tree == latest.tree
        if operation.after == latest.id and operation.kind != "undo" and whole:
            return latest
    return checkpoints.resolve(project.journal, "@")


def is_partial(project: OpenProject, row: CheckpointRow) -> bool:
    """True if a checkpoint holds some files only."""
    return not row.complete and coverage(project, row).is_partial


def is_held(entry: Entry | None, other: Entry | None) -> bool:
    """True if a partial checkpoint knows the state of this entry.

    Of a folder it knows that it existed, but not its mode.
    """
    if entry is None:
        return False
    return not (entry.is_directory and other is not None and other.is_directory)


def within(path: bytes, folder: bytes) -> bool:
    """True if a path is `folder` or below it."""
    return not folder or path == folder or path.startswith(folder + b"/")


def _scan_disk(project: OpenProject) -> tuple[Snapshot, Load, Read]:
    """Scan the disk; store new contents if possible, as the next checkpoint needs them."""
    try:
        with project.locked(wait=0.2):
            with Writer(project.store) as writer:
                seen = take_snapshot(project, writer)
                writer.commit()
            project.save_cache()
        return seen, project.load, project.store.get
    except (Busy, OutOfSpace, NotWritable):
        seen, kept = take_unstored(project)

    def read(id: bytes) -> bytes:
        return kept[id] if id in kept else project.store.get(id)

    def load(id: bytes) -> tree.Tree:
        return tree.decode(kept[id]) if id in kept else project.load(id)

    return seen, load, read


def _known_to_both(
    project: OpenProject, old: CheckpointRow, new: CheckpointRow | None, changes: list[Change]
) -> list[Change]:
    """Return the changes that both sides know about; two partial ones are compared as they are.

    Without `new` the other side is the disk.
    """
    if is_partial(project, old):
        if new is None or not is_partial(project, new):
            return [each for each in changes if is_held(each.before, each.after)]
    elif new is not None and is_partial(project, new):
        return [each for each in changes if is_held(each.after, each.before)]
    return changes


def _check_named(project: OpenProject, path: bytes, roots: tuple[bytes, ...], load: Load) -> None:
    """Raise if a given path exists on neither side."""
    known = not path or any(tree.find(root, path, load) is not None for root in roots)
    if not known and not os.path.lexists(os.path.join(project.location.root, path)):
        raise NotFound(
            f"There is no {decode_path(path)}, neither on disk nor in the checkpoints named."
        )


def _files(
    changes: Iterable[Change], covered: Coverage, on_disk: OpenProject | None
) -> Iterator[Change]:
    """Return changes of files only.

    Unreadable files, and files that are only ignored now, are not shown as deleted.
    """
    with ExitStack() as stack:
        disk = None
        if on_disk is not None:
            disk = stack.enter_context(Directories(on_disk.location.root))
        for change in changes:
            before = change.before if change.before and not change.before.is_directory else None
            after = change.after if change.after and not change.after.is_directory else None
            if before is None and after is None:
                continue
            if after is None and covered.skipped and covered.reason_for(change.path):
                continue
            if change.after is None and disk is not None and is_file(disk, change.path):
                continue
            yield Change(change.path, before, after)


def _folders(
    changes: Iterable[Change], covered: Coverage, on_disk: OpenProject | None
) -> Iterator[FolderChange]:
    """Return changes of folders that contain no changed file."""
    for path, before, after in changes:
        was = before if before is not None and before.is_directory else None
        now = after if after is not None and after.is_directory else None
        if was is not None and now is not None:
            if was.mode != now.mode:
                yield FolderChange(
                    decode_path(path), "modified", f"{was.mode:04o}", f"{now.mode:04o}"
                )
        elif now is not None and now.id == tree.EMPTY_ID:
            yield FolderChange(decode_path(path), "added", None, f"{now.mode:04o}")
        elif was is not None and was.id == tree.EMPTY_ID:
            still = on_disk is not None and os.path.isdir(os.path.join(on_disk.location.root, path))
            if not (still and after is None) and not covered.reason_for(path):
                yield FolderChange(decode_path(path), "deleted", f"{was.mode:04o}")


def _with_renames(changes: list[Change], read: Read, *, binary: bool) -> Iterator[FileChange]:
    files = [each for each in changes if LINK not in (_kind(each.before), _kind(each.after))]
    gone = [_candidate(each.path, each.before) for each in files if each.after is None]
    new = [_candidate(each.path, each.after) for each in files if each.before is None]
    pairs = {new_path: old_path for old_path, new_path in exact_renames(gone, new)}
    taken = set(pairs.values())
    rest_gone = [each for each in gone if each.path not in taken]
    rest_new = [each for each in new if each.path not in pairs]
    texts: dict[bytes, bytes] = {}
    if rest_gone and rest_new:
        small = {each.id for each in (*rest_gone, *rest_new) if each.size <= MAX_COMPARED_BYTES}

        def read_small(id: bytes) -> bytes | None:
            if id in small:
                texts[id] = read(id)
            return texts.get(id)

        similar = similar_renames(rest_gone, rest_new, read_small)
        pairs |= {new_path: old_path for old_path, new_path, _score in similar}
        taken |= {old_path for old_path, _new, _score in similar}

    def read_once(id: bytes) -> bytes:
        # The patch below needs the same contents as the rename detection.
        known = texts.pop(id, None)
        return read(id) if known is None else known

    before = {each.path: each.before for each in changes if each.before is not None}
    for change in changes:
        if change.path in taken and change.after is None:
            continue
        old_path = pairs.get(change.path) if change.before is None else None
        if old_path is not None:
            change = Change(change.path, before[old_path], change.after)
        row = _describe(change, read_once, old_path=old_path, whole=True)
        if binary and (row.is_binary or row.is_too_large):
            row = row._replace(patch=_whole_patch(change, old_path, read))
        yield row


def _split_type_changes(changes: Iterable[Change]) -> Iterator[Change]:
    """Split a change of type (file to link or back) into a deletion and an addition."""
    for change in changes:
        path, before, after = change
        if before is not None and after is not None and before.kind != after.kind:
            yield Change(path, before, None)
            yield Change(path, None, after)
        else:
            yield change


def _kind(entry: Entry | None) -> bytes | None:
    return entry.kind if entry is not None else None


def _candidate(path: bytes, entry: Entry | None) -> Candidate:
    assert entry is not None
    return Candidate(path, entry.id, entry.size)


def _describe(
    change: Change, read: Read, *, old_path: bytes | None = None, whole: bool = False
) -> FileChange:
    """Describe one change. `whole` adds a patch, also for added and deleted files."""
    path, before, after = change
    state = "modified"
    if old_path is not None:
        state = "renamed"
    elif before is None:
        state = "added"
    elif after is None:
        state = "deleted"
    too_large = any(
        entry is not None and entry.size > MAX_COMPARED_BYTES for entry in (before, after)
    )
    old = read(before.id) if before is not None and not too_large else b""
    new = read(after.id) if after is not None and not too_large else b""
    binary = not too_large and (is_binary(old) or is_binary(new))
    additions = deletions = 0
    shown: bytes | None = None
    if not too_large and not binary:
        if whole or state == "modified":
            shown, additions, deletions = compare_lines(
                old,
                new,
                old_name=b"a/" + (old_path or path) if before is not None else b"/dev/null",
                new_name=b"b/" + path if after is not None else b"/dev/null",
            )
        else:
            additions, deletions = len(split_lines(new)), len(split_lines(old))
    what = b"Large" if too_large else b"Binary"
    return FileChange(
        path=decode_path(path),
        status=state,
        additions=additions,
        deletions=deletions,
        diff=decode_lossy(shown) if shown else None,
        base_content=decode_lossy(old)
        if before is not None and not (binary or too_large)
        else None,
        is_binary=binary,
        is_too_large=too_large,
        old_path=decode_path(old_path) if old_path is not None else None,
        old_mode=_mode(before),
        new_mode=_mode(after),
        patch=patches.patch(change, old_path, shown, what=what) if whole else b"",
    )


def _mode(entry: Entry | None) -> str | None:
    if entry is None:
        return None
    return "120000" if entry.kind == LINK else f"{0o100000 | entry.mode:o}"


def _whole_patch(change: Change, old_path: bytes | None, read: Read) -> bytes:
    """Return the patch of a file that is not compared line by line."""
    _path, before, after = change
    if not patches.content_differs(change):
        return patches.patch(change, old_path, None)
    if any(entry is not None and entry.size > MAX_PATCHED_BYTES for entry in (before, after)):
        return patches.omitted(change.path)
    old, new = (read(entry.id) if entry is not None else None for entry in (before, after))
    return patches.patch(change, old_path, patches.binary_body(old, new))
