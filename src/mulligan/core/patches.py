"""Write patches that `git apply` accepts: git's headers and binary bodies.

The headers hold modes, renames and links. Binary content, and text too large to compare, is
written as a `GIT binary patch`, compressed in base 85.
"""

from __future__ import annotations

import zlib
from base64 import b85encode
from collections.abc import Iterator
from hashlib import sha1

from mulligan.core.diff import quoted
from mulligan.core.tree import LINK, Change, Entry

BASE85_LINE_BYTES = 52
BASE85_LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def patch(
    change: Change, old_path: bytes | None, body: bytes | None, *, what: bytes = b"Binary"
) -> bytes:
    """Put git's headers before a diff body; without a body write "`what` files differ"."""
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
    if content_differs(change):
        sides = [
            quoted(side + name) if entry is not None else b"/dev/null"
            for side, name, entry in ((b"a/", source, before), (b"b/", path, after))
        ]
        lines.append(b"%b files %b and %b differ" % (what, *sides))
    if len(lines) == 1:
        # Only a mode changed that git does not store, so there is nothing to write.
        return b""
    return b"\n".join(lines) + b"\n"


def binary_body(old: bytes | None, new: bytes | None) -> bytes:
    """Return a `GIT binary patch` with both contents; `None` is absence.

    Git checks the blob ids before it applies one.
    """
    ids = b"..".join(_git_id(each) for each in (old, new))
    sides = b"".join(_literal(each or b"") for each in (new, old))
    return b"index %b\nGIT binary patch\n%b" % (ids, sides)


def omitted(path: bytes) -> bytes:
    """Return a line that git ignores, for a file too large for the patch."""
    return b"# not in this patch, for it is too large: %b\n" % quoted(path)


def content_differs(change: Change) -> bool:
    """True if more than the mode or the name differs."""
    _path, before, after = change
    if before is not None and after is not None:
        return before.id != after.id
    return any(entry.size for entry in (before, after) if entry is not None)


def _literal(content: bytes) -> bytes:
    return b"literal %d\n%b\n" % (len(content), b"".join(_lines(zlib.compress(content))))


def _lines(data: bytes) -> Iterator[bytes]:
    """Yield base-85 lines; the first letter of each encodes its length."""
    for start in range(0, len(data), BASE85_LINE_BYTES):
        part = data[start : start + BASE85_LINE_BYTES]
        yield BASE85_LENGTHS[len(part) - 1 : len(part)] + b85encode(part, pad=True) + b"\n"


def _git_id(content: bytes | None) -> bytes:
    if content is None:
        return b"0" * 40
    blob = b"blob %d\0%b" % (len(content), content)
    return sha1(blob, usedforsecurity=False).hexdigest().encode()


def _mode(entry: Entry) -> bytes:
    """Return the git mode: a link, an executable or a plain file."""
    if entry.kind == LINK:
        return b"120000"
    return b"100755" if entry.mode & 0o100 else b"100644"
