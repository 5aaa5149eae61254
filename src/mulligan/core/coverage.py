"""Describe what a checkpoint does not hold, by path and reason; encode paths as text."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

import json
from collections.abc import Container, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from mulligan.errors import UsageError


class Skipped(NamedTuple):
    """A path in scope that the scanner could not read."""

    path: bytes
    reason: str


class Excluded(NamedTuple):
    """A topmost folder that is ignored, or `files` ignored files of one folder."""

    path: bytes
    files: int
    reason: str


class PassedOver(NamedTuple):
    """A rule or settings file of the project that is not fully in effect.

    A broken file has no effect; any other one can be accepted by the user.
    """

    path: bytes
    reason: str
    broken: bool


class Coverage(NamedTuple):
    """What a checkpoint lacks.

    If the root itself was skipped (an empty path), the checkpoint is partial: it holds some files
    and says nothing about others.
    """

    skipped: tuple[Skipped, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    guarded: int = 0
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def complete(self) -> bool:
        """True if the checkpoint holds everything in scope."""
        return not self.skipped

    @property
    def is_partial(self) -> bool:
        """True if a missing path may still have existed."""
        return any(not path for path, _reason in self.skipped)

    def reason_for(self, path: bytes) -> str | None:
        """Return why a path, or a folder above it, was skipped."""
        for skipped, reason in self.skipped:
            if not skipped or path == skipped or path.startswith(skipped + b"/"):
                return reason
        return None

    def without(self, paths: Container[bytes]) -> "Coverage":
        """Return the coverage with `paths` no longer skipped."""
        return self._replace(skipped=tuple(each for each in self.skipped if each.path not in paths))

    def as_json(self) -> dict[str, Any]:
        return {
            "complete": self.complete,
            "skipped": [
                {"path": decode_path(path), "reason": reason} for path, reason in self.skipped
            ],
            "excluded": [
                {"path": decode_path(path), "files": files, "reason": reason}
                for path, files, reason in self.excluded
            ],
            "guarded": self.guarded,
            "passed_over": [
                {"path": decode_path(path), "reason": reason, "broken": broken}
                for path, reason, broken in self.passed_over
            ],
        }

    def encode(self) -> bytes:
        """Return canonical bytes, so that equal coverages share one object."""
        return _encoded(self)

    @staticmethod
    def decode(data: bytes) -> "Coverage":
        return _decoded(data)


# Consecutive checkpoints mostly have the same coverage.
@lru_cache(maxsize=4)
def _encoded(coverage: Coverage) -> bytes:
    return json.dumps(coverage.as_json(), sort_keys=True, separators=(",", ":")).encode()


@lru_cache(maxsize=4)
def _decoded(data: bytes) -> Coverage:
    fields = json.loads(data)
    return Coverage(
        tuple(Skipped(encode_path(each["path"]), each["reason"]) for each in fields["skipped"]),
        tuple(
            Excluded(encode_path(each["path"]), each["files"], each["reason"])
            for each in fields["excluded"]
        ),
        fields.get("guarded", 0),
        tuple(
            PassedOver(encode_path(each["path"]), each["reason"], each["broken"])
            for each in fields.get("passed_over", ())
        ),
    )


def make(
    skipped: Iterable[tuple[bytes, str]],
    excluded: Iterable[tuple[bytes, int, str]],
    guarded: int,
    passed_over: Iterable[PassedOver] = (),
) -> Coverage:
    """Return a coverage with all parts sorted, as `encode` needs them."""
    return Coverage(
        tuple(sorted(Skipped(*each) for each in skipped)),
        tuple(sorted(Excluded(*each) for each in excluded)),
        guarded,
        tuple(sorted(passed_over)),
    )


def decode_path(path: bytes) -> str:
    """Decode a path; bytes that are not UTF-8 become lone surrogates."""
    return path.decode("utf-8", "surrogateescape")


def encode_path(path: str) -> bytes:
    """Reverse `decode_path`; raise `UsageError` for any other lone surrogate."""
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as problem:
        raise UsageError(
            f"{path!a} holds a lone surrogate (half a character), which no path can."
        ) from problem


def usable(path: str) -> str:
    """Return the path, or raise `UsageError` if no file can have it."""
    if "\0" in path:
        raise UsageError(f"{path!a} holds a NUL, which no path can.")
    encode_path(path)
    return path


def decode_lossy(content: bytes) -> str:
    """Decode content for display; bytes that are not UTF-8 become U+FFFD."""
    return content.decode("utf-8", "replace")


def storable(text: str) -> str:
    """Return text that UTF-8 can hold; lone surrogates become `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
