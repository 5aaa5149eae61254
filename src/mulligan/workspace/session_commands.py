"""Commands on sessions: `workspace.sessions`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mulligan.core.entries import FILE_EDIT, NewEntry
from mulligan.workspace.attribution import turns
from mulligan.workspace.attribution.observe import observe
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import Checkpoint
from mulligan.workspace.results.sessions import (
    Branch,
    Edit,
    Entry,
    EntryPage,
    FileDifference,
    ModifiedFile,
    Navigation,
    Session,
    SessionPage,
)
from mulligan.workspace.results.turns import Step, Turn
from mulligan.workspace.sessions import clear_all, edits, entries, file_states, navigate, sessions
from mulligan.workspace.sessions.clear_all import Cleared
from mulligan.workspace.transfer import export
from mulligan.workspace.transfer.export import GitExport

DEFAULT_PAGE_ROWS = 50
# Inside the class, `list` is a method.
Entries = list[Entry]
Branches = list[Branch]
ModifiedFiles = list[ModifiedFile]


class SessionCommands:
    """Create, read, change and navigate sessions, and run turns in them.

    A session is named by its id, an unambiguous prefix, or `@` for the one changed last.
    """

    def __init__(self, project: OpenProject) -> None:
        self._project = project

    def create(
        self,
        *,
        id: str | None = None,
        agent: str = "",
        title: str = "",
        checkpoint: bool = True,
        process: str | int | None = None,
        **values: Any,
    ) -> Session:
        """Create a session with an initial checkpoint. More `values`: model, mode, memory, …

        `process` runs it, by default the calling one; once that process is gone, the session
        counts as stopped. 0 means no process.
        """
        values |= {"agent": agent, "title": title}
        return sessions.create(
            self._project, id=id, checkpoint=checkpoint, values=values, process=process
        )

    def get(self, name: str) -> Session:
        """Return a session by id, unambiguous prefix, or `@` for the latest."""
        return sessions.get(self._project, name)

    def list(
        self,
        *,
        limit: int = DEFAULT_PAGE_ROWS,
        offset: int = 0,
        cursor: str | None = None,
        status: str | None = None,
        agent: str | None = None,
    ) -> SessionPage:
        """List sessions in pages, newest first; continue with the page's cursor or an offset."""
        return sessions.listed(
            self._project, limit=limit, offset=offset, cursor=cursor, status=status, agent=agent
        )

    def change(self, name: str, *, process: str | int | None = 0, **values: Any) -> Session:
        """Change title, model, mode, status, memory, approval toggles, sensitive-file patterns.

        `process` runs it from now on; 0 leaves the process as it is.
        """
        return sessions.change(self._project, name, values, process=process)

    def delete(self, name: str) -> Session:
        """Delete a session with its entries and checkpoints; `gc` frees the space."""
        return sessions.delete(self._project, name)

    def delete_all(self) -> int:
        """Delete every session with its checkpoints, without asking; return their count."""
        return sessions.delete_all(self._project)

    def clear(self, confirm: str | None = None) -> Cleared:
        """Delete every session in two calls: the first returns the word to confirm with."""
        return clear_all.clear(self._project, confirm)

    def fork(self, name: str, entry: str | None = None, *, title: str | None = None) -> Session:
        """Create a session from the path to the leaf, or to an entry; objects are shared."""
        return navigate.fork(self._project, name, entry, title=title)

    def append(self, session: str, *new: NewEntry) -> Entries:
        """Append entries at the session's leaf, or at the parent that each names."""
        return entries.add(self._project, session, new)

    def end_call(
        self,
        session: str,
        call: str,
        *,
        status: str = "success",
        output: str | None = None,
        duration: float | None = None,
    ) -> bool:
        """Mark a running tool call as ended; `call` is the agent's id or the entry's."""
        return entries.end_call(
            self._project, session, call, status=status, output=output, duration=duration
        )

    def transcript(
        self,
        session: str,
        *,
        types: Sequence[str] = (),
        since: int = 0,
        limit: int = DEFAULT_PAGE_ROWS,
        include_compacted: bool = False,
    ) -> EntryPage:
        """List entries of all branches after a `seq`, in append order."""
        return entries.transcript(
            self._project, session, types=types, since=since, limit=limit,
            include_compacted=include_compacted,
        )  # fmt: skip

    def recent(
        self,
        session: str,
        *,
        limit: int = DEFAULT_PAGE_ROWS,
        before: int | None = None,
        include_compacted: bool = False,
        types: Sequence[str] = (),
    ) -> EntryPage:
        """List the newest entries, in order; pass `next_seq` as `before` for older ones."""
        return entries.recent(
            self._project, session, limit=limit, before=before, types=types,
            include_compacted=include_compacted,
        )  # fmt: skip

    def conversation(
        self,
        session: str,
        *,
        leaf: str | None = None,
        types: Sequence[str] = (),
        before: int | None = None,
        since: int = 0,
        limit: int | None = None,
        newest: bool = False,
    ) -> Entries:
        """List the entries from the root to the leaf, without other branches.

        With a `limit`, `newest` returns the last ones; `before` and `since` are cursors.
        """
        return entries.path(
            self._project, session, leaf=leaf, types=types, before=before, since=since, limit=limit,
            newest=newest,
        )  # fmt: skip

    def count_entries(self, session: str, *, include_compacted: bool = True) -> int:
        """Count the entries of a session."""
        return entries.count(self._project, session, include_compacted=include_compacted)

    def files_skipped(self, session: str) -> bool:
        """True if the last navigation skipped the files."""
        return navigate.files_skipped(self._project, session)

    def branches(self, session: str) -> Branches:
        """List the branches of the session's tree."""
        return entries.branches(self._project, session)

    def entry(self, name: str, session: str | None = None) -> Entry:
        """Return an entry by id, prefix or label, or by `#seq` if the session is named."""
        return entries.entry(self._project, name, session)

    def link_entry(self, name: str, session: str | None = None, /, **links: Any) -> bool:
        """Set `checkpoint`, `plan_item` or `is_compacted` of an entry."""
        return entries.link(self._project, name, session, links)

    def label(self, entry: str, label: str | None, session: str | None = None) -> Entry:
        """Label an entry, or remove its label."""
        return entries.label(self._project, entry, label, session)

    def compact(
        self, session: str, before: str | int | None = None, *, summary: str | None = None
    ) -> tuple[int, Entry]:
        """Compact the entries before one, and append a marker; return how many were compacted."""
        return entries.compact(self._project, session, before, summary)

    def mark_compacted(self, session: str, before: int) -> int:
        """Mark entries with a smaller `seq` as compacted; return how many were not yet."""
        return entries.mark_compacted(self._project, session, before)

    def linked_entries(
        self, *, checkpoint: str | None = None, plan_item: str | None = None
    ) -> Entries:
        """List the entries linked to a checkpoint or a plan item."""
        return entries.linked_to(self._project, checkpoint=checkpoint, plan_item=plan_item)

    def file_edits(self, session: str, *, since: int = 0, limit: int = 1000) -> EntryPage:
        """List the session's file edits, in order."""
        return entries.transcript(
            self._project, session, types=(FILE_EDIT,), since=since, limit=limit,
            include_compacted=True,
        )  # fmt: skip

    def begin_turn(
        self,
        session: str,
        message: str,
        *,
        id: str | None = None,
        include: Sequence[str] = (),
        data: dict[str, Any] | None = None,
        process: str | int | None = 0,
    ) -> Turn:
        """Begin a turn: checkpoint, message entry, operation. Call before any tool runs.

        `process` runs the session from now on; 0 leaves the process as it is, None is the caller.
        """
        return turns.begin(
            self._project, session, message, id=id, include=self._project.paths(include), data=data,
            process=process,
        )  # fmt: skip

    @contextmanager
    def turn(self, session: str, message: str, *, include: Sequence[str] = ()) -> Iterator[Turn]:
        """Run a turn: begin it, and end it when the block ends; an exception interrupts it."""
        begun = self.begin_turn(session, message, include=include)
        try:
            yield begun
        except BaseException:
            self.end_turn(begun.session, status="stopped", interrupted=True)
            raise
        self.end_turn(begun.session)

    def end_turn(
        self, session: str, *, status: str = "waiting_input", interrupted: bool = False
    ) -> Step:
        """End a turn, and record what it changed."""
        return turns.end(self._project, session, status=status, interrupted=interrupted)

    def observe(self) -> None:
        """Scan now, and attribute changes while their author is known."""
        observe(self._project)

    def start_edit(self, session: str, paths: Sequence[str]) -> Edit:
        """Store the content of files that a tool is about to write."""
        return edits.start(self._project, session, self._project.paths(paths))

    def finalize_edit(self, edit: Edit) -> Entries:
        """Record what the tool wrote: a file edit with its diff for each changed file."""
        return edits.finalize(self._project, edit)

    def abort_edit(self, edit: Edit) -> tuple[str, ...]:
        """Restore content, modes and absence as of `start_edit`."""
        return edits.abort(self._project, edit)

    def goto(
        self,
        entry: str,
        *,
        session: str | None = None,
        skip_files: bool = False,
        summarize: bool = False,
        summary: str | None = None,
        preview: bool = False,
        force: bool = False,
    ) -> Navigation:
        """Move a session's leaf to an entry, and the files with it unless `skip_files`."""
        return navigate.goto(
            self._project, entry, session=session, skip_files=skip_files, summarize=summarize,
            summary=summary, preview=preview, force=force,
        )  # fmt: skip

    def checkpoint_at(self, entry: str, session: str | None = None) -> Checkpoint | None:
        """Return the checkpoint of the files at an entry, if there is one."""
        return file_states.checkpoint_at(self._project, entry, session)

    def modified_files(
        self, session: str, from_entry: str | None = None, to_entry: str | None = None
    ) -> ModifiedFiles:
        """List files that differ between two entries, each with its earliest turn."""
        return file_states.modified_files(self._project, session, from_entry, to_entry)

    def file_diff(
        self,
        session: str,
        path: str,
        from_entry: str | None = None,
        to_entry: str | None = None,
    ) -> FileDifference | None:
        """Compare one file between two entries; `None` if neither has it."""
        return file_states.file_diff(
            self._project, session, self._project.path(path), from_entry, to_entry
        )

    def export(self, session: str, format: str = "jsonl") -> Iterator[str]:
        """Export a session as text, in pieces: `jsonl`, `markdown` or `html`."""
        return export.export(self._project, session, format)

    def export_git(self, session: str, repository: str, prefix: str | None = None) -> GitExport:
        """Export checkpoints as git commits on `main`, with a branch for each round."""
        return export.export_git(self._project, session, repository, prefix)
