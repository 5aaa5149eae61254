"""What Mulligan promises, in plain dictionaries.

A picture is `{path: (kind, mode, content)}`, with directories in it. `read_disk` takes one of the
disk without any of Mulligan's code; `split` says what of it is in scope, guarded or left out;
`expected` says how the disk must look after a restore, an undo or a redo.

The ignore rules are a small part of git's: a line is `name`, `name/` or `*.suffix`, and counts for
the directory of its file and all below.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Thing(NamedTuple):
    """What is at a path. A link has no mode, a directory no content."""

    kind: str
    mode: int
    content: bytes

    @property
    def is_directory(self) -> bool:
        return self.kind == "directory"

    def same_content(self, other: Thing | None) -> bool:
        return other is not None and (self.kind, self.content) == (other.kind, other.content)


Picture = dict[bytes, Thing]
Wish = Mapping[bytes, Thing | None]

# Of the default excludes, those that the tests make use of.
DEFAULT_DIRECTORIES = (b"node_modules", b"build", b"logs", b".env")
DEFAULT_SUFFIXES = (b".log",)
RULE_FILES = (b".gitignore", b".mulliganignore", b".mulligan.toml")
"""No rule of git's leaves them out: one could hide itself from the undo of its turn."""


class Scope(NamedTuple):
    """A picture in three parts: the project's tree, guarded files, and what is left alone."""

    main: Picture
    guarded: Picture
    rest: Picture


def read_disk(root: bytes) -> Picture:
    """All that is there, but for `.git` directories."""
    found: Picture = {}
    pending = [b""]
    while pending:
        directory = pending.pop()
        for name in os.listdir(os.path.join(root, directory)):
            path = join(directory, name)
            full = os.path.join(root, path)
            status = os.lstat(full)
            mode = stat.S_IMODE(status.st_mode)
            if name == b".git":
                continue
            if stat.S_ISDIR(status.st_mode):
                found[path] = Thing("directory", mode, b"")
                pending.append(path)
            elif stat.S_ISLNK(status.st_mode):
                found[path] = Thing("link", 0, os.readlink(full))
            elif stat.S_ISREG(status.st_mode):
                with open(full, "rb") as file:
                    found[path] = Thing("file", mode, file.read())
            else:
                found[path] = Thing("special", 0, b"")
    return found


def split(disk: Mapping[bytes, Thing], forced: Iterable[bytes] = ()) -> Scope:
    """What a look at this disk must find."""
    forced = tuple(forced)
    scope = Scope({}, {}, {})
    for path, thing in disk.items():
        why = ignored(disk, path, thing.is_directory)
        if any(within(path, each) for each in forced) and all(
            disk[above].is_directory for above in parents(path)
        ):
            why = None
        if thing.kind == "special":
            scope.rest[path] = thing
        elif why is None:
            scope.main[path] = thing
        elif why == "git" and not thing.is_directory:
            scope.guarded[path] = thing
        else:
            scope.rest[path] = thing
    for path in [path for path, thing in scope.main.items() if not thing.is_directory]:
        for above in parents(path):
            # A folder that is left out is there only for the sake of what was asked for in it.
            if above in scope.rest:
                scope.main[above] = scope.rest.pop(above)
    for path, thing in list(scope.main.items()):
        if (
            thing.is_directory
            and any(within(path, each) for each in forced)
            and any(above in scope.rest for above in parents(path))
        ):
            scope.rest[path] = scope.main.pop(path)
    return scope


def ignored(picture: Mapping[bytes, Thing], path: bytes, is_directory: bool) -> str | None:
    """Why a path is out of scope: `default`, `git` (a file pattern of git's), `above`, or not."""
    above = parents(path)
    for each in above:
        if _judge(picture, each, True):
            return "above"
    return _judge(picture, path, is_directory)


def _judge(picture: Mapping[bytes, Thing], path: bytes, is_directory: bool) -> str | None:
    name = path.rpartition(b"/")[2]
    if (is_directory and name in DEFAULT_DIRECTORIES) or name.endswith(DEFAULT_SUFFIXES):
        return "default"
    if name in RULE_FILES:
        return None
    for directory in (b"", *parents(path)):
        rules = picture.get(join(directory, b".gitignore"))
        if rules is None or rules.kind != "file":
            continue
        for line in rules.content.split():
            pattern = line.rstrip(b"/")
            if line.endswith(b"/") and not is_directory:
                continue
            if name == pattern or (pattern[:1] == b"*" and name.endswith(pattern[1:])):
                return "git"
    return None


@dataclass
class Outcome:
    """How the disk must look, and what must be said about it."""

    disk: Picture
    spared: set[bytes] = field(default_factory=set)


def expected(disk: Picture, seen: Scope, main: Wish, guarded: Wish) -> Outcome:
    """The disk after these wishes: what nobody wished for, and what is out of scope, stays.

    Only what was seen in scope may be removed; a guarded file may be replaced, for it is kept too.
    """
    wishes = {**main, **guarded}
    done = Outcome(dict(disk))

    def replaceable(path: bytes) -> bool:
        if path in seen.guarded:
            return wishes.get(path) is not None
        return path in main and path in seen.main

    # Files first, then the folders that are empty by then, the deepest first.
    goes = {
        path
        for path, thing in disk.items()
        if replaceable(path) and not thing.same_content(wishes[path])
    }
    changed = True
    while changed:
        changed = False
        for path in sorted(goes):
            blocked = disk[path].is_directory and any(
                other not in goes for other in disk if within(other, path) and other != path
            )
            if blocked:
                goes.discard(path)
                done.spared.add(path)
                changed = True
    for path in goes:
        del done.disk[path]
    for path in sorted(wishes, key=lambda each: each.split(b"/")):
        wanted = wishes[path]
        if wanted is None:
            continue
        there = done.disk.get(path)
        if there is not None:
            if replaceable(path) and there.same_content(wanted):
                done.disk[path] = wanted
            elif there != wanted and not (there.is_directory and wanted.is_directory):
                done.spared.add(path)
            continue
        if any(above in done.disk and not done.disk[above].is_directory for above in parents(path)):
            done.spared.add(path)
            continue
        for above in parents(path):
            done.disk.setdefault(above, Thing("directory", 0o755, b""))
        done.disk[path] = wanted
    return done


def difference(before: Mapping[bytes, Thing], after: Mapping[bytes, Thing]) -> dict[bytes, str]:
    """The files that differ, as `status` names it."""
    found = {}
    for path in before.keys() | after.keys():
        was = _file(before.get(path))
        now = _file(after.get(path))
        if was != now:
            found[path] = "added" if was is None else "deleted" if now is None else "modified"
    return found


def files(picture: Mapping[bytes, Thing]) -> Iterator[tuple[bytes, Thing]]:
    return ((path, thing) for path, thing in picture.items() if not thing.is_directory)


def _file(thing: Thing | None) -> Thing | None:
    return None if thing is None or thing.is_directory else thing


def join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name


def parents(path: bytes) -> list[bytes]:
    """The directories above a path, topmost first, without the root."""
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def within(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder + b"/")


def any_within(path: bytes, folders: Container[bytes]) -> bool:
    return path in folders or any(above in folders for above in parents(path))
