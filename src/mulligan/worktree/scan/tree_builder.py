"""From what the scan saw to trees: the project's, and that of the guarded files.

Only directories that changed are built again. The guarded tree holds the small files that a file
pattern of `.gitignore` leaves out, such as `.env`: not part of the project's tree, but kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mulligan.core import coverage, tree
from mulligan.core.coverage import Coverage, PassedOver
from mulligan.core.tree import EMPTY_ID, Entry, Load, Save, Tree
from mulligan.errors import Corrupt
from mulligan.worktree.ignore.scope import Reason
from mulligan.worktree.scan.rule_files import MULLIGANIGNORE
from mulligan.worktree.scan.stat_cache import BuiltTree, FileStat, Node

NOTHING: BuiltTree = (EMPTY_ID, 0, 0)
WHY = {
    Reason.GITIGNORE: "ignored by git's rules",
    Reason.DEFAULT: "excluded by default",
    Reason.MULLIGANIGNORE: "ignored by .mulliganignore",
}


class Snapshot(NamedTuple):
    """What a project looks like now."""

    tree: bytes
    guarded: bytes
    files: int
    bytes: int
    guarded_files: int


def build(root: Node, load: Load, save: Save, guard_total: int) -> Snapshot:
    """Builds what is not built yet; what was built before is loaded, where only a little of it
    has changed."""
    if root.built is None or root.built_guards is None:
        save(tree.EMPTY, None, Tree(tree.EMPTY))
    id, files, size = _build(root, load, save)
    guarded, guarded_files, guarded_bytes = _build_guards(root, save)
    if guarded_bytes > guard_total:
        guarded, guarded_files, _ = _within_budget(root, save, [guard_total])
    return Snapshot(id, guarded, files, size, guarded_files)


def replaced(root: Node) -> Iterator[bytes]:
    """The trees that will be loaded when it is built."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.built is None:
            pending += node.dirs.values()
            if node.old is not None and node.dirty_names is not None:
                yield node.old[0]


def describe(root: Node, guarded_files: int, settings: Iterable[PassedOver] = ()) -> Coverage:
    """What was skipped, left out and passed over, by name; `settings` are the settings files."""
    passed_over = [*settings]
    skipped: list[tuple[bytes, str]] = []
    excluded: list[tuple[bytes, int, str]] = []
    for path, node in root.walk():
        for name, reason in node.unreadable.items():
            skipped.append((path or b"." if name == b"." else tree.join(path, name), reason))
        why_not, broken = node.passed_over
        if why_not and not node.partial:
            passed_over.append(PassedOver(tree.join(path, MULLIGANIGNORE), why_not, broken))
        if not node.excluded and not node.guards:
            continue
        single: dict[str, int] = {}
        for name, (why, is_directory, files, _modified) in node.excluded.items():
            if why == Reason.ALWAYS:
                continue
            reason = WHY[Reason(why)]
            if is_directory:
                excluded.append((tree.join(path, name) + b"/", files, reason))
            else:
                single[reason] = single.get(reason, 0) + 1
        if node.guards:
            reason = WHY[Reason.GITIGNORE]
            single[reason] = single.get(reason, 0) + len(node.guards)
        excluded += [(path or b".", files, reason) for reason, files in single.items()]
    return coverage.make(skipped, excluded, guarded_files, passed_over)


def _build(node: Node, load: Load, save: Save) -> BuiltTree:
    if node.built is not None:
        return node.built
    for child in node.dirs.values():
        _build(child, load, save)
    made = _rebuilt(node, load)
    if made is None:
        folders = [_folder(name, child) for name, child in node.dirs.items()]
        entries = _entries(node.files) + [each for each in folders if each is not None]
        made = Tree.of(entries)
    old = node.old[0] if node.old is not None else None
    node.built = (save(made.data, old, made), *made.totals)
    return node.built


def _rebuilt(node: Node, load: Load) -> Tree | None:
    """What was built before with the names that have changed since; `None` if that is unknown."""
    if node.old is None or node.dirty_names is None:
        return None
    id, files, size = node.old
    try:
        before = Tree(load(id).data, (files, size))
    except Corrupt:
        return None
    return before.replaced({name: _entry(node, name) for name in node.dirty_names})


def _entry(node: Node, name: bytes) -> Entry | None:
    if name in node.dirs:
        return _folder(name, node.dirs[name])
    found = _entries({name: node.files[name]}) if name in node.files else []
    return found[0] if found else None


def _folder(name: bytes, child: Node) -> Entry | None:
    """A folder that is out of scope is there only for the sake of what was asked for in it."""
    made = child.built
    if made is None or (child.partial and not made[1]):
        return None
    return Entry(tree.DIRECTORY, child.mode, made[1], made[2], made[0], name)


def _build_guards(node: Node, save: Save) -> BuiltTree:
    if node.built_guards is not None:
        return node.built_guards
    entries = _entries(node.guards)
    for name, child in node.dirs.items():
        made = _build_guards(child, save)
        if made[1]:
            entries.append(Entry(tree.DIRECTORY, child.mode, made[1], made[2], made[0], name))
    node.built_guards = _made(entries, save, node.old_guards) if entries else NOTHING
    return node.built_guards


def _within_budget(node: Node, save: Save, budget: list[int]) -> BuiltTree:
    """The guarded tree again, taking files in order of their paths while there is room."""
    entries = []
    for name in sorted(node.guards.keys() | node.dirs.keys()):
        if name in node.dirs:
            child = node.dirs[name]
            made = _within_budget(child, save, budget) if _build_guards(child, save)[1] else NOTHING
            if made[1]:
                entries.append(Entry(tree.DIRECTORY, child.mode, made[1], made[2], made[0], name))
        elif node.guards[name][0] and node.guards[name][2] <= budget[0]:
            budget[0] -= node.guards[name][2]
            entries += _entries({name: node.guards[name]})
    return _made(entries, save, None) if entries else NOTHING


def _entries(known: dict[bytes, FileStat]) -> list[Entry]:
    """Files whose content is there; what could not be read has no kind in the cache."""
    new = tuple.__new__
    # Without calling the class, for this is done for every file of a directory that changed.
    return [
        new(Entry, (seen[0], seen[1], 1, seen[2], seen[6], name))
        for name, seen in known.items()
        if seen[0]
    ]


def _made(entries: list[Entry], save: Save, old: bytes | None) -> BuiltTree:
    made = Tree.of(entries)
    return (save(made.data, old, made), *made.totals)
