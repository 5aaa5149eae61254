"""Define entries, the append-only records of a session.

An entry has a parent, so a session is a tree. Only four things change later: the compaction flag,
the links to a checkpoint and a plan item, and the state of a running tool call.
"""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from typing import Any, Final, NamedTuple

USER_INPUT: Final = "user_input"
ASSISTANT_OUTPUT: Final = "assistant_output"
TOOL_CALL: Final = "tool_call"
TOOL_RESULT: Final = "tool_result"
FILE_EDIT: Final = "file_edit"
COMPACT_MARKER: Final = "compact_marker"
SYSTEM_MESSAGE: Final = "system_message"
BRANCH_SUMMARY: Final = "branch_summary"
STEP_SNAPSHOT: Final = "step_snapshot"
UNREVERT_POINT: Final = "unrevert_point"
UI_EVENT: Final = "ui_event"
TYPES: Final = (
    USER_INPUT, ASSISTANT_OUTPUT, TOOL_CALL, TOOL_RESULT, FILE_EDIT, COMPACT_MARKER, SYSTEM_MESSAGE,
    BRANCH_SUMMARY, STEP_SNAPSHOT, UNREVERT_POINT, UI_EVENT,
)  # fmt: skip

PENDING: Final = "pending"
RUNNING: Final = "running"
SUCCESS: Final = "success"
ERROR: Final = "error"
CALL_STATES: Final = (PENDING, RUNNING, SUCCESS, ERROR)
ENDED: Final = (SUCCESS, ERROR)

FILE_OPERATIONS: Final = ("create", "modify", "delete", "rename")
STATUSES: Final = ("starting", "running", "waiting_input", "paused", "stopped")

LEAF: Final = "@leaf"
"""As a parent: the session's current leaf."""


class NewEntry(NamedTuple):
    """An entry to append.

    `parent` is the id of another entry of the session, `LEAF`, or `None` for a new root. An
    `off_path` entry, such as a sub-agent's, does not become the leaf. `created_at` defaults to
    now; times only increase within a session. `data` depends on the type:

    - tool_call: `name, input, output?, status, duration?` (milliseconds), and `call`, the agent's
      own id of the call;
    - tool_result: `call, name?, is_error?`, with the output as content;
    - file_edit: `path, operation, diff?, beforeHash?, afterHash?, additions?, deletions?`, and
      `old_path` for a rename;
    - compact_marker: `compactedCount, summary?`;
    - others: any JSON object.
    """

    type: str
    content: str = ""
    data: dict[str, Any] | None = None
    id: str | None = None
    parent: str | None = LEAF
    created_at: str | None = None
    model: str | None = None
    checkpoint: str | None = None
    plan_item: str | None = None
    is_compacted: bool = False
    off_path: bool = False
