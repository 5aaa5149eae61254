"""Where a reader is among the pending changes, and where they go from there. Pure.

The changes are in one row over all files, and the row is a ring. When it is made anew, because
something was decided or somebody changed something, the reader stays where they were: at the same
change, else in the same file, else at what followed it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mulligan.cli.review.text import contains
from mulligan.core.coverage import encode_path
from mulligan.workspace.results.review import PendingFile, PendingHunk, Review


class Cursor(NamedTuple):
    """All changes as pairs of a file's and a hunk's index, and which of them is looked at."""

    files: tuple[PendingFile, ...]
    changes: tuple[tuple[int, int], ...]
    at: int = 0

    @property
    def total(self) -> int:
        return len(self.changes)

    @property
    def file(self) -> PendingFile:
        return self.files[self.changes[self.at][0]]

    @property
    def hunk(self) -> PendingHunk:
        return self.hunk_at(self.at)

    def hunk_at(self, at: int) -> PendingHunk:
        file, hunk = self.changes[at]
        return self.files[file].hunks[hunk]


def first(review: Review) -> Cursor:
    changes = tuple(
        (number, index)
        for number, file in enumerate(review.files)
        for index in range(len(file.hunks))
    )
    return Cursor(review.files, changes)


def stepped(place: Cursor, step: int) -> Cursor:
    """So many changes on, around the end if need be."""
    return place._replace(at=(place.at + step) % place.total) if place.total else place


def stepped_file(place: Cursor, step: int) -> Cursor:
    """The first change of the file so many further, around the end if need be."""
    if not place.total:
        return place
    wanted = (place.changes[place.at][0] + step) % len(place.files)
    return place._replace(at=place.changes.index((wanted, 0)))


def after(place: Cursor, decided: Collection[str]) -> str | None:
    """The change that comes next when some are decided: the first of the others, around the end."""
    for step in range(1, place.total):
        hunk = place.hunk_at((place.at + step) % place.total)
        if hunk.id not in decided:
            return hunk.id
    return None


def rebuilt(place: Cursor, review: Review, wanted: str | None = None) -> Cursor:
    """The same place in a new review; or the change that is wanted, if it is there."""
    new = first(review)
    if not new.total or not place.total:
        return new
    at = {new.hunk_at(index).id: index for index in range(new.total)}
    for id in (wanted, place.hunk.id):
        if id in at:
            return new._replace(at=at[id])
    number, index = place.changes[place.at]
    starts = {
        (new.files[file].session, new.files[file].path): position
        for position, (file, hunk) in enumerate(new.changes)
        if hunk == 0
    }
    for file in place.files[number:]:
        start = starts.get((file.session, file.path))
        if start is not None:
            here = min(index, len(new.files[new.changes[start][0]].hunks) - 1)
            return new._replace(at=start + (here if file is place.file else 0))
    return new


def looked_at_again(place: Cursor, paths: Collection[str], seen: Review) -> Review:
    """All that is pending, when only some paths were looked at again; folders stand for all below.

    A path's changes stay in the order that a look gives them, session by session.
    """
    kept = [file for file in place.files if not any(_is_within(file, path) for path in paths)]
    files = sorted(
        [*kept, *seen.files], key=lambda file: encode_path(file.path.rstrip("/")).split(b"/")
    )
    return Review(tuple(files))


def found(place: Cursor, needle: str, step: int = 1, *, here: bool = False) -> Cursor | None:
    """The next change with a text in its path or its lines; with `here`, maybe this one."""
    for distance in range(0 if here else 1, place.total + 1):
        at = (place.at + distance * step) % place.total
        if _has(place.hunk_at(at), needle):
            return place._replace(at=at)
    return None


def count_found(place: Cursor, needle: str) -> tuple[int, int]:
    """Which of how many matches the reader is at; 0 of them when at none."""
    matches = [at for at in range(place.total) if _has(place.hunk_at(at), needle)]
    return (matches.index(place.at) + 1 if place.at in matches else 0), len(matches)


def _is_within(file: PendingFile, path: str) -> bool:
    return file.path.rstrip("/") == path or file.path.startswith(path + "/")


def _has(hunk: PendingHunk, needle: str) -> bool:
    return contains(hunk.path, needle) or any(
        contains(line, needle) for lines in (hunk.old_lines, hunk.new_lines) for line in lines
    )
