"""Rounds: stretches of a session's work, approved or thrown away.

`approve` moves the baseline to what the disk holds; `reset` moves the disk back to the baseline.
Both begin a new round, any number of times, and both can be undone.
"""

from __future__ import annotations

from mulligan.journal import checkpoints, operations, sessions, views
from mulligan.journal.operations import OperationRow
from mulligan.journal.sessions import SessionRow
from mulligan.journal.views import View
from mulligan.workspace.attribution.observation import Observation, observing
from mulligan.workspace.attribution.turns import record_open_turns, round_name
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.run import RestoreRequest, perform
from mulligan.workspace.restore.target import RestoreTarget
from mulligan.workspace.results.files import FileChange
from mulligan.workspace.results.review import Approved, Reset, Round, RoundStatus
from mulligan.workspace.review.discard import undoing
from mulligan.workspace.review.pending import files
from mulligan.workspace.snapshot.diff import described


def approve(project: OpenProject, name: str, message: str = "") -> Approved:
    """What the disk holds is what the user wants. Uncommitted changes are taken in first."""
    with project.locked():
        record_open_turns(project)
        session = sessions.resolve(project.journal, name)
        with observing(project) as now:
            view = now.view(session.number)
            now.commit()
            before = endings(project, session).get(view.round - 1)
            count = _count(project, session, None)
            count -= _count(project, session, before) if before is not None else 0
            listed = checkpoints.listed(project.journal, session.id)
            with project.journal.writing() as db:
                row = listed[-1] if listed else None
                if row is None or (row.tree, row.guarded) != (now.seen.tree, now.seen.guarded):
                    row = now.checkpoint(
                        db, kind="turn", message=message or "Before approving", session=session.id
                    )
                    count += 1
                open_now = now.seen.tree if view.is_open else None
                after = View(view.round + 1, open_now, open_now, open_now)
                number = now.record(
                    db, kind="approve", after=row, before=row.id, session=session.id,
                    changed=True, changes={session.number: after},
                    summary={"message": message, "round": view.round, "checkpoints": count},
                )  # fmt: skip
        project.save_cache()
    return Approved(session.id, row.id, round_name(after), count, number)


def reset(project: OpenProject, name: str, *, force: bool = False, preview: bool = False) -> Reset:
    """The disk goes back to the baseline, what commands created included.

    Where others have changed something within the pending work, that stays and is listed, unless
    `force`; if that is all there is, nothing is done and the round goes on. The state before is in
    a safety checkpoint, and `undo` returns to it.
    """
    with project.locked():
        if not preview:
            record_open_turns(project)
        session = sessions.resolve(project.journal, name)

        def target(now: Observation) -> RestoreTarget:
            view = now.view(session.number)
            chosen = [(file, list(file.parts)) for file in files(now, only=session, turns=False)]
            wish, _undone, _conflicts = undoing(project, now, chosen, force=force)
            intent = {"round": view.round + 1, "summary": {"round": view.round}}
            return wish._replace(kind="reset", session=session.id, session_effects=intent)

        request = RestoreRequest(
            target, replace_open=force, preview=preview, counts=lambda plan: not plan.skipped
        )
        done = perform(project, request).result
    view = views.of_session(project.journal, session.number) or View()
    return Reset(session.id, done.new_checkpoint, round_name(view), done.safety_checkpoint, done)


def status(project: OpenProject, name: str) -> RoundStatus:
    """What is pending: everything that differs from the baseline."""
    with project.locked():
        session = sessions.resolve(project.journal, name)
        with observing(project) as now:
            now.commit()
            view = now.view(session.number)
            rows: tuple[FileChange, ...] = ()
            if view.approved is not None:
                rows = described(project, view.approved, now.seen)
        project.save_cache()
    merged = [each.closed_at for each in rounds(project, name) if each.status == "merged"]
    return RoundStatus(
        session.id,
        round_name(view),
        bool(rows),
        merged[-1] if merged else None,
        rows,
    )


def rounds(project: OpenProject, name: str) -> list[Round]:
    """The session's rounds, oldest first, as the operations tell them."""
    session = sessions.resolve(project.journal, name)
    view = views.of_session(project.journal, session.number) or View()
    ended = endings(project, session)
    found = []
    counted = 0
    since = session.created_at
    for number in range(1, view.round + 1):
        end = ended.get(number) if number < view.round else None
        until = end.created_at if end is not None else None
        total = _count(project, session, end)
        found.append(
            Round(
                f"session_{number}",
                "active" if end is None else "merged" if end.kind == "approve" else "abandoned",
                since,
                until,
                end.after if end is not None and end.kind == "approve" else None,
                total - counted,
            )
        )
        counted = total
        since = until or since
    return found


def endings(project: OpenProject, session: SessionRow) -> dict[int, OperationRow]:
    """The operation that ended each round; one that was undone did not."""
    found = {}
    for operation in operations.of_session(project.journal, session.id, ("approve", "reset")):
        ended = operation.summary.get("round")
        if isinstance(ended, int):
            found[ended] = operation
    return found


def _count(project: OpenProject, session: SessionRow, end: OperationRow | None) -> int:
    """Count the checkpoints that the session took until a round's end; all without one."""
    last = None if end is None else operations.last_checkpoint(project.journal, end.number)
    return checkpoints.count_listed(project.journal, session.id, last)
