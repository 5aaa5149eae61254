"""Completion of the names of sessions and entries, for the shell."""

from __future__ import annotations

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

from mulligan.workspace.workspace import Workspace, open_workspace

Names = list[tuple[str, str]]


def session_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The sessions whose names begin so; nothing where that cannot be told."""

    def found(workspace: Workspace) -> Names:
        listed = workspace.sessions(limit=200).sessions
        names = [(f"@{place or ''}", each.title) for place, each in enumerate(listed[:10])]
        return names + [(each.id, each.title or each.agent) for each in listed]

    return _completed(ctx, incomplete, found)


def entry_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The entries of the session that is named, or was changed last, whose names begin so."""

    def found(workspace: Workspace) -> Names:
        session = ctx.params.get("session") or "@"
        listed = workspace.recent(session, limit=500, include_compacted=True).entries
        names = [(each.label, each.type) for each in listed if each.label]
        return names + [(each.id, each.content[:60] or each.type) for each in listed]

    return _completed(ctx, incomplete, found)


def _completed(
    ctx: click.Context, incomplete: str, find: Callable[[Workspace], Names]
) -> list[CompletionItem]:
    from mulligan.errors import MulliganError

    directory = None
    context: click.Context | None = ctx
    while context is not None and directory is None:
        directory = context.params.get("directory")
        context = context.parent
    try:
        with open_workspace(directory or ".", create=False, wait=0.1) as workspace:
            names = find(workspace)
    except (MulliganError, OSError):
        return []
    return [
        CompletionItem(name, help=" ".join(about.split()))
        for name, about in names
        if name.startswith(incomplete)
    ]
