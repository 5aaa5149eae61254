"""Coerce untrusted JSON values to an expected type.

A log may hold any JSON value anywhere. Each `as_…` function returns its argument if the type
fits, else an empty value, so readers never have to check types themselves.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, Final

from mulligan.core.times import nanoseconds, rfc3339


def as_str(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_nonblank(value: object) -> str | None:
    """Return text without surrounding whitespace; None if nothing is left."""
    return as_str(value).strip() or None


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_number(value: object) -> float | None:
    """Return a non-negative number, such as a count, a size or a duration."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value >= 0 else None


def as_timestamp(value: object) -> str | None:
    """Convert RFC 3339 text, or a number since the epoch, to our timestamp format.

    The magnitude of a number decides its unit: seconds, milliseconds, microseconds, nanoseconds.
    """
    if isinstance(value, str):
        try:
            since = nanoseconds(value.strip())
        except (ValueError, OverflowError):
            return None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            return None
        unit = next((unit for below, unit in _NANOSECONDS_PER_UNIT if value < below), None)
        if unit is None:
            return None
        since = int(value * unit) if isinstance(value, int) else round(value * 1000) * unit // 1000
    else:
        return None
    # Times outside of this range are errors, and would not sort as text.
    return rfc3339(since) if 0 < since < _LATEST_NS else None


def without_empty(**values: object) -> dict[str, Any]:
    """Drop the values that are None, or an empty text, list or object."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


_NANOSECONDS_PER_UNIT: Final = (
    *((1e11, 1_000_000_000), (1e14, 1_000_000), (1e17, 1_000), (1e20, 1)),
)
_LATEST_NS: Final = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 1_000_000_000
