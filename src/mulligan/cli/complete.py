"""Completion of checkpoint names, for the shell."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def checkpoint_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The checkpoints whose names begin so; nothing where that cannot be told."""
    from mulligan.errors import MulliganError
    from mulligan.workspace.workspace import open_workspace

    directory = ctx.params.get("directory") or (ctx.parent and ctx.parent.params.get("directory"))
    try:
        with open_workspace(directory or ".", create=False, wait=0.1) as workspace:
            found = workspace.log(200)
    except (MulliganError, OSError):
        return []
    taken = [each for each in found if each.kind not in ("safety", "restored")]
    names = [(f"@{position or ''}", each) for position, each in enumerate(taken[:10])]
    names += [(each.id, each) for each in found]
    return [
        CompletionItem(name, help=each.message or each.kind)
        for name, each in names
        if name.startswith(incomplete)
    ]
