"""A look at the disk on behalf of a verb, and the one place where what a verb did is recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import apsw

from mulligan.clock import now_ns
from mulligan.core.times import not_before
from mulligan.journal import checkpoints, operations, views
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.journal.views import View
from mulligan.store.writer import Writer
from mulligan.workspace.attribution.commits import kept_by_commit
from mulligan.workspace.attribution.standing import Standing, settle
from mulligan.workspace.imported import adopt
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.snapshot.checkpoints import add
from mulligan.workspace.snapshot.snapshot import Snapshot
from mulligan.workspace.snapshot.take import take_snapshot
from mulligan.workspace.snapshot.trees import Trees


class Observation:
    """The disk as it is now, and where the sessions stand with that.

    In this order: edit trees; `commit`, which puts them into the store; then, in one transaction,
    a `checkpoint` and what to `record` about it.
    """

    def __init__(
        self, project: OpenProject, writer: Writer, seen: Snapshot, standing: Standing
    ) -> None:
        self.project = project
        self.writer = writer
        self.seen = seen
        self.trees = Trees(project, writer)
        self.standing = standing

    @cached_property
    def head(self) -> str | None:
        """The commit that git stands at; of no interest while no session is at work."""
        return self.project.head()

    @cached_property
    def latest(self) -> CheckpointRow | None:
        """The last checkpoint that there is."""
        return checkpoints.latest(self.project.journal)

    def view(self, session: int) -> View:
        """Where a session stands; one that never did anything stands at its beginning."""
        found = self.standing.views.get(session)
        return found or views.of_session(self.project.journal, session) or View()

    def commit(self) -> None:
        self.writer.commit()

    def checkpoint(
        self,
        db: apsw.Connection,
        *,
        kind: str,
        message: str,
        session: str | None = None,
        entry: str | None = None,
        seen: Snapshot | None = None,
    ) -> CheckpointRow:
        """Adds a checkpoint of the disk, or of another state."""
        adopt(self.project)
        made = add(
            db, self.latest, seen or self.seen, kind=kind, message=message, session=session,
            entry=entry,
        )  # fmt: skip
        self.latest = made
        return made

    def safety(self, db: apsw.Connection, message: str) -> CheckpointRow:
        """The checkpoint of the disk as it is: the latest, if that is the same, else a new one."""
        latest = self.latest
        if latest is not None and (latest.tree, latest.guarded) == (
            self.seen.tree,
            self.seen.guarded,
        ):
            return latest
        return self.checkpoint(db, kind="safety", message=message)

    def note(self, db: apsw.Connection, after: CheckpointRow) -> None:
        """Writes down what happened to the disk since it was last seen, if it matters to anyone.

        Apart from what the verb does: undoing the verb must not undo what others did before it.
        """
        if not self.standing.moved:
            return
        number = operations.record(
            db,
            kind="observed",
            created_at=self.moment(after),
            after=after.id,
            head=self.head,
            summary=dict(self.standing.summary or {}),
        )
        for session, view in self.standing.views.items():
            views.insert(db, number, session, view)

    def record(
        self,
        db: apsw.Connection,
        *,
        kind: str,
        after: CheckpointRow,
        changes: Mapping[int, View] | None = None,
        **more: Any,
    ) -> int:
        """Notes what others did, then the operation, with the views that it gives to sessions."""
        self.note(db, after)
        head = self.head if changes or self.standing.views else None
        number = operations.record(
            db, kind=kind, created_at=self.moment(after), after=after.id, head=head, **more
        )
        for session, view in (changes or {}).items():
            views.insert(db, number, session, view)
        return number

    def moment(self, after: CheckpointRow) -> str:
        return not_before(after.created_at, now_ns())


@contextmanager
def observing(
    project: OpenProject,
    *,
    came_into_view: Collection[bytes] = (),
    acting: int | None = None,
) -> Iterator[Observation]:
    """Looks at the disk. The caller holds the lock."""
    with Writer(project.store) as writer:
        seen = take_snapshot(project, writer)
        yield observed(project, writer, seen, came_into_view=came_into_view, acting=acting)


def observed(
    project: OpenProject,
    writer: Writer,
    seen: Snapshot,
    *,
    came_into_view: Collection[bytes] = (),
    acting: int | None = None,
) -> Observation:
    """What a look means for the sessions.

    What came into view was there before, and is nobody's work. `acting` is the session that is
    just ending a turn or a call: of several at work, what was found is most likely its.
    """
    found = Observation(project, writer, seen, Standing({}, moved=False))
    standing = settle(project, found.trees, seen, came_into_view, acting)
    if standing.views:
        kept, paths = kept_by_commit(project, found.trees, standing.views, seen.tree)
        if paths:
            standing = Standing(kept, moved=True, summary={"committed": paths})
    found.standing = standing
    return found
