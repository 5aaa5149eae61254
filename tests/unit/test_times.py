"""Test that times are formatted and parsed as the standard library does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mulligan.core.times import just_after, nanoseconds, rfc3339

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = 1_000_000
times = st.datetimes(timezones=st.just(UTC)).map(
    lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
)


def since(time: datetime) -> int:
    return (time - EPOCH) // timedelta(milliseconds=1) * MILLISECOND


@given(times)
@example(datetime(1, 1, 1, tzinfo=UTC))
@example(datetime(2000, 2, 29, 23, 59, 59, 999000, tzinfo=UTC))
@example(datetime(1900, 3, 1, tzinfo=UTC))
@example(datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC))
def test_a_time_is_written_and_read_as_the_library_does(time: datetime) -> None:
    text = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert rfc3339(since(time)) == text
    assert nanoseconds(text) == since(time)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-11-15T13:00:00+01:00", "2026-11-15T12:00:00.000Z"),
        ("2026-11-15 12:00:00", "2026-11-15T12:00:00.000Z"),
        ("2026-11-15T12:00:00.123456Z", "2026-11-15T12:00:00.123Z"),
    ],
)
def test_any_other_form_is_read_too(text: str, same: str) -> None:
    assert rfc3339(nanoseconds(text)) == same


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "2026-02-29T00:00:00.000Z", "2026-13-01T00:00:00.000Z"),
        *("2026-11-15T24:00:00.001Z", "2026-11-15T12:00:60.000Z", "+026-11-15T12:00:00.000Z"),
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        nanoseconds(text)


@pytest.mark.parametrize("seconds", [-62_135_596_801, 253_402_300_800, 1 << 70])
def test_a_year_that_does_not_fit_is_refused(seconds: int) -> None:
    with pytest.raises(ValueError):
        rfc3339(seconds * 1_000_000_000)


def test_times_only_ever_increase() -> None:
    assert just_after("2026-12-31T23:59:59.999Z", 0) == "2027-01-01T00:00:00.000Z"
