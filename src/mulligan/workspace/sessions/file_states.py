"""Find the files at an entry of a session, and compare two entries.

The files at an entry are those of the nearest checkpoint at or before it on its path. A message has
the checkpoint from before it, the end of a turn the one after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.core import tree
from mulligan.core.coverage import decode_lossy, decode_path
from mulligan.core.diff import compare, is_binary
from mulligan.core.entries import STEP_SNAPSHOT, UNREVERT_POINT, USER_INPUT
from mulligan.core.tree import Entry as TreeEntry
from mulligan.errors import NotFound
from mulligan.journal import checkpoints, entries, entry_trees, sessions
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.journal.entry_trees import EntryTree
from mulligan.journal.sessions import SessionRow
from mulligan.workspace.attribution.turns import named
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import Checkpoint
from mulligan.workspace.results.sessions import FileDifference, ModifiedFile
from mulligan.workspace.snapshot.checkpoints import result


def modified_files(
    project: OpenProject, name: str, start: str | None, end: str | None
) -> list[ModifiedFile]:
    session = sessions.resolve(project.journal, name)
    before, after, since, last = _resolve_range(project, session, start, end)
    if before is None or after is None:
        return []
    first: dict[str, tuple[int | None, str]] = {}
    for step in entries.on_path(
        project.journal, session.number, last, types=(STEP_SNAPSHOT,), since=since
    ):
        data = step.data or {}
        for paths in (data.get("diff") or {}).values():
            for path in paths:
                first.setdefault(path, (data.get("turnIndex"), step.id))
    changes = named(project.differences(before.tree, after.tree))
    return sorted(
        ModifiedFile(path, status, *first.get(path, (None, None)))
        for status, paths in changes.items()
        for path in paths
    )


def file_diff(
    project: OpenProject, name: str, path: bytes, start: str | None, end: str | None
) -> FileDifference | None:
    session = sessions.resolve(project.journal, name)
    before, after, _since, _last = _resolve_range(project, session, start, end)
    old, new = (_file(project, row, path) for row in (before, after))
    if old is None and new is None:
        return None
    contents = [None if each is None else project.store.get(each.id) for each in (old, new)]
    shown = b""
    if not any(is_binary(each or b"") for each in contents):
        shown, _additions, _deletions = compare(
            contents[0] or b"", contents[1] or b"", old_name=path, new_name=path
        )
    return FileDifference(
        decode_path(path), contents[0], contents[1], old.id.hex() if old else None,
        new.id.hex() if new else None, decode_lossy(shown),
    )  # fmt: skip


def checkpoint_at(project: OpenProject, name: str, session: str | None) -> Checkpoint | None:
    owner = sessions.resolve(project.journal, session) if session is not None else None
    entry = entries.resolve(project.journal, name, owner.number if owner else None)
    owner = owner or sessions.by_number(project.journal, entry.session)
    row = state_at(project, owner, entry.seq) if owner is not None else None
    return result(project, row) if row is not None else None


def state_at(project: OpenProject, session: SessionRow, seq: int | None) -> CheckpointRow | None:
    """Return the checkpoint with the files at an entry; without `seq`, at the beginning."""
    return _state(project, session, seq)[0]


def _state(
    project: OpenProject, session: SessionRow, seq: int | None
) -> tuple[CheckpointRow | None, int]:
    """Return the checkpoint of an entry's files, and the `seq` of the entry that names it.

    Raises `NotFound` if that checkpoint was forgotten: another one would have the wrong files.
    """
    ahead = _end_of_turn(project, session, seq) if seq is not None else None
    places = [ahead] if ahead is not None else _entry_trees(project, session, seq)
    for at, linked, tree_id in places:
        row = checkpoints.by_id(project.journal, linked) if linked else None
        if row is None and tree_id:
            row = _by_tree(project, tree_id)
        if row is None and session.source is None:
            raise NotFound(
                "The checkpoint of the files at this entry was forgotten; use --no-files."
            )
        return row, at
    return beginning(project, session), 0


def _by_tree(project: OpenProject, hexadecimal: str) -> CheckpointRow | None:
    """Return the checkpoint of a tree; an imported entry may name anything."""
    try:
        return checkpoints.by_tree(project.journal, bytes.fromhex(hexadecimal))
    except (TypeError, ValueError):
        return None


def _entry_trees(project: OpenProject, session: SessionRow, seq: int | None) -> Iterator[EntryTree]:
    """Yield the entries on the path that name their files, nearest first.

    Any entry of an imported session may name them.
    """
    for branch, last in reversed(entries.path(project.journal, session.number, seq)):
        state = entry_trees.last_on_branch(
            project.journal, session.number, branch, last, any_type=session.source is not None
        )
        if state is not None:
            yield state


def _resolve_range(
    project: OpenProject, session: SessionRow, start: str | None, end: str | None
) -> tuple[CheckpointRow | None, CheckpointRow | None, int, int | None]:
    """Return the checkpoints of two entries, and the range of `seq` between them."""
    before, since = beginning(project, session), 0
    if start is not None:
        first = entries.resolve(project.journal, start, session.number)
        before, since = _state(project, session, first.seq)
    last = session.leaf
    if end is not None:
        last = entries.resolve(project.journal, end, session.number).seq
    after, at = _state(project, session, last)
    return before, after, since, max(last or 0, at) or None


def beginning(project: OpenProject, session: SessionRow) -> CheckpointRow | None:
    """Return the session's initial checkpoint, or that of its first message."""
    journal = project.journal
    initial = checkpoints.first_of_session(journal, session.id, ("initial",))
    return initial or checkpoints.of_first_prompt(journal, session.number)


def _end_of_turn(project: OpenProject, session: SessionRow, seq: int) -> EntryTree | None:
    """Return the end of the turn, if only text follows the entry."""
    here = entries.by_seq(project.journal, session.number, seq)
    if here is None or here.type in (USER_INPUT, STEP_SNAPSHOT, UNREVERT_POINT):
        return None
    return entry_trees.end_of_turn(project.journal, session.number, here.branch, seq)


def _file(project: OpenProject, row: CheckpointRow | None, path: bytes) -> TreeEntry | None:
    held = tree.find(row.tree, path, project.load) if row is not None and path else None
    return None if held is None or held.is_directory else held
