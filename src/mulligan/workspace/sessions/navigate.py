"""Move within a session's tree, and restore the files along with it.

The files at an entry are those of the nearest checkpoint at or before it on its path
(`file_states`). Moving rewrites no entry: only the leaf moves, and other branches stay reachable.
"""

from __future__ import annotations

from typing import Any

import apsw

from mulligan.clock import now_ns
from mulligan.core.entries import (
    BRANCH_SUMMARY,
    STEP_SNAPSHOT,
    TOOL_CALL,
    USER_INPUT,
    NewEntry,
)
from mulligan.core.times import just_after
from mulligan.errors import NotFound
from mulligan.journal import append, entries, operations, sessions
from mulligan.journal.checkpoints import IMPORTED
from mulligan.journal.entries import EntryRow
from mulligan.journal.sessions import SessionRow
from mulligan.journal.views import View
from mulligan.workspace.appending import appending
from mulligan.workspace.attribution.observation import Observation, observing
from mulligan.workspace.attribution.turns import record_open_turns, shortened
from mulligan.workspace.import_previews import check_preview
from mulligan.workspace.new_id import new_id
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.plan import RestorePlan
from mulligan.workspace.restore.run import RestoreRequest, perform
from mulligan.workspace.restore.target import RestoreTarget, to_checkpoint
from mulligan.workspace.restore.unrevert import append_unrevert_point
from mulligan.workspace.results.sessions import Navigation, Session
from mulligan.workspace.sessions import sessions as keeping
from mulligan.workspace.sessions.file_states import beginning, state_at
from mulligan.workspace.snapshot.checkpoints import coverage
from mulligan.workspace.snapshot.snapshot import Snapshot


def goto(
    project: OpenProject,
    name: str,
    *,
    session: str | None,
    skip_files: bool,
    summarize: bool,
    summary: str | None,
    preview: bool,
    force: bool,
) -> Navigation:
    """Move the leaf to an entry; to before a message, whose text is returned for editing."""
    with project.locked():
        owner = sessions.resolve(project.journal, session) if session is not None else None
        target = entries.resolve(project.journal, name, owner.number if owner else None)
        owner = owner or sessions.by_number(project.journal, target.session)
        assert owner is not None
        old = _entry(project, owner, owner.leaf)
        is_message = target.type == USER_INPUT
        new = _parent(project, owner, target) if is_message else target
        said = target.content if is_message else None
        done = Navigation(
            owner.id, old.id if old else None, new.id if new else None, said, None, skip_files,
            preview, None,
        )  # fmt: skip
        if target.seq == owner.leaf and not (force and not skip_files):
            return done._replace(new_leaf=target.id, text=None)
        if not preview:
            record_open_turns(project)
            owner = sessions.resolve(project.journal, owner.id)
            old = _entry(project, owner, owner.leaf)
            done = done._replace(old_leaf=old.id if old else None)
        words = summary or (_summary(project, owner, new) if summarize else None)
        if skip_files:
            return _move_leaf(project, owner, done, new, words, preview=preview)
        return _move_both(project, owner, done, target, new, words, preview=preview, force=force)


def files_skipped(project: OpenProject, name: str) -> bool:
    """True if the session was last moved to its leaf without the files."""
    owner = sessions.resolve(project.journal, name)
    moves = operations.of_session(project.journal, owner.id, ("goto", "restore"))
    intent = moves[-1].intent if moves else {}
    return bool(intent.get("skip_files")) and intent.get("leaf") == owner.leaf


def fork(project: OpenProject, name: str, entry: str | None, *, title: str | None) -> Session:
    """Make a new session with the entries up to one of another session.

    A message itself is not copied, as `goto` moves to before it.
    """
    with project.locked():
        source = sessions.resolve(project.journal, name)
        at = _entry(project, source, source.leaf)
        if entry is not None:
            at = entries.resolve(project.journal, entry, source.number)
            at = _parent(project, source, at) if at.type == USER_INPUT else at
        way = entries.path(project.journal, source.number, at.seq if at else None)
        values = {
            name: getattr(source, name)
            for name in (
                "title", "agent", "model", "mode", "directory", "memory", "auto_approve_commands",
                "auto_approve_sensitive_edits", "sensitive_file_patterns",
            )
        }  # fmt: skip
        values |= {"title": title or source.title, "forked_from": source.id}
        start = beginning(project, source)
        with observing(project) as now:
            now.commit()
            new = new_id()
            with project.journal.writing() as db:
                number = sessions.insert(db, new, _now(), values)
                leaf = append.copy(db, source.number, number, way) or None
                sessions.update(db, number, {"leaf": leaf})
                # An imported checkpoint stays linked from its message only.
                if start is not None and start.kind != IMPORTED:
                    # The fork has its own copy of the initial checkpoint.
                    began = Snapshot(
                        start.tree, start.guarded, coverage(project, start), start.files,
                        start.bytes, start.coverage, start.max_file_size,
                    )  # fmt: skip
                    now.checkpoint(
                        db, kind="initial", message=start.message, session=new, seen=began
                    )
                after = now.safety(db, "Where a fork was made")
                now.record(
                    db, kind="new_session", after=after, session=new, changes={number: View()}
                )
        project.save_cache()
    return keeping.get(project, new)


def _move_leaf(
    project: OpenProject,
    owner: SessionRow,
    done: Navigation,
    new: EntryRow | None,
    words: str | None,
    *,
    preview: bool,
) -> Navigation:
    if preview:
        return done
    with observing(project) as now:
        now.commit()
        with project.journal.writing() as db:
            after = now.safety(db, "Before going elsewhere in a session")
            leaf, summary = _append_summary(db, owner, done, new, words)
            number = now.record(
                db, kind="goto", after=after, before=after.id, session=owner.id, changed=True,
                intent={"leaf": leaf, "leaf_before": owner.leaf, "skip_files": True},
            )  # fmt: skip
            sessions.update(db, owner.number, {"leaf": leaf, "updated_at": _now()})
    return done._replace(summary_entry=summary, new_leaf=summary or done.new_leaf, operation=number)


def _move_both(
    project: OpenProject,
    owner: SessionRow,
    done: Navigation,
    target: EntryRow,
    new: EntryRow | None,
    words: str | None,
    *,
    preview: bool,
    force: bool,
) -> Navigation:
    goal = state_at(project, owner, target.seq)
    if goal is None:
        raise NotFound(
            f"No checkpoint holds the files at {target.id}: the session was not recorded here, "
            "or the checkpoint was forgotten; use --no-files."
        )
    check_preview(project, goal, force=force, preview=preview, imported=owner.source is not None)

    def on_plan(db: apsw.Connection, now: Observation, plan: RestorePlan) -> dict[str, Any]:
        """Append the point to return to, and the summary."""
        append_unrevert_point(db, owner.number, now.seen.tree, plan, new.id if new else None)
        leaf, summary = _append_summary(db, owner, done, new, words)
        return {"leaf": leaf, "leaf_before": owner.leaf, "summary_entry": summary}

    def target_of(now: Observation) -> RestoreTarget:
        wish = to_checkpoint(project, now.seen, goal, ())
        return wish._replace(kind="goto", session=owner.id)

    request = RestoreRequest(
        target_of, force=force, replace_open=force, preview=preview, counts=lambda plan: True,
        on_plan=on_plan,
    )  # fmt: skip
    outcome = perform(project, request)
    files, summary = outcome.result, outcome.session_effects.get("summary_entry")
    return done._replace(
        files=files, summary_entry=summary, new_leaf=summary or done.new_leaf,
        operation=files.operation,
    )  # fmt: skip


def _append_summary(
    db: apsw.Connection,
    owner: SessionRow,
    done: Navigation,
    new: EntryRow | None,
    words: str | None,
) -> tuple[int | None, str | None]:
    """Append the summary of the left branch, if any; return the new leaf and the summary's id."""
    if words is None:
        return (new.seq if new else None), None
    data: dict[str, Any] = {"fromId": done.old_leaf}
    if done.skip_files:
        data["skipFiles"] = True
    appender = appending(db, owner.number)
    appender.move_leaf(new.id if new else None)
    summary = new_id()
    place = appender.append(NewEntry(BRANCH_SUMMARY, words, data, id=summary))
    return place.seq, summary


def _summary(project: OpenProject, owner: SessionRow, new: EntryRow | None) -> str | None:
    """Summarise the branch that is being left; None if it is empty."""
    kept = 0
    ways = [
        entries.path(project.journal, owner.number, seq)
        for seq in (owner.leaf, new.seq if new else None)
    ]
    for (branch, last), (other, until) in zip(*ways, strict=False):
        if branch != other:
            break
        kept = min(last, until)
    way = [
        row
        for row in entries.on_path(project.journal, owner.number, owner.leaf, since=kept)
        if not row.off_path
    ]
    if not way:
        return None
    said = [shortened(row.content) for row in way if row.type == USER_INPUT]
    calls = sum(row.type == TOOL_CALL for row in way)
    files: dict[str, str] = {}
    for row in way:
        if row.type == STEP_SNAPSHOT:
            for kind, paths in ((row.data or {}).get("diff") or {}).items():
                files |= dict.fromkeys(paths, kind)
    lines = ["Another way was tried and left:"]
    lines += [f"- asked: {each}" for each in said]
    if calls:
        lines.append(f"- {calls} tool calls")
    lines += [f"- {kind} {path}" for path, kind in sorted(files.items())]
    return "\n".join(lines)


def _parent(project: OpenProject, owner: SessionRow, row: EntryRow) -> EntryRow | None:
    if row.parent is None:
        return None
    return entries.by_id(project.journal, owner.number, row.parent)


def _entry(project: OpenProject, owner: SessionRow, seq: int | None) -> EntryRow | None:
    return None if seq is None else entries.by_seq(project.journal, owner.number, seq)


def _now() -> str:
    return just_after(None, now_ns())
