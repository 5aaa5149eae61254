"""One time format everywhere: UTC, RFC 3339, milliseconds.

Our own format is written and read by hand: what the standard library has for it would be among the
larger things that a hook imports.
"""

from __future__ import annotations

NS_PER_SECOND = 1_000_000_000
FIRST, LAST = -62_135_596_800, 253_402_300_799
"""The seconds that years of four digits have."""

CLOCK_STEP_NS = 60 * NS_PER_SECOND

DAYS_BEFORE = 719_468
"""From the first of March of the year 0 to the epoch."""
IN_400_YEARS = 146_097


def rfc3339(nanoseconds: int) -> str:
    """Nanoseconds since the epoch as `2026-11-15T12:00:00.000Z`."""
    seconds, rest = divmod(nanoseconds, NS_PER_SECOND)
    if not FIRST <= seconds <= LAST:
        raise ValueError("The year of a time has four digits.")
    days, second = divmod(seconds, 86_400)
    year, month, day = _date(days)
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}.{rest // 1_000_000:03d}Z"


def nanoseconds(text: str) -> int:
    """The reverse of `rfc3339`; accepts any RFC 3339 time."""
    found = _as_written_here(text)
    return _as_written_anywhere(text) if found is None else found


def stamp_after(previous: str | None, now: int) -> str:
    """As `just_after`, but for a `previous` time that only a wrong clock can have given.

    A clock that is set right goes back by a little; by more than `CLOCK_STEP_NS`, and it was wrong
    before or is now, and no later time must follow from an earlier one.
    """
    if previous is not None and _is_wrong(previous, now):
        return rfc3339(now)
    return just_after(previous, now)


def not_before(previous: str, now: int) -> str:
    """The later of `previous` and `now`; `now` if only a wrong clock can have given the other."""
    text = rfc3339(now)
    return previous if text < previous and not _is_wrong(previous, now) else text


def just_after(previous: str | None, now: int) -> str:
    """`now`, or the millisecond after `previous` if the clock has not moved past it."""
    text = rfc3339(now)
    if previous is None or text > previous:
        return text
    return rfc3339(nanoseconds(previous) + 1_000_000)


def _is_wrong(previous: str, now: int) -> bool:
    return nanoseconds(previous) - now > CLOCK_STEP_NS


def _as_written_here(text: str) -> int | None:
    try:
        year, month, day = int(text[0:4]), int(text[5:7]), int(text[8:10])
        hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
        seconds = ((_days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
        found = seconds * NS_PER_SECOND + int(text[20:23]) * 1_000_000
        return found if rfc3339(found) == text else None
    except ValueError:
        return None


def _days(year: int, month: int, day: int) -> int:
    """Since the epoch. A year that begins in March has the odd day at its end."""
    years, months = (year, month - 3) if month > 2 else (year - 1, month + 9)
    leap_days = years // 4 - years // 100 + years // 400
    return years * 365 + leap_days + (153 * months + 2) // 5 + day - 1 - DAYS_BEFORE


def _date(days: int) -> tuple[int, int, int]:
    """The reverse: year, month and day."""
    eras, day = divmod(days + DAYS_BEFORE, IN_400_YEARS)
    years = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= years * 365 + years // 4 - years // 100
    months = (5 * day + 2) // 153
    day -= (153 * months + 2) // 5
    year = eras * 400 + years
    return (year, months + 3, day + 1) if months < 10 else (year + 1, months - 9, day + 1)


def _as_written_anywhere(text: str) -> int:
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole = moment.replace(microsecond=0)
    return int(whole.timestamp()) * NS_PER_SECOND + moment.microsecond * 1_000
