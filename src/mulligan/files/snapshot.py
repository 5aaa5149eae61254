"""From what the scan saw to trees: the project's, and that of the guarded files.

Only directories that changed are built again. The guarded tree holds the small files that a file
pattern of `.gitignore` leaves out, such as `.env`: not part of the project's tree, but kept.
"""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

from mulligan.core import coverage, tree
from mulligan.core.coverage import Coverage
from mulligan.core.tree import EMPTY_ID, Entry, Save
from mulligan.files.ignore import Reason
from mulligan.files.index import Made, Node, Seen

NOTHING: Made = (EMPTY_ID, 0, 0)
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


def build(root: Node, save: Save, guard_total: int) -> Snapshot:
    """Builds what is not built yet."""
    save(tree.EMPTY, None, ())
    id, files, size = _build(root, save)
    guarded, guarded_files, guarded_bytes = _build_guards(root, save)
    if guarded_bytes > guard_total:
        guarded, guarded_files, _ = _within_budget(root, save, [guard_total])
    return Snapshot(id, guarded, files, size, guarded_files)


def describe(root: Node, guarded_files: int) -> Coverage:
    """What was skipped and left out, by name."""
    skipped: list[tuple[bytes, str]] = []
    excluded: list[tuple[bytes, int, str]] = []
    for path, node in root.walk():
        for name, reason in node.odd.items():
            skipped.append((path or b"." if name == b"." else tree.join(path, name), reason))
        if not node.left and not node.guards:
            continue
        single: dict[str, int] = {}
        for name, (why, is_directory, files, _modified) in node.left.items():
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
    return coverage.make(skipped, excluded, guarded_files)


def _build(node: Node, save: Save) -> Made:
    if node.made is not None:
        return node.made
    entries = _entries(node.files)
    for name, child in node.dirs.items():
        made = _build(child, save)
        # A folder that is out of scope is there only for the sake of what was asked for in it.
        if not child.partial or made[1]:
            entries.append(Entry(tree.DIRECTORY, child.mode, made[1], made[2], made[0], name))
    node.made = _made(entries, save, node.old)
    return node.made


def _build_guards(node: Node, save: Save) -> Made:
    if node.made_guards is not None:
        return node.made_guards
    entries = _entries(node.guards)
    for name, child in node.dirs.items():
        made = _build_guards(child, save)
        if made[1]:
            entries.append(Entry(tree.DIRECTORY, child.mode, made[1], made[2], made[0], name))
    node.made_guards = _made(entries, save, node.old_guards) if entries else NOTHING
    return node.made_guards


def _within_budget(node: Node, save: Save, budget: list[int]) -> Made:
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


def _entries(known: dict[bytes, Seen]) -> list[Entry]:
    """Files whose content is there; what could not be read has no kind in the cache."""
    new = tuple.__new__
    # Without calling the class, for this is done for every file of a directory that changed.
    return [
        new(Entry, (seen[0], seen[1], 1, seen[2], seen[6], name))
        for name, seen in known.items()
        if seen[0]
    ]


def _made(entries: list[Entry], save: Save, old: bytes | None) -> Made:
    entries.sort(key=itemgetter(5))
    files = size = 0
    for entry in entries:
        files += entry[2]
        size += entry[3]
    return (save(tree.encode(entries), old, tuple(entries)), files, size)
