"""Lines and times of logs are read whatever they hold."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mulligan.importers import json_log
from mulligan.importers.json_log import INCOMPLETE_LAST_LINE, read_json_file, read_json_lines
from mulligan.importers.records import Problem
from mulligan.importers.values import as_timestamp


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-11-15T12:00:00Z", "2026-11-15T12:00:00.000Z"),
        ("2026-11-15T12:00:00.123456789+02:00", "2026-11-15T10:00:00.123Z"),
        ("2026-11-15 12:00:00", "2026-11-15T12:00:00.000Z"),
        (1763208000, "2025-11-15T12:00:00.000Z"),
        (1763208000.25, "2025-11-15T12:00:00.250Z"),
        (1763208000123, "2025-11-15T12:00:00.123Z"),
        (1763208000123456, "2025-11-15T12:00:00.123Z"),
        (1763208000123456789, "2025-11-15T12:00:00.123Z"),
        ("yesterday", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-10:00", None),
        (-1, None),
        (10**40, None),
        (float("inf"), None),
        (True, None),
        (None, None),
        ({}, None),
    ],
)
def test_timestamps_of_all_units_are_converted_or_none(value: object, time: str | None) -> None:
    assert as_timestamp(value) == time


def read(path: Path, content: bytes) -> list[tuple[int, dict[str, Any] | Problem]]:
    path.write_bytes(content)
    return list(read_json_lines(str(path)))


def test_line_numbers_count_empty_lines(tmp_path: Path) -> None:
    found = read(tmp_path / "log", b'\xef\xbb\xbf{"a": 1}\n\n \r\n{"b": 2}\r\n')
    assert found == [(1, {"a": 1}), (4, {"b": 2})]


@pytest.mark.parametrize("end", [b'{"a": "\xc3', b'{"a"', b'{"a": 1'])
def test_an_incomplete_last_line_is_reported_as_such(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "log"
    assert read(path, b'{"a": 1}\n' + end)[1] == (2, Problem(str(path), 2, INCOMPLETE_LAST_LINE))
    assert read(path, b'{"a": 1}\n{"b": 2}')[1] == (2, {"b": 2})


def test_parsed_values_can_be_written_as_json_again(tmp_path: Path) -> None:
    odd = rb'{"a": NaN, "b": -Infinity, "c": 1e999, "d": "\ud800x", "\udfff": ["\ud83d\ude00"]}'
    ((_, value),) = read(tmp_path / "log", odd)
    assert value == {"a": None, "b": None, "c": None, "d": "�x", "�": ["😀"]}
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()


def test_a_line_that_is_too_long_is_skipped_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_log, "MAX_RECORD_BYTES", 100)
    found = read(tmp_path / "log", b'{"a": "' + b"x" * 3_000_000 + b'"}\n{"b": 2}\n')
    assert isinstance(found[0][1], Problem)
    assert found[1] == (2, {"b": 2})
    # The byte that exceeds the limit is the newline itself.
    found = read(tmp_path / "log", b'{"a": "' + b"x" * 91 + b'"}\n{"b": 2}\n')
    assert isinstance(found[0][1], Problem)
    assert found[1:] == [(2, {"b": 2})]


def test_a_number_of_thousands_of_digits_is_a_problem(tmp_path: Path) -> None:
    ((_, problem),) = read(tmp_path / "log", b'{"a": ' + b"9" * 10_000 + b"}\n")
    assert isinstance(problem, Problem)
    assert problem.reason == "Not JSON: a number is too long."


def test_deep_nesting_is_refused_at_the_same_depth_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for depth, taken in ((99, True), (101, False), (200_000, False)):
        ((_, value),) = read(path, b'{"a": ' + b"[" * depth + b"]" * depth + b"}\n")
        assert isinstance(value, dict) is taken


def test_a_pipe_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="Not a regular file"):
        list(read_json_lines(str(tmp_path / "pipe")))


def test_a_bare_list_is_wrapped_in_an_object(tmp_path: Path) -> None:
    path = tmp_path / "whole"
    path.write_text("[1, 2]")
    assert read_json_file(str(path), list_as="history") == {"history": [1, 2]}
    assert read_json_file(str(path)) == Problem(str(path), 1, "Not a JSON object.")
