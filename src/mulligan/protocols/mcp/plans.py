"""Plans: restore and undo act only on a plan that the agent has seen and that still holds.

A plan's token is a hash of the request, of the preview, of the files on disk and of the newest
operation. If any of them has changed, the token differs, and nothing is done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mulligan.errors import WouldLoseWork

if TYPE_CHECKING:
    from mulligan.workspace.results.files import RestoreResult
    from mulligan.workspace.workspace import Workspace

TOKEN_CHARACTERS = 20


def plan_restore(
    workspace: Workspace, checkpoint: str, paths: Sequence[str], force: bool
) -> tuple[str, RestoreResult]:
    """Return the token and the preview of a restore."""
    with workspace.project.locked():
        target = workspace.find(checkpoint).id
        preview = workspace.restore(target, paths, force=force, preview=True)
        request = {"restore": target, "paths": sorted(paths), "force": force}
        return _token(workspace, request, preview.as_json()), preview


def restore(
    workspace: Workspace, checkpoint: str, paths: Sequence[str], force: bool, plan: str
) -> RestoreResult:
    """Restore if the plan still holds; else raise `WouldLoseWork`."""
    with workspace.project.locked():
        token, _preview = plan_restore(workspace, checkpoint, paths, force)
        _check_token(plan, token, "plan_restore")
        return workspace.restore(checkpoint, paths, force=force)


def plan_undo(workspace: Workspace, force: bool) -> tuple[str, RestoreResult]:
    """Return the token and the preview of an undo."""
    with workspace.project.locked():
        preview = workspace.undo(preview=True, force=force)
        request = {"undo": preview.undoes, "force": force}
        return _token(workspace, request, preview.as_json()), preview


def undo(workspace: Workspace, force: bool, plan: str) -> RestoreResult:
    """Undo if the plan still holds; else raise `WouldLoseWork`."""
    with workspace.project.locked():
        token, preview = plan_undo(workspace, force)
        _check_token(plan, token, "undo without a plan")
        return workspace.undo(force=force, expect=preview.undoes)


def _check_token(given: str, token: str, plan_again: str) -> None:
    if given != token:
        raise WouldLoseWork(
            "This plan no longer holds, or is for other parameters: the files or the history have "
            f"changed since. Nothing was changed; call {plan_again} and look again."
        )


def _token(workspace: Workspace, request: dict[str, Any], preview: dict[str, Any]) -> str:
    newest = workspace.operations(1)
    number = newest[0].number if newest else 0
    content = json.dumps([request, preview, _hash_files(workspace), number], sort_keys=True)
    return hashlib.sha256(content.encode("ascii")).hexdigest()[:TOKEN_CHARACTERS]


def _hash_files(workspace: Workspace) -> str:
    """Scan the files and return the hashes of their trees."""
    # Imported here: `mulligan mcp` starts without the engine.
    from mulligan.store.writer import Writer
    from mulligan.workspace.snapshot.take import take_snapshot

    with Writer(workspace.project.store) as writer:
        snapshot = take_snapshot(workspace.project, writer)
        writer.commit()
    return f"{snapshot.tree.hex()}/{snapshot.guarded.hex()}"
