"""Entries: what a session is made of, one append-only record after another.

An entry has a parent, so a session is a tree. What can change later is short: whether it was
compacted, its links to a checkpoint and a plan item, and the state of a running tool call.
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
"""As a parent: wherever the session stands."""


class NewEntry(NamedTuple):
    """An entry that is about to be appended.

    `parent` is the id of another entry of the session, `LEAF`, or `None` for a new root. An entry
    that is `off_path` (a sub-agent's, say) does not become the leaf. Without a time it gets the
    present one; times only ever increase within a session. `data` depends on the type:

    - tool_call: `name, input, output?, status, duration?` (milliseconds), and `call`, the agent's
      own id of the call;
    - tool_result: `call, name?, is_error?`, with the output as content;
    - file_edit: `path, operation, diff?, beforeHash?, afterHash?, additions?, deletions?`, and
      `old_path` for a rename;
    - compact_marker: `compactedCount, summary?`;
    - others: whatever the one who writes it needs.
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
