"""Sessions and checkpoints as documents that an agent can read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from mulligan.errors import NotFound

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace

SCHEME = "mulligan://"
SESSION = f"{SCHEME}session/"
CHECKPOINT = f"{SCHEME}checkpoint/"
MAX_LISTED_SESSIONS = 50
TEXT_LIMIT = 1_000_000
MAX_LISTED_PATHS = 1000


class Document(NamedTuple):
    """What there is to read; `name` is for programs, `title` for people."""

    uri: str
    name: str
    title: str
    about: str


def documents(workspace: Workspace) -> list[Document]:
    """The newest sessions and checkpoints."""
    sessions = [
        Document(
            f"{SESSION}{each.id}", f"session {each.id}", each.title or each.id,
            f"A session of {each.agent or 'an agent'}, last changed {each.updated_at}",
        )
        for each in workspace.sessions.list(limit=MAX_LISTED_SESSIONS).sessions
    ]  # fmt: skip
    checkpoints = [
        Document(
            f"{CHECKPOINT}{each.id}", f"checkpoint {each.id}", each.message or each.kind,
            f"A checkpoint of {each.files} files, taken {each.created_at}",
        )
        for each in workspace.log(MAX_LISTED_SESSIONS)
    ]  # fmt: skip
    return sessions + checkpoints


def read(workspace: Workspace, uri: str) -> str:
    """A document, in Markdown; raises `NotFound`."""
    if uri.startswith(SESSION):
        return _cut(workspace.sessions.export(uri.removeprefix(SESSION), "markdown"))
    if uri.startswith(CHECKPOINT):
        return _cut(_checkpoint(workspace, uri.removeprefix(CHECKPOINT)))
    raise NotFound(f"There is nothing at {uri!r}; there are {SESSION}ID and {CHECKPOINT}ID.")


def _checkpoint(workspace: Workspace, name: str) -> Iterator[str]:
    found = workspace.find(name)
    yield f"# Checkpoint {found.id}\n\n"
    rows = {
        "message": found.message or "none",
        "kind": found.kind,
        "taken": found.created_at,
        "files": f"{found.files:,}",
        "bytes": f"{found.bytes:,}",
        "session": found.session or "none",
    }
    yield from (f"- {name}: {value}\n" for name, value in rows.items())
    yield "\n## Files\n\n"
    entries = [each for each in workspace.entries(found.id) if each.kind != "directory"]
    yield from (f"    {each.path!r:.200} {each.size}\n" for each in entries[:MAX_LISTED_PATHS])
    if len(entries) > MAX_LISTED_PATHS:
        yield f"\n… and {len(entries) - MAX_LISTED_PATHS:,} more.\n"
    if found.coverage.skipped:
        yield "\n## Not covered\n\n"
        yield from (
            f"    {path or 'everything else'!r} {reason}\n"
            for path, reason in found.coverage.skipped[:MAX_LISTED_PATHS]
        )


def _cut(pieces: Iterator[str]) -> str:
    """All of it, or as much as anybody can read."""
    found: list[str] = []
    size = 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size > TEXT_LIMIT:
            return "".join(found)[:TEXT_LIMIT] + "\n\n[… cut here; `mulligan export` has it all]\n"
    return "".join(found)
