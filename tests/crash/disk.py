"""What a loss of power leaves: a model of a disk that has forgotten what was not synced.

Replays the records of `child` on top of a directory that is taken as durable. As the manual of
fsync has it: the bytes and the mode of a file are durable once the file was synced, the names in a
folder once the folder was; a file's own sync says nothing about its name. Everything else may be
there or not after the loss, with two certainties: a rename happens as a whole, and a change of a
name implies the earlier changes of that same name.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from random import Random

PAGE = 4096


class Node:
    def __init__(self, kind: str, mode: int = 0o644, data: bytes = b"") -> None:
        self.kind = kind
        self.mode = mode
        self.data = data
        self.names: dict[bytes, Node] = {}
        self.now: dict[bytes, Node] = {}
        self.pending: list[tuple] = []


class Naming:
    """One change of names, which happens as a whole: (folder, name, what is there now)."""

    def __init__(self, changes: list[tuple[Node, bytes, Node | None]], needs: list[Node]) -> None:
        self.changes = changes
        self.keys = {(id(folder), name) for folder, name, _node in changes}
        self.needs = {id(folder) for folder in needs}

    def touches(self, folder: Node) -> bool:
        return any(each is folder for each, _name, _node in self.changes)

    def follows(self, earlier: Naming) -> bool:
        return bool(self.keys & earlier.keys) or any(
            id(folder) in self.needs for folder, _name, _node in earlier.changes
        )


class Disk:
    """The folders below `base`; what lies there when it is made counts as durable."""

    def __init__(self, base: Path, folders: tuple[str, ...]) -> None:
        self.base = base
        self.folders = [os.fsencode(folder) for folder in folders]
        self.nodes: dict[int, Node] = {}
        self._unnamed: list[Node] = []
        self.unsynced: list[Naming] = []
        self.root = Node("folder", 0o755)
        self.nodes[os.stat(base).st_ino] = self.root
        for folder in self.folders:
            path = os.path.join(os.fsencode(base), folder)
            if os.path.lexists(path):
                self.root.names[folder] = self.root.now[folder] = self._read(path)

    def replay(self, record: tuple) -> None:
        kind, *values = record
        if kind in ("effect", "ack"):
            return
        if kind == "nameless":
            self._number(values[0], Node("file", values[1]))
        elif kind in ("write", "truncate", "chmod"):
            node = self.nodes.get(values[0])
            if node is not None:
                node.pending.append((kind, *values[1:]))
        elif kind == "sync":
            node = self.nodes.get(values[0])
            if node is not None:
                self._sync(node)
        elif kind == "sync all":
            for node in [*self.nodes.values(), *self._unnamed]:
                self._sync(node)
        else:
            self._rename_or_so(kind, values)

    def lose_power(self, names: str, data: str, seed: int = 0) -> bytes:
        """Writes out what is left. `names` and `data` that were not synced go `none`, or stay
        `all`, or `some`, where writes may be torn as well. Gives a description of the outcome."""
        chance = Random(f"{names} {data} {seed}")
        kept = {"none": [], "all": list(self.unsynced)}.get(names)
        if kept is None:
            kept = []
            for each in self.unsynced:
                whole = all(
                    other in kept
                    for other in self.unsynced[: self.unsynced.index(each)]
                    if each.follows(other)
                )
                if whole and chance.random() < 0.5:
                    kept.append(each)
        changed: dict[tuple[int, bytes], Node | None] = {}
        for each in kept:
            for folder, name, node in each.changes:
                changed[id(folder), name] = node
        for name in self.folders:
            shutil.rmtree(os.path.join(os.fsencode(self.base), name), ignore_errors=True)
        outcome: list[bytes] = []
        self._write_out(self.root, os.fsencode(self.base), changed, data, chance, outcome)
        return b"\0".join(outcome)

    def _read(self, path: bytes) -> Node:
        status = os.lstat(path)
        mode = status.st_mode & 0o7777
        if stat.S_ISLNK(status.st_mode):
            node = Node("link", mode, os.readlink(path))
        elif stat.S_ISDIR(status.st_mode):
            node = Node("folder", mode)
            for name in os.listdir(path):
                if not name.endswith(b"-shm"):
                    node.names[name] = self._read(os.path.join(path, name))
            node.now = dict(node.names)
        else:
            node = Node("file", mode, Path(os.fsdecode(path)).read_bytes())
        self.nodes[status.st_ino] = node
        return node

    def _rename_or_so(self, kind: str, values: list) -> None:
        folder, name = self.nodes.get(values[0]), values[1]
        if folder is None:
            return
        needs: list[Node] = []
        if kind in ("rename", "exchange"):
            other, new = self.nodes[values[2]], values[3]
            one, two = folder.now[name], other.now.get(new)
            back = two if kind == "exchange" else None
            changes = [(folder, name, back), (other, new, one)]
        elif kind == "remove":
            gone = folder.now.get(name)
            if gone is not None and gone.kind == "folder":
                needs.append(gone)
            changes = [(folder, name, None)]
        elif kind == "link":
            changes = [(folder, name, self.nodes[values[2]])]
        else:
            kinds = {"create": "file", "mkdir": "folder", "symlink": "link"}
            node = Node(kinds[kind])
            if kind == "symlink":
                node.data = values[3]
            else:
                node.mode = values[3]
            self._number(values[2], node)
            changes = [(folder, name, node)]
        for where, what, node in changes:
            if node is None:
                where.now.pop(what, None)
            else:
                where.now[what] = node
        self.unsynced.append(Naming(changes, needs))

    def _number(self, inode: int, node: Node) -> None:
        if inode in self.nodes:
            # The number of a deleted inode is used again; the old one may still be durable.
            self._unnamed.append(self.nodes[inode])
        self.nodes[inode] = node

    def _sync(self, node: Node) -> None:
        if node.kind == "folder":
            durable: list[Naming] = []
            for each in reversed(self.unsynced):
                if each.touches(node) or any(later.follows(each) for later in durable):
                    durable.append(each)
            for each in reversed(durable):
                self.unsynced.remove(each)
                for folder, name, there in each.changes:
                    if there is None:
                        folder.names.pop(name, None)
                    else:
                        folder.names[name] = there
        node.data, node.mode = _after(node, node.pending)
        node.pending = []

    def _write_out(
        self,
        folder: Node,
        path: bytes,
        changed: dict[tuple[int, bytes], Node | None],
        data: str,
        chance: Random,
        outcome: list[bytes],
    ) -> None:
        names = dict(folder.names)
        for (where, name), node in changed.items():
            if where == id(folder):
                if node is None:
                    names.pop(name, None)
                else:
                    names[name] = node
        for name, node in sorted(names.items()):
            full = os.path.join(path, name)
            content, mode = _after(node, _surviving(node, data, chance))
            outcome += [full, node.kind.encode(), b"%o" % mode, content]
            if node.kind == "folder":
                os.mkdir(full, 0o700)
                self._write_out(node, full, changed, data, chance, outcome)
                os.chmod(full, mode)
            elif node.kind == "link":
                os.symlink(content, full)
            else:
                with open(full, "wb") as file:
                    file.write(content)
                os.chmod(full, mode)


def _after(node: Node, pending: list[tuple]) -> tuple[bytes, int]:
    data, mode = bytearray(node.data), node.mode
    for kind, *values in pending:
        if kind == "chmod":
            mode = values[0]
        elif kind == "truncate":
            data = data[: values[0]].ljust(values[0], b"\0")
        else:
            offset, piece = values
            data = data.ljust(offset, b"\0")
            data[offset : offset + len(piece)] = piece
    return bytes(data), mode


def _surviving(node: Node, data: str, chance: Random) -> list[tuple]:
    if data == "all":
        return node.pending
    if data == "none":
        return []
    kept = []
    for each in node.pending:
        fate = chance.choice(("kept", "kept", "lost", "torn", "holes"))
        if each[0] != "write":
            if fate != "lost":
                kept.append(each)
        elif fate == "kept":
            kept.append(each)
        elif fate == "torn":
            kept.append(("write", each[1], each[2][: len(each[2]) // 2]))
        elif fate == "holes":
            # The length arrived, some of the pages did not.
            pages = [each[2][at : at + PAGE] for at in range(0, len(each[2]), PAGE)]
            holed = [page if chance.random() < 0.5 else b"\0" * len(page) for page in pages]
            kept.append(("write", each[1], b"".join(holed)))
    return kept
