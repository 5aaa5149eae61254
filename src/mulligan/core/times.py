"""Format and parse times: UTC, RFC 3339, milliseconds.

This is done without `datetime`, which would be one of the largest imports of a hook.
"""

from __future__ import annotations

NS_PER_SECOND = 1_000_000_000
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The range of years with four digits."""

CLOCK_STEP_NS = 60 * NS_PER_SECOND

EPOCH_DAY = 719_468
"""Days from the first of March of the year 0 to the epoch."""
DAYS_IN_400_YEARS = 146_097


def rfc3339(nanoseconds: int) -> str:
    """Format nanoseconds since the epoch as `2026-11-15T12:00:00.000Z`."""
    seconds, rest = divmod(nanoseconds, NS_PER_SECOND)
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise ValueError("The year of a time must have four digits.")
    days, second = divmod(seconds, 86_400)
    year, month, day = _date(days)
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}.{rest // 1_000_000:03d}Z"


def nanoseconds(text: str) -> int:
    """Parse any RFC 3339 time into nanoseconds since the epoch."""
    parsed = _parse_own_format(text)
    return _parse_any_format(text) if parsed is None else parsed


def stamp_after(previous: str | None, now: int) -> str:
    """Return `just_after`, but `now` if `previous` came from a wrong clock.

    A clock that is set back by more than `CLOCK_STEP_NS` was wrong before, or is wrong now, so no
    order follows from its times.
    """
    if previous is not None and _is_wrong(previous, now):
        return rfc3339(now)
    return just_after(previous, now)


def not_before(previous: str, now: int) -> str:
    """Return the later of both; `now` if `previous` came from a wrong clock."""
    text = rfc3339(now)
    return previous if text < previous and not _is_wrong(previous, now) else text


def just_after(previous: str | None, now: int) -> str:
    """Return `now`, but at least one millisecond after `previous`."""
    text = rfc3339(now)
    if previous is None or text > previous:
        return text
    return rfc3339(nanoseconds(previous) + 1_000_000)


def _is_wrong(previous: str, now: int) -> bool:
    return nanoseconds(previous) - now > CLOCK_STEP_NS


def _parse_own_format(text: str) -> int | None:
    try:
        year, month, day = int(text[0:4]), int(text[5:7]), int(text[8:10])
        hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
        seconds = ((_days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
        parsed = seconds * NS_PER_SECOND + int(text[20:23]) * 1_000_000
        return parsed if rfc3339(parsed) == text else None
    except ValueError:
        return None


def _days(year: int, month: int, day: int) -> int:
    """Return days since the epoch; years begin in March, so a leap day comes last."""
    years, months = (year, month - 3) if month > 2 else (year - 1, month + 9)
    leap_days = years // 4 - years // 100 + years // 400
    return years * 365 + leap_days + (153 * months + 2) // 5 + day - 1 - EPOCH_DAY


def _date(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a day since the epoch."""
    eras, day = divmod(days + EPOCH_DAY, DAYS_IN_400_YEARS)
    years = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= years * 365 + years // 4 - years // 100
    months = (5 * day + 2) // 153
    day -= (153 * months + 2) // 5
    year = eras * 400 + years
    return (year, months + 3, day + 1) if months < 10 else (year + 1, months - 9, day + 1)


def _parse_any_format(text: str) -> int:
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole = moment.replace(microsecond=0)
    return int(whole.timestamp()) * NS_PER_SECOND + moment.microsecond * 1_000
