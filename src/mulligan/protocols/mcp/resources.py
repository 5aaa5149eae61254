"""MCP resources: sessions and checkpoints as Markdown documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from mulligan.errors import NotFound

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace

SCHEME = "mulligan://"
SESSION = f"{SCHEME}session/"
CHECKPOINT = f"{SCHEME}checkpoint/"
MAX_LISTED_DOCUMENTS = 50
"""Of sessions, and of checkpoints."""
MAX_DOCUMENT_CHARACTERS = 1_000_000
MAX_LISTED_PATHS = 1000


class Document(NamedTuple):
    """A resource in the list; `name` is for programs, `title` for people."""

    uri: str
    name: str
    title: str
    description: str


def list_documents(workspace: Workspace) -> list[Document]:
    """List the newest sessions and checkpoints."""
    sessions = [
        Document(
            f"{SESSION}{each.id}", f"session {each.id}", each.title or each.id,
            f"A session of {each.agent or 'an agent'}, last changed {each.updated_at}",
        )
        for each in workspace.sessions.list(limit=MAX_LISTED_DOCUMENTS).sessions
    ]  # fmt: skip
    checkpoints = [
        Document(
            f"{CHECKPOINT}{each.id}", f"checkpoint {each.id}", each.message or each.kind,
            f"A checkpoint of {each.files} files, taken {each.created_at}",
        )
        for each in workspace.log(MAX_LISTED_DOCUMENTS)
    ]  # fmt: skip
    return sessions + checkpoints


def read_document(workspace: Workspace, uri: str) -> str:
    """Return a document as Markdown; raise `NotFound` for an unknown URI."""
    if uri.startswith(SESSION):
        return _cut(workspace.sessions.export(uri.removeprefix(SESSION), "markdown"))
    if uri.startswith(CHECKPOINT):
        return _cut(_checkpoint(workspace, uri.removeprefix(CHECKPOINT)))
    raise NotFound(f"No resource {uri!r}; the URIs are {SESSION}ID and {CHECKPOINT}ID.")


def _checkpoint(workspace: Workspace, name: str) -> Iterator[str]:
    checkpoint = workspace.find(name)
    yield f"# Checkpoint {checkpoint.id}\n\n"
    rows = {
        "message": checkpoint.message or "none",
        "kind": checkpoint.kind,
        "taken": checkpoint.created_at,
        "files": f"{checkpoint.files:,}",
        "bytes": f"{checkpoint.bytes:,}",
        "session": checkpoint.session or "none",
    }
    yield from (f"- {name}: {value}\n" for name, value in rows.items())
    yield "\n## Files\n\n"
    entries = [each for each in workspace.entries(checkpoint.id) if each.kind != "directory"]
    yield from (f"    {each.path!r:.200} {each.size}\n" for each in entries[:MAX_LISTED_PATHS])
    if len(entries) > MAX_LISTED_PATHS:
        yield f"\n… and {len(entries) - MAX_LISTED_PATHS:,} more.\n"
    if checkpoint.coverage.skipped:
        yield "\n## Not covered\n\n"
        yield from (
            f"    {path or 'everything else'!r} {reason}\n"
            for path, reason in checkpoint.coverage.skipped[:MAX_LISTED_PATHS]
        )


def _cut(pieces: Iterator[str]) -> str:
    """Join the pieces, up to the limit of a document."""
    kept: list[str] = []
    size = 0
    for piece in pieces:
        kept.append(piece)
        size += len(piece)
        if size > MAX_DOCUMENT_CHARACTERS:
            text = "".join(kept)[:MAX_DOCUMENT_CHARACTERS]
            return f"{text}\n\n[… cut here; `mulligan export` has it all]\n"
    return "".join(kept)
