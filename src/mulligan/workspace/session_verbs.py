"""The verbs on sessions, as a workspace has them. Each is a line: what they do is elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from mulligan.core.entries import FILE_EDIT, NewEntry

if TYPE_CHECKING:
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
    from mulligan.workspace.search.search import Filters, SearchResult
    from mulligan.workspace.search.tool_stats import Stats, Which
    from mulligan.workspace.sessions.clear_all import Cleared
    from mulligan.workspace.transfer.export import GitExport
    from mulligan.workspace.workspace import Workspace


DEFAULT_PAGE_ROWS = 50


class SessionVerbs:
    """Sessions are named by id, by an unambiguous prefix, or by `@` for the one changed last."""

    def new_session(
        self,
        *,
        id: str | None = None,
        agent: str = "",
        title: str = "",
        checkpoint: bool = True,
        process: str | int | None = None,
        **values: Any,
    ) -> Session:
        """Begins a session, with an initial checkpoint. More `values`: model, mode, memory, …

        `process` runs it, by default this one; once that is gone, the session counts as stopped.
        0 says that no process does.
        """
        from mulligan.workspace.sessions import sessions

        values |= {"agent": agent, "title": title}
        return sessions.create(
            self._self, id=id, checkpoint=checkpoint, values=values, process=process
        )

    def session(self, name: str) -> Session:
        """One session, by its id, an unambiguous beginning of it, or `@` for the latest."""
        from mulligan.workspace.sessions import sessions

        return sessions.get(self._self, name)

    def sessions(
        self,
        *,
        limit: int = DEFAULT_PAGE_ROWS,
        offset: int = 0,
        cursor: str | None = None,
        status: str | None = None,
        agent: str | None = None,
    ) -> SessionPage:
        """The sessions, newest first, in pages: go on with its cursor or its offset."""
        from mulligan.workspace.sessions import sessions

        return sessions.listed(
            self._self, limit=limit, offset=offset, cursor=cursor, status=status, agent=agent
        )

    def change_session(self, name: str, *, process: str | int | None = 0, **values: Any) -> Session:
        """Sets title, model, mode, status, memory, approval toggles, sensitive-file patterns.

        `process` runs it from now on; 0 changes nothing about that.
        """
        from mulligan.workspace.sessions import sessions

        return sessions.change(self._self, name, values, process=process)

    def delete_session(self, name: str) -> Session:
        """Drops a session with all that belongs to it; `gc` frees the space."""
        from mulligan.workspace.sessions import sessions

        return sessions.delete(self._self, name)

    def delete_all_sessions(self) -> int:
        """Deletes every session with its checkpoints, unasked; gives how many there were."""
        from mulligan.workspace.sessions import sessions

        return sessions.delete_all(self._self)

    def clear_sessions(self, confirm: str | None = None) -> Cleared:
        """The same, asked for twice: the first call only gives the word to confirm with."""
        from mulligan.workspace.sessions import clear_all

        return clear_all.clear(self._self, confirm)

    def fork(self, name: str, entry: str | None = None, *, title: str | None = None) -> Session:
        """A new session with the path to the leaf, or to an entry; all objects are shared."""
        from mulligan.workspace.sessions import navigate

        return navigate.fork(self._self, name, entry, title=title)

    def append(self, session: str, *new: NewEntry) -> list[Entry]:
        """Appends entries to a session, at its leaf or where each says."""
        from mulligan.workspace.sessions import entries

        return entries.add(self._self, session, new)

    def end_call(
        self,
        session: str,
        call: str,
        *,
        status: str = "success",
        output: str | None = None,
        duration: float | None = None,
    ) -> bool:
        """A running tool call, named by the agent's id of it or by its entry's, has ended."""
        from mulligan.workspace.sessions import entries

        return entries.end_call(
            self._self, session, call, status=status, output=output, duration=duration
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
        """Entries of all branches after a `seq`, in the order in which they were appended."""
        from mulligan.workspace.sessions import entries

        return entries.transcript(
            self._self, session, types=types, since=since, limit=limit,
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
        """The last entries, in order; its `next_seq` as `before` leads further back."""
        from mulligan.workspace.sessions import entries

        return entries.recent(
            self._self, session, limit=limit, before=before, types=types,
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
    ) -> list[Entry]:
        """The entries from the root to the leaf: the session as it stands, without other branches.

        With a `limit`, `newest` gives the last ones; `before` and `since` are cursors.
        """
        from mulligan.workspace.sessions import entries

        return entries.path(
            self._self, session, leaf=leaf, types=types, before=before, since=since, limit=limit,
            newest=newest,
        )  # fmt: skip

    def count_entries(self, session: str, *, include_compacted: bool = True) -> int:
        """How many entries a session has."""
        from mulligan.workspace.sessions import entries

        return entries.count(self._self, session, include_compacted=include_compacted)

    def files_skipped(self, session: str) -> bool:
        """True if the session was last moved to its leaf without the files."""
        from mulligan.workspace.sessions import navigate

        return navigate.files_skipped(self._self, session)

    def branches(self, session: str) -> list[Branch]:
        """The session's tree, as its unforked stretches."""
        from mulligan.workspace.sessions import entries

        return entries.branches(self._self, session)

    def entry(self, name: str, session: str | None = None) -> Entry:
        """An entry by id, prefix or label; by `#` and its seq if the session is named."""
        from mulligan.workspace.sessions import entries

        return entries.entry(self._self, name, session)

    def link_entry(self, name: str, session: str | None = None, /, **links: Any) -> bool:
        """Sets `checkpoint`, `plan_item` or `is_compacted` of an entry, and nothing else."""
        from mulligan.workspace.sessions import entries

        return entries.link(self._self, name, session, links)

    def label(self, entry: str, label: str | None, session: str | None = None) -> Entry:
        """Gives an entry a name to return to, or takes it away."""
        from mulligan.workspace.sessions import entries

        return entries.label(self._self, entry, label, session)

    def compact(
        self, session: str, before: str | int | None = None, *, summary: str | None = None
    ) -> tuple[int, Entry]:
        """Hides what came before an entry, and leaves a marker; gives how many were hidden."""
        from mulligan.workspace.sessions import entries

        return entries.compact(self._self, session, before, summary)

    def mark_compacted(self, session: str, before: int) -> int:
        """Marks the entries with a smaller `seq` as compacted; gives how many were not yet."""
        from mulligan.workspace.sessions import entries

        return entries.mark_compacted(self._self, session, before)

    def entries_of(
        self, *, checkpoint: str | None = None, plan_item: str | None = None
    ) -> list[Entry]:
        """The entries that belong to a checkpoint, or to a plan item."""
        from mulligan.workspace.sessions import entries

        return entries.linked_to(self._self, checkpoint=checkpoint, plan_item=plan_item)

    def file_edits(self, session: str, *, since: int = 0, limit: int = 1000) -> EntryPage:
        """The entries of a session that tell of an edited file, in order."""
        from mulligan.workspace.sessions import entries

        return entries.transcript(
            self._self, session, types=(FILE_EDIT,), since=since, limit=limit,
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
        """Checkpoint, entry of the message, operation. No tool may run before this returns.

        `process` runs the session from now on; 0 changes nothing about that, None is this one.
        """
        from mulligan.workspace.attribution import turns

        return turns.begin(
            self._self, session, message, id=id, include=self._self.paths(include), data=data,
            process=process,
        )  # fmt: skip

    def end_turn(
        self, session: str, *, status: str = "waiting_input", interrupted: bool = False
    ) -> Step:
        """One more tree, and what the turn changed, if it changed anything."""
        from mulligan.workspace.attribution import turns

        return turns.end(self._self, session, status=status, interrupted=interrupted)

    def observe(self) -> None:
        """Puts what happened to the disk to account now, while it is known whose doing it is."""
        from mulligan.workspace.attribution import checkpoint

        checkpoint.observe(self._self)

    def start_edit(self, session: str, paths: Sequence[str]) -> Edit:
        """An agent's tool is about to write these files: what they hold now is kept."""
        from mulligan.workspace.sessions import edits

        return edits.start(self._self, session, self._self.paths(paths))

    def finalize_edit(self, edit: Edit) -> list[Entry]:
        """The tool has written: file edits with their differences, and the ledger of its writes."""
        from mulligan.workspace.sessions import edits

        return edits.finalize(self._self, edit)

    def abort_edit(self, edit: Edit) -> tuple[str, ...]:
        """Puts bytes, modes and absence back as they were at `start_edit`."""
        from mulligan.workspace.sessions import edits

        return edits.abort(self._self, edit)

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
        """Moves a session's leaf to an entry, and the files with it unless `skip_files`."""
        from mulligan.workspace.sessions import navigate

        return navigate.goto(
            self._self, entry, session=session, skip_files=skip_files, summarize=summarize,
            summary=summary, preview=preview, force=force,
        )  # fmt: skip

    def checkpoint_at(self, entry: str, session: str | None = None) -> Checkpoint | None:
        """The checkpoint with the files as they were at an entry, if there is one."""
        from mulligan.workspace.sessions import file_states

        return file_states.checkpoint_at(self._self, entry, session)

    def modified_files(
        self, session: str, from_entry: str | None = None, to_entry: str | None = None
    ) -> list[ModifiedFile]:
        """What differs between two entries of a session: a row a file, with its earliest turn."""
        from mulligan.workspace.sessions import file_states

        return file_states.modified_files(self._self, session, from_entry, to_entry)

    def file_diff(
        self,
        session: str,
        path: str,
        from_entry: str | None = None,
        to_entry: str | None = None,
    ) -> FileDifference | None:
        """One file between two entries of a session; `None` if it is in neither."""
        from mulligan.workspace.sessions import file_states

        return file_states.file_diff(
            self._self, session, self._self.path(path), from_entry, to_entry
        )

    def export(self, session: str, format: str = "jsonl") -> Iterator[str]:
        """A session as text, in pieces: `jsonl` for programs, `markdown` or `html` to read."""
        from mulligan.workspace.transfer import export

        return export.export(self._self, session, format)

    def export_git(self, session: str, repository: str, prefix: str | None = None) -> GitExport:
        """A session's checkpoints as commits on `main` and a branch for each round."""
        from mulligan.workspace.transfer import export

        return export.export_git(self._self, session, repository, prefix)

    def search(
        self,
        text: str,
        *,
        session: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        **filters: Unpack[Filters],
    ) -> SearchResult:
        """Everything said and done with these words, ranked; each hit with a way back to it."""
        from mulligan.workspace.search import search

        return search.search(
            self._self, text, session=session, limit=limit, offset=offset, **filters
        )

    def stats(
        self, by: Sequence[str] = ("tool",), *, session: str | None = None, **which: Unpack[Which]
    ) -> Stats:
        """Which tools were used how often and how long, and how that went; no content."""
        from mulligan.workspace.search import tool_stats

        return tool_stats.stats(self._self, tuple(by), session=session, **which)

    @property
    def _self(self) -> Workspace:
        return cast("Workspace", self)
