"""What a checkpoint holds and, by name, what it does not."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

import json
from collections.abc import Container, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from mulligan.errors import UsageError


class Skipped(NamedTuple):
    """A path that should have been covered and could not be."""

    path: bytes
    reason: str


class Excluded(NamedTuple):
    """What the ignore rules left out: a topmost folder, or single files of one folder."""

    path: bytes
    files: int
    reason: str


class PassedOver(NamedTuple):
    """A rule or settings file of the project that is not in effect, or only in part.

    A broken one has no effect at all; any other one can be accepted by the user.
    """

    path: bytes
    reason: str
    broken: bool


class Coverage(NamedTuple):
    """`complete` says that everything that is in scope is in the checkpoint.

    Where the project itself was skipped (an empty path), it holds some files and says nothing
    about all others.
    """

    skipped: tuple[Skipped, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    guarded: int = 0
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.skipped

    @property
    def is_partial(self) -> bool:
        """Whether nothing follows from a path that it does not hold."""
        return any(not path for path, _reason in self.skipped)

    def reason_for(self, path: bytes) -> str | None:
        """Why a path, or a folder above it, was skipped."""
        for skipped, reason in self.skipped:
            if not skipped or path == skipped or path.startswith(skipped + b"/"):
                return reason
        return None

    def without(self, paths: Container[bytes]) -> "Coverage":
        """The coverage of a checkpoint that holds these paths after all."""
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
        """Canonical bytes, so that checkpoints with the same coverage share one object."""
        return _encoded(self)

    @staticmethod
    def decode(data: bytes) -> "Coverage":
        return _decoded(data)


# One checkpoint mostly covers what the last one did.
@lru_cache(maxsize=4)
def _encoded(coverage: Coverage) -> bytes:
    return json.dumps(coverage.as_json(), sort_keys=True, separators=(",", ":")).encode()


@lru_cache(maxsize=4)
def _decoded(data: bytes) -> Coverage:
    found = json.loads(data)
    return Coverage(
        tuple(Skipped(encode_path(each["path"]), each["reason"]) for each in found["skipped"]),
        tuple(
            Excluded(encode_path(each["path"]), each["files"], each["reason"])
            for each in found["excluded"]
        ),
        found.get("guarded", 0),
        tuple(
            PassedOver(encode_path(each["path"]), each["reason"], each["broken"])
            for each in found.get("passed_over", ())
        ),
    )


def make(
    skipped: Iterable[tuple[bytes, str]],
    excluded: Iterable[tuple[bytes, int, str]],
    guarded: int,
    passed_over: Iterable[PassedOver] = (),
) -> Coverage:
    return Coverage(
        tuple(sorted(Skipped(*each) for each in skipped)),
        tuple(sorted(Excluded(*each) for each in excluded)),
        guarded,
        tuple(sorted(passed_over)),
    )


def decode_path(path: bytes) -> str:
    """A path for people and JSON; bytes that are not UTF-8 become lone surrogates."""
    return path.decode("utf-8", "surrogateescape")


def encode_path(path: str) -> bytes:
    """The reverse of `text`; raises `UsageError` for half a character that is no byte."""
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as problem:
        raise UsageError(
            f"{path!a} holds half a character (a lone surrogate), and no path does."
        ) from problem


def usable(path: str) -> str:
    """The path, if the system can have one of that name; else raises `UsageError`."""
    if "\0" in path:
        raise UsageError(f"{path!a} holds a NUL, and no path does.")
    encode_path(path)
    return path


def decode_lossy(content: bytes) -> str:
    """What a file holds, for JSON and for reading; bytes that are not UTF-8 become marks."""
    return content.decode("utf-8", "replace")


def storable(given: str) -> str:
    """What somebody said, as text that can be stored: half a character becomes a mark."""
    return given if given.isascii() else given.encode("utf-8", "replace").decode()
