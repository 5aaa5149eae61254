"""The tools that agents are offered, over the verbs of a workspace.

Those that change files, `restore` and `undo`, do nothing without the name of a plan that was
looked at before, and say in their annotations that they are destructive.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mulligan.errors import UsageError
from mulligan.protocols.arguments import FLAG, NUMBER, TEXTS, Argument
from mulligan.protocols.mcp import plans

if TYPE_CHECKING:
    from mulligan.workspace.results.files import Checkpoint, RestoreResult
    from mulligan.workspace.workspace import Workspace

DEFAULT_PAGE_ROWS = 20
LARGEST_PAGE = 500
TEXT_LIMIT = 200_000
FILE_LIMIT = 1 << 20
REQUIRED_PLAN = "The `plan` that plan_restore gave for the same checkpoint, paths and force."


class LazyWorkspace:
    """The project that tools work on, opened when it is first needed."""

    def __init__(self, opening: Callable[[bool], Workspace]) -> None:
        self._opening = opening
        self._workspace: Workspace | None = None

    def workspace(self, *, create: bool = False) -> Workspace:
        """The project; with `create` even if it has no history yet."""
        if self._workspace is None:
            self._workspace = self._opening(create)
        return self._workspace

    def close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()


class Said(NamedTuple):
    """What a tool answers: data and, where that reads better than data, words."""

    data: dict[str, Any]
    words: str | None = None


class Tool(NamedTuple):
    title: str
    about: str
    run: Callable[..., Said]
    arguments: tuple[Argument, ...] = ()
    reads_only: bool = True
    destroys: bool = False
    can_repeat: bool = True


def take_checkpoint(place: LazyWorkspace, message: str, include: list[str]) -> Said:
    return Said(_checkpoint(place.workspace(create=True).checkpoint(message, include=include)))


def list_checkpoints(place: LazyWorkspace, limit: int, before: str | None) -> Said:
    size = _page(limit)
    found = place.workspace().log(size + 1, before)
    return Said(
        {
            "checkpoints": [_checkpoint(each) for each in found[:size]],
            "has_more": len(found) > size,
        }
    )


def status(place: LazyWorkspace) -> Said:
    found = place.workspace().status().as_json()
    for row in found["changed_files"]:
        for name in ("diff", "base_content", "old_mode", "new_mode"):
            del row[name]
    return Said(found)


def diff(place: LazyWorkspace, before: str | None, after: str | None, paths: list[str]) -> Said:
    changes = place.workspace().diff(before, after, paths)
    patch = b"".join(each.patch for each in changes).decode("utf-8", "replace")
    files = [
        {
            "path": each.path,
            "status": each.status,
            "additions": each.additions,
            "deletions": each.deletions,
        }
        for each in changes
    ]
    words = patch if len(patch) <= TEXT_LIMIT else f"{patch[:TEXT_LIMIT]}\n[… cut; name paths]\n"
    return Said({"files": files, "truncated": len(patch) > TEXT_LIMIT}, words or "No differences.")


def plan_restore(place: LazyWorkspace, checkpoint: str, paths: list[str], force: bool) -> Said:
    name, plan = plans.plan_restore(place.workspace(), checkpoint, paths, force)
    return Said({"plan": name, "checkpoint": plan.target} | _outcome(plan))


def restore(
    place: LazyWorkspace, checkpoint: str, plan: str, paths: list[str], force: bool
) -> Said:
    done = plans.restore(place.workspace(), checkpoint, paths, force, plan)
    return Said(_outcome(done) | _records(done))


def undo(place: LazyWorkspace, plan: str | None, force: bool) -> Said:
    if plan is None:
        name, would = plans.plan_undo(place.workspace(), force)
        words = "Nothing was undone yet: call undo again with this plan to do it."
        return Said({"plan": name, "undoes": would.undoes, "note": words} | _outcome(would))
    done = plans.undo(place.workspace(), force, plan)
    return Said({"undoes": done.undoes} | _outcome(done) | _records(done))


def search_sessions(
    place: LazyWorkspace,
    query: str,
    session: str | None,
    path: str | None,
    types: list[str],
    limit: int,
) -> Said:
    found = place.workspace().search(
        query, session=session, path=path, types=types, limit=_page(limit)
    )
    return Said(found.as_json())


def read_file_at(place: LazyWorkspace, checkpoint: str, path: str, offset: int, limit: int) -> Said:
    """A file as it was. What is not text goes as base64."""
    content = place.workspace().read(checkpoint, path)
    part = content[offset : offset + min(limit, FILE_LIMIT)]
    about = {
        "path": path,
        "size": len(content),
        "offset": offset,
        "truncated": offset + len(part) < len(content),
    }
    if b"\0" in part:
        return Said(about | {"base64": base64.b64encode(part).decode("ascii")})
    # A part may begin and end in the middle of a character.
    return Said(about, part.decode("utf-8", "replace"))


def list_sessions(place: LazyWorkspace, limit: int, cursor: str | None) -> Said:
    page = place.workspace().sessions.list(limit=_page(limit), cursor=cursor)
    names = ("session", "title", "agent", "status", "created_at", "updated_at")
    rows = [each.as_json() for each in page.sessions]
    return Said(
        {
            "sessions": [{name: row[name] for name in names} for row in rows],
            "next_cursor": page.next_cursor,
        }
    )


def pending_changes(place: LazyWorkspace, session: str | None, paths: list[str]) -> Said:
    return Said(place.workspace().review.pending(session=session, paths=paths).as_json())


CHECKPOINT = Argument(
    "checkpoint", about="Its id, or the beginning of it; @ is the latest, @1 the one before.",
    required=True,
)  # fmt: skip
PATHS = Argument("paths", TEXTS, "Only these files or folders.", default=[])
FORCE = Argument("force", FLAG, "Overwrite what the user has changed, too.", default=False)
LIMIT = Argument("limit", NUMBER, "At most so many.", default=DEFAULT_PAGE_ROWS)

TOOLS = {
    "take_checkpoint": Tool(
        "Take a checkpoint",
        "Takes a checkpoint of all files of the project, to return to. Do so before risky work.",
        take_checkpoint,
        (
            Argument("message", about="What it is for.", default=""),
            Argument("include", TEXTS, "Keep these from now on even if ignored.", default=[]),
        ),
        reads_only=False,
        can_repeat=False,
    ),
    "list_checkpoints": Tool(
        "List checkpoints",
        "The checkpoints, newest first.",
        list_checkpoints,
        (LIMIT, Argument("before", about="Only those older than this one.")),
    ),
    "status": Tool(
        "What changed",
        "Every file that changed since the last checkpoint, by whomever and however.",
        status,
    ),
    "diff": Tool(
        "Differences",
        "Differences as a patch: from a checkpoint to another one, or to the files as they are.",
        diff,
        (
            Argument("before", about="A checkpoint; without, the last one."),
            Argument("after", about="A checkpoint; without, the files as they are."),
            PATHS,
        ),
    ),
    "plan_restore": Tool(
        "Plan a restore",
        "What a restore would write, delete and leave alone. Changes nothing; gives a `plan`, "
        "which restore wants.",
        plan_restore,
        (CHECKPOINT, PATHS, FORCE),
    ),
    "restore": Tool(
        "Restore",
        "Brings the project, or some paths, back to a checkpoint, as plan_restore has said. The "
        "state before is kept: undo returns to it.",
        restore,
        (CHECKPOINT, Argument("plan", about=REQUIRED_PLAN, required=True), PATHS, FORCE),
        reads_only=False,
        destroys=True,
    ),
    "undo": Tool(
        "Undo",
        "Takes back the last operation that changed something. Without a plan it only says what "
        "that would do, and gives a `plan`; with it, it does so.",
        undo,
        (Argument("plan", about="The `plan` that the call before gave."), FORCE),
        reads_only=False,
        destroys=True,
        can_repeat=False,
    ),
    "search_sessions": Tool(
        "Search sessions",
        "Finds what was said and done in earlier sessions of any agent in this project.",
        search_sessions,
        (
            Argument("query", about="Words; all must be there.", required=True),
            Argument("session", about="Only in this session."),
            Argument("path", about="Only what is about this file or folder."),
            Argument("types", TEXTS, "Only entries of these types, as user_input.", default=[]),
            LIMIT,
        ),
    ),
    "read_file_at": Tool(
        "Read an old version",
        "A file as it was in a checkpoint.",
        read_file_at,
        (
            CHECKPOINT,
            Argument("path", about="The file, from the project's top.", required=True),
            Argument("offset", NUMBER, "Begin after so many bytes.", default=0),
            Argument("limit", NUMBER, "At most so many bytes.", default=FILE_LIMIT),
        ),
    ),
    "list_sessions": Tool(
        "List sessions",
        "The sessions of all agents in this project, newest first.",
        list_sessions,
        (LIMIT, Argument("cursor", about="The `next_cursor` of the page before.")),
    ),
    "pending_changes": Tool(
        "Pending changes",
        "What agents did and the user has not decided on yet, hunk by hunk.",
        pending_changes,
        (Argument("session", about="Only of this session."), PATHS),
    ),
}


def _checkpoint(found: Checkpoint) -> dict[str, Any]:
    shown = found.as_json()
    coverage = shown.pop("coverage")
    return shown | {"complete": coverage["complete"], "not_covered": coverage["skipped"]}


def _outcome(done: RestoreResult) -> dict[str, Any]:
    return {
        "restored": list(done.restored),
        "deleted": list(done.deleted),
        "skipped": [each._asdict() for each in done.skipped],
        "dirty": list(done.dirty),
    }


def _records(done: RestoreResult) -> dict[str, Any]:
    return {
        "operation": done.operation,
        "safety_checkpoint": done.safety_checkpoint,
        "new_checkpoint": done.new_checkpoint,
    }


def _page(limit: int) -> int:
    if not 1 <= limit <= LARGEST_PAGE:
        raise UsageError(f"limit must be between 1 and {LARGEST_PAGE}.")
    return limit
