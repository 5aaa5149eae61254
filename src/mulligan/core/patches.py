"""Patches as `git apply` takes them: git's headers, and the contents of what is no text.

The header says what a plain difference cannot: modes, renames and links. Contents that are no
text, or too much of it to compare, are written out compressed, in git's base 85.
"""

from __future__ import annotations

import zlib
from base64 import b85encode
from collections.abc import Iterator
from hashlib import sha1

from mulligan.core.diff import quoted
from mulligan.core.tree import LINK, Change, Entry

LINE_BYTES = 52
LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def patch(
    change: Change, old_path: bytes | None, body: bytes | None, *, what: bytes = b"Binary"
) -> bytes:
    """The difference of two texts with git's headers; a file without one is only named, as `what`
    it is."""
    path, before, after = change
    source = old_path or path
    lines = [b"diff --git %b %b" % (quoted(b"a/" + source), quoted(b"b/" + path))]
    if before is None and after is not None:
        lines.append(b"new file mode " + _mode(after))
    elif after is None and before is not None:
        lines.append(b"deleted file mode " + _mode(before))
    elif before is not None and after is not None and _mode(before) != _mode(after):
        lines += [b"old mode " + _mode(before), b"new mode " + _mode(after)]
    if old_path is not None:
        lines += [b"rename from " + quoted(old_path), b"rename to " + quoted(path)]
    if body:
        return b"\n".join(lines) + b"\n" + body
    if has_other_content(change):
        sides = [
            quoted(side + name) if entry is not None else b"/dev/null"
            for side, name, entry in ((b"a/", source, before), (b"b/", path, after))
        ]
        lines.append(b"%b files %b and %b differ" % (what, *sides))
    if len(lines) == 1:
        # A mode that git does not know: there is nothing that a patch could say.
        return b""
    return b"\n".join(lines) + b"\n"


def contents(old: bytes | None, new: bytes | None) -> bytes:
    """The body of a patch that holds both contents whole; `None` is absence.

    Git wants to know the ids that it would give them, and applies to nothing else.
    """
    ids = b"..".join(_git_id(each) for each in (old, new))
    sides = b"".join(_literal(each or b"") for each in (new, old))
    return b"index %b\nGIT binary patch\n%b" % (ids, sides)


def left_out(path: bytes) -> bytes:
    """A line that git passes over, in place of a patch that would be too large."""
    return b"# not in this patch, for it is too large: %b\n" % quoted(path)


def has_other_content(change: Change) -> bool:
    """Whether there is more to a change than a mode or a name."""
    _path, before, after = change
    if before is not None and after is not None:
        return before.id != after.id
    return any(entry.size for entry in (before, after) if entry is not None)


def _literal(content: bytes) -> bytes:
    return b"literal %d\n%b\n" % (len(content), b"".join(_lines(zlib.compress(content))))


def _lines(data: bytes) -> Iterator[bytes]:
    """Each line begins with a letter that says how many bytes it holds."""
    for start in range(0, len(data), LINE_BYTES):
        part = data[start : start + LINE_BYTES]
        yield LENGTHS[len(part) - 1 : len(part)] + b85encode(part, pad=True) + b"\n"


def _git_id(content: bytes | None) -> bytes:
    if content is None:
        return b"0" * 40
    blob = b"blob %d\0%b" % (len(content), content)
    return sha1(blob, usedforsecurity=False).hexdigest().encode()


def _mode(entry: Entry) -> bytes:
    """Git knows links, and two modes of a file."""
    if entry.kind == LINK:
        return b"120000"
    return b"100755" if entry.mode & 0o100 else b"100644"
