"""Build the project's tree and the tree of guarded files from the stat cache.

Only changed directories are built again. The guarded tree holds small files that a file pattern of
`.gitignore` excludes, such as `.env`: not part of the project's tree, but kept.
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
    """The trees of a project, with their totals."""

    tree: bytes
    guarded: bytes
    files: int
    bytes: int
    guarded_files: int


def build(root: Node, load: Load, save: Save, guard_total: int) -> Snapshot:
    """Build the trees that are missing, from their previous versions where possible."""
    if root.built is None or root.built_guards is None:
        save(tree.EMPTY, None, Tree(tree.EMPTY))
    id, files, size = _build(root, load, save)
    guarded, guarded_files, guarded_bytes = _build_guards(root, save)
    if guarded_bytes > guard_total:
        guarded, guarded_files, _ = _within_budget(root, save, [guard_total])
    return Snapshot(id, guarded, files, size, guarded_files)


def replaced(root: Node) -> Iterator[bytes]:
    """Yield the previous trees that `build` will load."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.built is None:
            pending += node.dirs.values()
            if node.old is not None and node.dirty_names is not None:
                yield node.old[0]


def describe(root: Node, guarded_files: int, settings: Iterable[PassedOver] = ()) -> Coverage:
    """Return the coverage: skipped, excluded and passed over by name, with the settings files'."""
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
        file_counts: dict[str, int] = {}
        for name, (why, is_directory, files, _modified) in node.excluded.items():
            if why == Reason.ALWAYS:
                continue
            reason = WHY[Reason(why)]
            if is_directory:
                excluded.append((tree.join(path, name) + b"/", files, reason))
            else:
                file_counts[reason] = file_counts.get(reason, 0) + 1
        if node.guards:
            reason = WHY[Reason.GITIGNORE]
            file_counts[reason] = file_counts.get(reason, 0) + len(node.guards)
        excluded += [(path or b".", files, reason) for reason, files in file_counts.items()]
    return coverage.make(skipped, excluded, guarded_files, passed_over)


def _build(node: Node, load: Load, save: Save) -> BuiltTree:
    if node.built is not None:
        return node.built
    for child in node.dirs.values():
        _build(child, load, save)
    new = _update_old_tree(node, load)
    if new is None:
        directories = [_directory_entry(name, child) for name, child in node.dirs.items()]
        entries = _entries(node.files) + [each for each in directories if each is not None]
        new = Tree.of(entries)
    old = node.old[0] if node.old is not None else None
    node.built = (save(new.data, old, new), *new.totals)
    return node.built


def _update_old_tree(node: Node, load: Load) -> Tree | None:
    """Replace the dirty names in the previous tree; `None` if either is unknown."""
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
        return _directory_entry(name, node.dirs[name])
    entries = _entries({name: node.files[name]}) if name in node.files else []
    return entries[0] if entries else None


def _directory_entry(name: bytes, child: Node) -> Entry | None:
    """Return the entry of a directory; `None` for an excluded one without included files."""
    if child.built is None or (child.partial and not child.built[1]):
        return None
    return _entry_of_tree(name, child, child.built)


def _entry_of_tree(name: bytes, child: Node, built: BuiltTree) -> Entry:
    id, files, size = built
    return Entry(tree.DIRECTORY, child.mode, files, size, id, name)


def _build_guards(node: Node, save: Save) -> BuiltTree:
    if node.built_guards is not None:
        return node.built_guards
    entries = _entries(node.guards)
    for name, child in node.dirs.items():
        built = _build_guards(child, save)
        if built[1]:
            entries.append(_entry_of_tree(name, child, built))
    node.built_guards = _save_tree(entries, save, node.old_guards) if entries else NOTHING
    return node.built_guards


def _within_budget(node: Node, save: Save, budget: list[int]) -> BuiltTree:
    """Build the guarded tree again, with files in path order while they fit the budget."""
    entries = []
    for name in sorted(node.guards.keys() | node.dirs.keys()):
        if name in node.dirs:
            child = node.dirs[name]
            has_guards = _build_guards(child, save)[1]
            built = _within_budget(child, save, budget) if has_guards else NOTHING
            if built[1]:
                entries.append(_entry_of_tree(name, child, built))
        elif node.guards[name][0] and node.guards[name][2] <= budget[0]:
            budget[0] -= node.guards[name][2]
            entries += _entries({name: node.guards[name]})
    return _save_tree(entries, save, None) if entries else NOTHING


def _entries(known: dict[bytes, FileStat]) -> list[Entry]:
    """Return the entries of files that could be read; others have no kind."""
    # `tuple.__new__` is faster than calling the class, once per file of a changed directory.
    new = tuple.__new__
    return [
        new(Entry, (seen[0], seen[1], 1, seen[2], seen[6], name))
        for name, seen in known.items()
        if seen[0]
    ]


def _save_tree(entries: list[Entry], save: Save, old: bytes | None) -> BuiltTree:
    new = Tree.of(entries)
    return (save(new.data, old, new), *new.totals)
