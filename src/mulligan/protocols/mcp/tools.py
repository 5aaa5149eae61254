"""The MCP tools, over the commands of a workspace.

The two tools that change files, `restore` and `undo`, act only on a plan that the agent has seen
before, and are annotated as destructive.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import Meta

from mulligan.protocols.mcp import plans
from mulligan.protocols.params import Count, Params

if TYPE_CHECKING:
    from mulligan.workspace.results.files import Checkpoint, RestoreResult
    from mulligan.workspace.workspace import Workspace

DEFAULT_PAGE_ROWS = 20
MAX_PAGE_ROWS = 500
MAX_PATCH_CHARACTERS = 200_000
MAX_FILE_BYTES = 1 << 20


class LazyWorkspace:
    """The project that tools work on, opened at first use."""

    def __init__(self, open_workspace: Callable[[bool], Workspace]) -> None:
        self._open_workspace = open_workspace
        self._workspace: Workspace | None = None

    def workspace(self, *, create: bool = False) -> Workspace:
        """Return the project; with `create` even if it has no history yet."""
        if self._workspace is None:
            self._workspace = self._open_workspace(create)
        return self._workspace

    def close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()


class ToolResult(NamedTuple):
    """The structured data of a result, and its text if that is not the data as JSON."""

    data: dict[str, Any]
    text: str | None = None


CheckpointName = Annotated[
    str, Meta(description="Its id, or the beginning of it; @ is the latest, @1 the one before.")
]
Paths = Annotated[tuple[str, ...], Meta(description="Only these files or folders.")]
Force = Annotated[bool, Meta(description="Overwrite what the user has changed, too.")]
Rows = Annotated[
    int, Meta(ge=1, le=MAX_PAGE_ROWS, description="The largest number of rows to return.")
]


class TakeCheckpoint(Params, frozen=True, kw_only=True):
    message: Annotated[str, Meta(description="What it is for.")] = ""
    include: Annotated[
        tuple[str, ...], Meta(description="Keep these paths from now on, even if they are ignored.")
    ] = ()


class ListCheckpoints(Params, frozen=True, kw_only=True):
    limit: Rows = DEFAULT_PAGE_ROWS
    before: Annotated[str | None, Meta(description="Only checkpoints older than this one.")] = None


class Diff(Params, frozen=True, kw_only=True):
    before: Annotated[str | None, Meta(description="A checkpoint; by default the last one.")] = None
    after: Annotated[
        str | None, Meta(description="A checkpoint; by default the files as they are now.")
    ] = None
    paths: Paths = ()


class PlanRestore(Params, frozen=True, kw_only=True):
    checkpoint: CheckpointName
    paths: Paths = ()
    force: Force = False


class Restore(Params, frozen=True, kw_only=True):
    checkpoint: CheckpointName
    plan: Annotated[
        str,
        Meta(description="The `plan` of plan_restore for the same checkpoint, paths and force."),
    ]
    paths: Paths = ()
    force: Force = False


class Undo(Params, frozen=True, kw_only=True):
    plan: Annotated[str | None, Meta(description="The `plan` of the call before.")] = None
    force: Force = False


class SearchSessions(Params, frozen=True, kw_only=True):
    query: Annotated[str, Meta(description="Words; an entry must have all of them.")]
    session: Annotated[str | None, Meta(description="Only in this session.")] = None
    path: Annotated[str | None, Meta(description="Only entries about this file or folder.")] = None
    types: Annotated[
        tuple[str, ...], Meta(description="Only entries of these types, such as user_input.")
    ] = ()
    limit: Rows = DEFAULT_PAGE_ROWS


class ReadFileAt(Params, frozen=True, kw_only=True):
    checkpoint: CheckpointName
    path: Annotated[str, Meta(description="The file, relative to the project's root.")]
    offset: Annotated[Count, Meta(description="Skip this many bytes.")] = 0
    limit: Annotated[Count, Meta(description="The largest number of bytes.")] = MAX_FILE_BYTES


class ListSessions(Params, frozen=True, kw_only=True):
    limit: Rows = DEFAULT_PAGE_ROWS
    cursor: Annotated[str | None, Meta(description="The `next_cursor` of the page before.")] = None


class PendingChanges(Params, frozen=True, kw_only=True):
    session: Annotated[str | None, Meta(description="Only of this session.")] = None
    paths: Paths = ()


def take_checkpoint(lazy: LazyWorkspace, params: TakeCheckpoint) -> ToolResult:
    workspace = lazy.workspace(create=True)
    return ToolResult(_checkpoint(workspace.checkpoint(params.message, include=params.include)))


def list_checkpoints(lazy: LazyWorkspace, params: ListCheckpoints) -> ToolResult:
    # One row more than asked for tells whether there is another page.
    checkpoints = lazy.workspace().log(params.limit + 1, params.before)
    return ToolResult(
        {
            "checkpoints": [_checkpoint(each) for each in checkpoints[: params.limit]],
            "has_more": len(checkpoints) > params.limit,
        }
    )


def status(lazy: LazyWorkspace, params: Params) -> ToolResult:
    data = lazy.workspace().status().as_json()
    for row in data["changed_files"]:
        for name in ("diff", "base_content", "old_mode", "new_mode"):
            del row[name]
    return ToolResult(data)


def diff(lazy: LazyWorkspace, params: Diff) -> ToolResult:
    changes = lazy.workspace().diff(params.before, params.after, params.paths)
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
    truncated = len(patch) > MAX_PATCH_CHARACTERS
    text = f"{patch[:MAX_PATCH_CHARACTERS]}\n[… cut; name paths]\n" if truncated else patch
    return ToolResult({"files": files, "truncated": truncated}, text or "No differences.")


def plan_restore(lazy: LazyWorkspace, params: PlanRestore) -> ToolResult:
    plan, preview = plans.plan_restore(
        lazy.workspace(), params.checkpoint, params.paths, params.force
    )
    return ToolResult({"plan": plan, "checkpoint": preview.target} | _file_changes(preview))


def restore(lazy: LazyWorkspace, params: Restore) -> ToolResult:
    result = plans.restore(
        lazy.workspace(), params.checkpoint, params.paths, params.force, params.plan
    )
    return ToolResult(_file_changes(result) | _records(result))


def undo(lazy: LazyWorkspace, params: Undo) -> ToolResult:
    if params.plan is None:
        plan, preview = plans.plan_undo(lazy.workspace(), params.force)
        note = "Nothing was undone yet: call undo again with this plan to do it."
        data = {"plan": plan, "undoes": preview.undoes, "note": note}
        return ToolResult(data | _file_changes(preview))
    result = plans.undo(lazy.workspace(), params.force, params.plan)
    return ToolResult({"undoes": result.undoes} | _file_changes(result) | _records(result))


def search_sessions(lazy: LazyWorkspace, params: SearchSessions) -> ToolResult:
    hits = lazy.workspace().search(
        params.query, session=params.session, path=params.path, types=params.types,
        limit=params.limit,
    )  # fmt: skip
    return ToolResult(hits.as_json())


def read_file_at(lazy: LazyWorkspace, params: ReadFileAt) -> ToolResult:
    """Return a part of a file, as base64 if it is binary."""
    content = lazy.workspace().read(params.checkpoint, params.path)
    end = params.offset + min(params.limit, MAX_FILE_BYTES)
    part = content[params.offset : end]
    data = {
        "path": params.path,
        "size": len(content),
        "offset": params.offset,
        "truncated": params.offset + len(part) < len(content),
    }
    if b"\0" in part:
        return ToolResult(data | {"base64": base64.b64encode(part).decode("ascii")})
    # A part may begin and end in the middle of a character.
    return ToolResult(data, part.decode("utf-8", "replace"))


def list_sessions(lazy: LazyWorkspace, params: ListSessions) -> ToolResult:
    page = lazy.workspace().sessions.list(limit=params.limit, cursor=params.cursor)
    names = ("session", "title", "agent", "status", "created_at", "updated_at")
    rows = [each.as_json() for each in page.sessions]
    return ToolResult(
        {
            "sessions": [{name: row[name] for name in names} for row in rows],
            "next_cursor": page.next_cursor,
        }
    )


def pending_changes(lazy: LazyWorkspace, params: PendingChanges) -> ToolResult:
    review = lazy.workspace().review
    return ToolResult(review.pending(session=params.session, paths=params.paths).as_json())


class Tool(NamedTuple):
    """A tool and its annotations: `destroys` and `can_repeat` are MCP's hints for clients."""

    title: str
    description: str
    run: Callable[[LazyWorkspace, Any], ToolResult]
    params: type[Params] = Params
    reads_only: bool = True
    destroys: bool = False
    can_repeat: bool = True


TOOLS = {
    "take_checkpoint": Tool(
        "Take a checkpoint",
        "Take a checkpoint of all files of the project, to return to. Do so before risky work.",
        take_checkpoint,
        TakeCheckpoint,
        reads_only=False,
        can_repeat=False,
    ),
    "list_checkpoints": Tool(
        "List checkpoints",
        "List the checkpoints, newest first.",
        list_checkpoints,
        ListCheckpoints,
    ),
    "status": Tool(
        "What changed",
        "List every file that changed since the last checkpoint, whoever changed it.",
        status,
    ),
    "diff": Tool(
        "Differences",
        "Show a patch from a checkpoint to another one, or to the files as they are now.",
        diff,
        Diff,
    ),
    "plan_restore": Tool(
        "Plan a restore",
        "Show what a restore would write, delete and skip. Changes nothing; returns a `plan`, "
        "which restore needs.",
        plan_restore,
        PlanRestore,
    ),
    "restore": Tool(
        "Restore",
        "Restore the project, or some paths, to a checkpoint, as plan_restore has shown. The "
        "state before is kept: undo returns to it.",
        restore,
        Restore,
        reads_only=False,
        destroys=True,
    ),
    "undo": Tool(
        "Undo",
        "Undo the last operation that changed something. Without a plan it only shows what that "
        "would do, and returns a `plan`; with that plan, it does it.",
        undo,
        Undo,
        reads_only=False,
        destroys=True,
        can_repeat=False,
    ),
    "search_sessions": Tool(
        "Search sessions",
        "Search the messages and tool calls of earlier sessions of any agent in this project.",
        search_sessions,
        SearchSessions,
    ),
    "read_file_at": Tool(
        "Read an old version",
        "Read a file as it was in a checkpoint.",
        read_file_at,
        ReadFileAt,
    ),
    "list_sessions": Tool(
        "List sessions",
        "List the sessions of all agents in this project, newest first.",
        list_sessions,
        ListSessions,
    ),
    "pending_changes": Tool(
        "Pending changes",
        "List the agents' changes that the user has not decided on yet, hunk by hunk.",
        pending_changes,
        PendingChanges,
    ),
}


def _checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    data = checkpoint.as_json()
    coverage = data.pop("coverage")
    return data | {"complete": coverage["complete"], "not_covered": coverage["skipped"]}


def _file_changes(result: RestoreResult) -> dict[str, Any]:
    return {
        "restored": list(result.restored),
        "deleted": list(result.deleted),
        "skipped": [each._asdict() for each in result.skipped],
        "dirty": list(result.dirty),
    }


def _records(result: RestoreResult) -> dict[str, Any]:
    return {
        "operation": result.operation,
        "safety_checkpoint": result.safety_checkpoint,
        "new_checkpoint": result.new_checkpoint,
    }
