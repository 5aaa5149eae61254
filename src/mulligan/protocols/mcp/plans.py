"""Plan first: what changes files wants the name of a plan that was seen, and that still holds.

A plan's name is a hash of what was asked, of what would happen, and of what the disk holds. When
anything of that is different by the time, so is the name, and nothing is done.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from mulligan.errors import WouldLoseWork

if TYPE_CHECKING:
    from mulligan.workspace.results.files import RestoreResult
    from mulligan.workspace.workspace import Workspace

TOKEN_CHARACTERS = 20


def plan_restore(
    workspace: Workspace, checkpoint: str, paths: list[str], force: bool
) -> tuple[str, RestoreResult]:
    """What a restore would do, and the plan's name."""
    with workspace.project.locked():
        target = workspace.find(checkpoint).id
        plan = workspace.restore(target, paths, force=force, preview=True)
        asked = {"restore": target, "paths": sorted(paths), "force": force}
        return _name(workspace, asked, plan.as_json()), plan


def restore(
    workspace: Workspace, checkpoint: str, paths: list[str], force: bool, plan: str
) -> RestoreResult:
    """Carries out a plan, if it still holds; raises `WouldLoseWork` otherwise."""
    with workspace.project.locked():
        name, _ = plan_restore(workspace, checkpoint, paths, force)
        _check(plan, name, "plan_restore")
        return workspace.restore(checkpoint, paths, force=force)


def plan_undo(workspace: Workspace, force: bool) -> tuple[str, RestoreResult]:
    """What an undo would do, and the plan's name."""
    with workspace.project.locked():
        done = workspace.undo(preview=True, force=force)
        return _name(workspace, {"undo": done.undoes, "force": force}, done.as_json()), done


def undo(workspace: Workspace, force: bool, plan: str) -> RestoreResult:
    """Carries out a plan, if it still holds; raises `WouldLoseWork` otherwise."""
    with workspace.project.locked():
        name, would = plan_undo(workspace, force)
        _check(plan, name, "undo without a plan")
        return workspace.undo(force=force, expect=would.undoes)


def _check(given: str, name: str, again: str) -> None:
    if given != name:
        raise WouldLoseWork(
            "This plan does not hold any more, or was made for something else: the files or the "
            f"history have changed since. Nothing was changed; call {again} and look again."
        )


def _name(workspace: Workspace, asked: dict[str, Any], plan: dict[str, Any]) -> str:
    newest = workspace.operations(1)
    number = newest[0].number if newest else 0
    content = json.dumps([asked, plan, _tree(workspace), number], sort_keys=True)
    return hashlib.sha256(content.encode("ascii")).hexdigest()[:TOKEN_CHARACTERS]


def _tree(workspace: Workspace) -> str:
    """What the disk holds, in one word."""
    from mulligan.store.writer import Writer
    from mulligan.workspace.snapshot.take import take_snapshot

    with Writer(workspace.project.store) as writer:
        seen = take_snapshot(workspace.project, writer)
        writer.commit()
    return f"{seen.tree.hex()}/{seen.guarded.hex()}"
