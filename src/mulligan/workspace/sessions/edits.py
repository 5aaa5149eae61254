"""Record edits by an agent's own tools.

A file's content is stored before the tool writes. What the tool wrote goes into the ledger, to tell
it from other authors' edits, and the path is always included from then on.
"""

from __future__ import annotations

from mulligan.clock import now_ns
from mulligan.core.coverage import decode_lossy, decode_path, encode_path
from mulligan.core.diff import compare, is_binary
from mulligan.core.entries import FILE_EDIT, NewEntry
from mulligan.core.ids import ObjectId
from mulligan.core.times import rfc3339
from mulligan.core.tree import FILE, Entry, file_entry, find, link_entry, parents
from mulligan.errors import UsageError
from mulligan.journal import ledger, sessions, views
from mulligan.journal.sessions import SessionRow
from mulligan.store.writer import Writer
from mulligan.workspace.appending import appending
from mulligan.workspace.attribution.observe import (
    include_paths,
    observe,
    on_disk_not_in_tree,
    take_safety_checkpoint,
)
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.run import RestoreRequest, perform
from mulligan.workspace.restore.target import RestoreTarget
from mulligan.workspace.results.sessions import Edit
from mulligan.workspace.results.sessions import Entry as Record
from mulligan.workspace.sessions import entries as keeping
from mulligan.workspace.snapshot.checkpoints import always_include
from mulligan.workspace.snapshot.holding import last_seen
from mulligan.worktree.scan.read_path import entry_at

MAX_COMPARED_BYTES = 1 << 20
Held = tuple[str, str, str] | None


def start(project: OpenProject, name: str, paths: tuple[bytes, ...]) -> Edit:
    """Store the files' contents. Raises `OSError` for a file that cannot be read."""
    session = sessions.resolve(project.journal, name)
    if not all(paths):
        raise UsageError("Name files to edit, not the project itself.")
    with project.locked():
        if len(views.open_turns(project.journal)) > 1:
            # Attribute earlier changes to the other open turn first.
            observe(project)
        unseen = on_disk_not_in_tree(project, paths, last_seen(project))
        include_paths(project, unseen)
        if on_disk_not_in_tree(project, unseen, last_seen(project)):
            # Without an open turn, no checkpoint holds these files yet.
            take_safety_checkpoint(project, "Before an edit")
        with Writer(project.store) as writer:
            before = [entry_at(project.location.root, path, writer) for path in paths]
            writer.commit()
        _write_ledger(project, session, list(paths), before, is_open=True)
    return Edit(
        session.id, tuple(decode_path(path) for path in paths), tuple(map(_dump_entry, before))
    )


def finalize(project: OpenProject, edit: Edit) -> list[Record]:
    """Append the edits to the session, and to the ledger."""
    session = sessions.resolve(project.journal, edit.session)
    paths = [project.path(path) for path in edit.paths]
    with project.locked():
        with Writer(project.store) as writer:
            now = [entry_at(project.location.root, path, writer) for path in paths]
            writer.commit()
        then = [
            _load_entry(project, path, held) for path, held in zip(paths, edit.before, strict=True)
        ]
        records = [
            _record(project, path, before, after)
            for path, before, after in zip(paths, then, now, strict=True)
            if before != after
        ]
        with project.journal.writing() as db:
            appender = appending(db, session.number)
            first = appender.seq
            for record in records:
                appender.append(record)
            appender.finish()
        _record_writes(project, session, paths, now)
        if len(views.open_turns(project.journal)) > 1:
            observe(project, acting=session.number)
    if not records:
        return []
    page = keeping.transcript(
        project, session.id, types=(FILE_EDIT,), since=first, limit=len(records),
        include_compacted=True,
    )  # fmt: skip
    return list(page.entries)


def record_tool_write(project: OpenProject, session: SessionRow, paths: list[bytes]) -> None:
    """Record files that a tool has written, and always include them."""
    with project.locked():
        with Writer(project.store) as writer:
            now = [entry_at(project.location.root, path, writer) for path in paths]
            writer.commit()
        _record_writes(project, session, paths, now)


def abort(project: OpenProject, edit: Edit) -> tuple[str, ...]:
    """Restore the files; return the changed paths."""
    session = sessions.resolve(project.journal, edit.session)
    paths = [project.path(path) for path in edit.paths]
    wanted = {
        path: _load_entry(project, path, held)
        for path, held in zip(paths, edit.before, strict=True)
    }
    with project.locked():
        # A file that the tool made must be in scope to be deleted.
        always_include(project, [path for path, entry in wanted.items() if entry is None])
        known = last_seen(project)
        wanted |= {
            above: None
            for path, entry in wanted.items()
            if entry is None and known is not None
            for above in parents(path)
            if find(known, above, project.load) is None
        }
        target = RestoreTarget("abort_edit", None, wanted, {}, {}, session=session.id)
        done = perform(project, RestoreRequest(lambda now: target)).result
        _write_ledger(project, session, paths, [None] * len(paths), is_open=False)
    return (*done.restored, *done.deleted)


def _record_writes(
    project: OpenProject, session: SessionRow, paths: list[bytes], now: list[Entry | None]
) -> None:
    """Write the ledger, and always include files that no scan covers."""
    known = last_seen(project)
    there = [path for path, entry in zip(paths, now, strict=True) if entry is not None]
    always_include(
        project,
        [path for path in there if known is None or not find(known, path, project.load)],
    )
    _write_ledger(project, session, paths, now, is_open=False)


def _write_ledger(
    project: OpenProject,
    session: SessionRow,
    paths: list[bytes],
    now: list[Entry | None],
    *,
    is_open: bool,
) -> None:
    contents = [entry.id if entry else None for entry in now]
    moment = rfc3339(now_ns())
    with project.journal.writing() as db:
        ledger.record(
            db, session.number, zip(paths, contents, strict=True), created_at=moment,
            is_open=is_open,
        )  # fmt: skip


def _record(
    project: OpenProject, path: bytes, before: Entry | None, after: Entry | None
) -> NewEntry:
    operation = "create" if before is None else "delete" if after is None else "modify"
    data: dict[str, object] = {"path": decode_path(path), "operation": operation}
    if before is not None:
        data["beforeHash"] = before.id.hex()
    if after is not None:
        data["afterHash"] = after.id.hex()
    sizes = [entry.size for entry in (before, after) if entry is not None]
    if max(sizes, default=0) <= MAX_COMPARED_BYTES:
        old = project.store.get(before.id) if before is not None else b""
        new = project.store.get(after.id) if after is not None else b""
        if not is_binary(old) and not is_binary(new):
            shown, additions, deletions = compare(
                old, new, old_name=b"a/" + path if before else b"/dev/null",
                new_name=b"b/" + path if after else b"/dev/null",
            )  # fmt: skip
            data |= {"diff": decode_lossy(shown), "additions": additions, "deletions": deletions}
    return NewEntry(FILE_EDIT, "", data)


def _dump_entry(entry: Entry | None) -> Held:
    return None if entry is None else (entry.kind.decode(), f"{entry.mode:o}", entry.id.hex())


def _load_entry(project: OpenProject, path: bytes, held: Held) -> Entry | None:
    if held is None:
        return None
    kind, mode, id = held
    name = path.rpartition(b"/")[2]
    content = ObjectId(bytes.fromhex(id))
    size = project.store.size(content)
    if encode_path(kind) == FILE:
        return file_entry(name, int(mode, 8), size, content)
    return link_entry(name, size, content)
