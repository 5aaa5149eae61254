"""One time format everywhere: UTC, RFC 3339, milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(nanoseconds: int) -> str:
    """Nanoseconds since the epoch as `2026-11-15T12:00:00.000Z`."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, UTC)
    # Not by %Y, which does not pad the years before 1000 everywhere.
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}.{rest // 1_000_000:03d}Z"


def nanoseconds(text: str) -> int:
    """The reverse of `rfc3339`; accepts any RFC 3339 time."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole = moment.replace(microsecond=0)
    return int(whole.timestamp()) * 1_000_000_000 + moment.microsecond * 1_000


def just_after(previous: str | None, now: int) -> str:
    """`now`, or the millisecond after `previous` if the clock has not moved past it."""
    text = rfc3339(now)
    if previous is None or text > previous:
        return text
    return rfc3339(nanoseconds(previous) + 1_000_000)
