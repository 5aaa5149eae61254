"""Keep paths in scope that a scan covered before, whatever the rules say now.

While a session has an open turn or pending work, a covered path stays covered: an agent that writes
an ignore file in its turn must not exclude files from the undo of that turn. The paths come from
the last observed tree and the trees of the views.

An open turn overrides every rule, and keeps the size limit that it began with. Between turns a
`.mulliganignore` that the user has accepted wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from mulligan.errors import Corrupt
from mulligan.journal import checkpoints, operations, views
from mulligan.workspace.open_project import OpenProject
from mulligan.worktree.fs.safe_paths import Directories, is_file
from mulligan.worktree.ignore.scope import Reason

if TYPE_CHECKING:
    from mulligan.store.writer import Writer
    from mulligan.workspace.snapshot.snapshot import Snapshot
    from mulligan.worktree.scan.stat_cache import Node, StatCache

Id = bytes


class Held(NamedTuple):
    """The trees whose files stay in scope, and the least size limit."""

    trees: tuple[Id, ...] = ()
    has_open_turn: bool = False
    max_file_size: int = 0


def what_to_hold(project: OpenProject, cache: StatCache) -> Held:
    """Return what must stay in scope; clear the cache's held paths if the reasons changed."""
    live = views.live(project.journal)
    open_turns = [number for number, view in live.items() if view.is_open]
    trees: tuple[Id | None, ...] = ()
    if live:
        trees = (
            last_seen(project),
            *(each for view in live.values() for each in (view.approved, view.base)),
        )
    held_trees = tuple(dict.fromkeys(each for each in trees if each is not None))
    accepted = tuple(sorted(project.rule_files.accepted))
    reasons = (bool(open_turns), accepted) if held_trees else None
    if cache.held_by != reasons:
        cache.held, cache.held_by = frozenset(), reasons
        if cache.root is not None:
            cache.root.unsaved = True
    limit = checkpoints.size_limit_of_turns(project.journal, open_turns)
    return Held(held_trees, bool(open_turns), limit)


def hold_more(
    project: OpenProject, cache: StatCache, writer: Writer, held: Held, seen: Snapshot
) -> bool:
    """Hold paths that the rules excluded from a scan; return True if any are new."""
    missing: set[bytes] = set()
    for tree in held.trees:
        if tree == seen.tree:
            continue
        # Make the scanner's new trees readable.
        writer.commit()
        try:
            changes = project.differences(tree, seen.tree)
        except Corrupt:
            # A damaged tree holds nothing; the operation that needs it reports it.
            continue
        missing |= {
            path
            for path, was, now in changes
            if was is not None and not was.is_directory and now is None
        }
    missing = {path for path in missing if seen.coverage.reason_for(path) is None}
    new = _on_disk(project.location.root, missing)
    if not held.has_open_turn and cache.root is not None:
        root = cache.root
        new = {path for path in new if _reason(root, path) != Reason.MULLIGANIGNORE}
    if new <= cache.held:
        return False
    cache.held |= new
    return True


def last_seen(project: OpenProject) -> Id | None:
    """Return the tree on disk as of the last operation."""
    last = operations.last_applied(project.journal)
    row = checkpoints.by_id(project.journal, last.after) if last and last.after else None
    return row.tree if row is not None else None


def _on_disk(root: bytes, paths: Iterable[bytes]) -> set[bytes]:
    """Return the paths that are a file or link on disk."""
    wanted = sorted(paths)
    if not wanted:
        return set()
    with Directories(root) as disk:
        return {path for path in wanted if is_file(disk, path)}


def _reason(root: Node, path: bytes) -> int:
    """Return why the rules exclude a path, as the last scan recorded."""
    node: Node | None = root
    for name in path.split(b"/"):
        if node is None:
            break
        if name in node.excluded:
            return node.excluded[name][0]
        node = node.dirs.get(name)
    return Reason.IN_SCOPE
