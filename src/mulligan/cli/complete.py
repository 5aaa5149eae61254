"""Completion of names for the shell: checkpoints, sessions, entries, pending hunks and files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace

MAX_COMPLETIONS = 200
Names = list[tuple[str, str]]
"""Each with what is said about it."""


def checkpoint_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The checkpoints whose names begin so."""
    from mulligan.journal.checkpoints import NOT_TAKEN

    def found(workspace: Workspace) -> Names:
        listed = workspace.log(MAX_COMPLETIONS)
        taken = [each for each in listed if each.kind not in NOT_TAKEN]
        names = [(f"@{place or ''}", each) for place, each in enumerate(taken[:10])]
        names += [(each.id, each) for each in listed]
        return [(name, each.message or each.kind) for name, each in names]

    return _completed(ctx, incomplete, found)


def session_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The sessions whose names begin so."""

    def found(workspace: Workspace) -> Names:
        listed = workspace.sessions.list(limit=MAX_COMPLETIONS).sessions
        names = [(f"@{place or ''}", each.title) for place, each in enumerate(listed[:10])]
        return names + [(each.id, each.title or each.agent) for each in listed]

    return _completed(ctx, incomplete, found)


def entry_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The entries of the session that is named, or was changed last, whose names begin so."""

    def found(workspace: Workspace) -> Names:
        session = ctx.params.get("session") or "@"
        listed = workspace.sessions.recent(session, limit=500, include_compacted=True).entries
        names = [(each.label, each.type) for each in listed if each.label]
        return names + [(each.id, each.content[:60] or each.type) for each in listed]

    return _completed(ctx, incomplete, found)


def hunk_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The pending hunks and files whose names begin so."""

    def found(workspace: Workspace) -> Names:
        pending = workspace.review.pending()
        base = os.path.realpath(_directory(ctx))
        paths = [os.path.join(workspace.root, file.path) for file in pending.files]
        names = [(os.path.relpath(path, base), "") for path in paths]
        return names + [(hunk.id, f"{hunk.path}:{hunk.new_start}") for hunk in pending.hunks]

    return _completed(ctx, incomplete, found)


def _completed(
    ctx: click.Context, incomplete: str, find: Callable[[Workspace], Names]
) -> list[CompletionItem]:
    """What begins so; nothing where that cannot be told, or a shell could not take it."""
    from mulligan.errors import MulliganError
    from mulligan.workspace.workspace import open_workspace

    try:
        with open_workspace(_directory(ctx), create=False, wait=0.1) as workspace:
            names = find(workspace)
    except (MulliganError, OSError):
        return []
    return [
        CompletionItem(name, help=" ".join(about.split()))
        for name, about in names
        if name.startswith(incomplete) and name.isprintable()
    ]


def _directory(ctx: click.Context | None) -> str:
    """The directory that was given so far, to the command or to those above it."""
    while ctx is not None:
        if ctx.params.get("directory"):
            return str(ctx.params["directory"])
        ctx = ctx.parent
    return "."
