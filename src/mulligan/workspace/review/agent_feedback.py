"""What the user has undone of an agent's last work, in words for the agent.

Read off the trees before and after each undoing since the agent's last turn. What was brought
back again, by a redo say, is nothing to speak of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mulligan.core.coverage import decode_lossy, decode_path
from mulligan.core.tree import Entry, differences
from mulligan.journal import checkpoints, operations
from mulligan.workspace.open_project import OpenProject

if TYPE_CHECKING:
    from mulligan.journal.sessions import SessionRow

UNDOING = ("discard", "reset", "undo", "redo")
MAX_NAMED_FILES = 20
MAX_DIFF_CHARACTERS = 6_000
"""Characters of differences: more would only take room in the agent's memory."""
MAX_FILE_BYTES = 1 << 20


def rejections(project: OpenProject, session: SessionRow) -> str | None:
    """What to tell the agent at its next prompt; `None` if nothing was undone."""
    undone = _undone(project, session)
    if not undone:
        return None
    names = ", ".join(map(decode_path, sorted(undone)[:MAX_NAMED_FILES]))
    more = f" and {len(undone) - MAX_NAMED_FILES} more" if len(undone) > MAX_NAMED_FILES else ""
    said = (
        "The user has looked at your last changes and undone some of them, in: "
        f"{names}{more}. Do not make those changes again unless asked to; read the files again "
        "first."
    )
    shown = ""
    for path, (was, now) in sorted(undone.items()):
        shown += _difference(project, path, now, was)
        if len(shown) > MAX_DIFF_CHARACTERS:
            shown = shown[:MAX_DIFF_CHARACTERS].rpartition("\n")[0] + "\n(and more)\n"
            break
    return f"{said} This was undone:\n\n{shown}" if shown else said


def _undone(
    project: OpenProject, session: SessionRow
) -> dict[bytes, tuple[Entry | None, Entry | None]]:
    """By path, what the agent had made of a file, and what it is since."""
    found: dict[bytes, tuple[Entry | None, Entry | None]] = {}
    for operation in operations.of_session(project.journal, session.id, ("turn", *UNDOING)):
        if operation.kind == "turn":
            found.clear()
            continue
        rows = [
            checkpoints.by_id(project.journal, id or "")
            for id in (operation.before, operation.after)
        ]
        if rows[0] is None or rows[1] is None:
            continue
        for path, was, now in differences(rows[0].tree, rows[1].tree, project.load):
            if not any(each is not None and each.is_directory for each in (was, now)):
                found[path] = (found[path][0] if path in found else was, now)
    return {path: (was, now) for path, (was, now) in found.items() if was != now}


def _difference(project: OpenProject, path: bytes, old: Entry | None, new: Entry | None) -> str:
    from mulligan.core.diff import compare, is_binary

    if any(each is not None and each.size > MAX_FILE_BYTES for each in (old, new)):
        return ""
    before, after = (b"" if each is None else project.store.get(each.id) for each in (old, new))
    if is_binary(before) or is_binary(after):
        return ""
    shown, _additions, _deletions = compare(before, after, old_name=path, new_name=path)
    return decode_lossy(shown)
