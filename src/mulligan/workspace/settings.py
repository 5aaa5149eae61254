"""The user's settings: `config.toml` in the home, and `.mulligan.toml` in the project, which wins.

[checkpoints]
max_file_size = "100 MB"      # larger files are named in coverage, not kept
guard = true                  # keep copies of small files that only a file pattern ignores
guard_file_size = "5 MB"
guard_total_size = "200 MB"

[review]
keep_on_commit = true         # what is committed with git counts as kept

[agents]
tell_rejections = false       # tell an agent at its next prompt what of its work was undone
strict = false                # stop an agent when what it does cannot be recorded
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from mulligan.core.coverage import text
from mulligan.errors import UsageError
from mulligan.files.scan import Limits

UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
NAMES = {
    "max_file_size": "file_bytes",
    "guard": "guard",
    "guard_file_size": "guard_bytes",
    "guard_total_size": "guard_total",
}


SWITCHES = {"review": ("keep_on_commit",), "agents": ("tell_rejections", "strict")}


class Settings(NamedTuple):
    """What is in force for a project."""

    limits: Limits = Limits()
    keep_on_commit: bool = True
    tell_rejections: bool = False
    strict: bool = False


def read_settings(home: str, root: bytes) -> Settings:
    """The settings of a project; raises `UsageError` for one that makes no sense."""
    found = Settings()
    for path in (os.path.join(home, "config.toml"), os.path.join(root, b".mulligan.toml")):
        if os.path.isfile(path):
            content, name = _read(path), text(os.fsencode(path))
            found = found._replace(limits=_with(found.limits, content, name))
            found = found._replace(**_switches(content, name))
    return found


def parse_size(value: object, where: str) -> int:
    """A number of bytes, from a number or from text such as `100 MB`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str):
        number = value.strip().rstrip("kKmMgGtTbB").strip()
        unit = value.strip()[len(number) :].strip().upper()
        unit = unit if unit.endswith("B") or not unit else unit + "B"
        try:
            if unit in UNITS and float(number) >= 0:
                return int(float(number) * UNITS[unit])
        except (ValueError, OverflowError):
            pass
    raise UsageError(f"{where}: {value!r} is not a size; write a number of bytes, or '100 MB'.")


def _with(limits: Limits, content: dict[str, Any], path: str) -> Limits:
    section = content.get("checkpoints", {})
    if not isinstance(section, dict):
        raise UsageError(f"{path}: [checkpoints] must be a table.")
    for name, value in section.items():
        if name not in NAMES:
            raise UsageError(
                f"{path}: there is no setting checkpoints.{name}; there are {', '.join(NAMES)}."
            )
        if name == "guard":
            if not isinstance(value, bool):
                raise UsageError(f"{path}: checkpoints.guard must be true or false.")
            limits = limits._replace(guard=value)
        else:
            values: dict[str, Any] = limits._asdict()
            values[NAMES[name]] = parse_size(value, f"{path}: checkpoints.{name}")
            limits = Limits(**values)
    return limits


def _switches(content: dict[str, Any], path: str) -> dict[str, Any]:
    """What is simply on or off, by section."""
    found: dict[str, Any] = {}
    for section, names in SWITCHES.items():
        values = content.get(section, {})
        if not isinstance(values, dict):
            raise UsageError(f"{path}: [{section}] must be a table.")
        for name, value in values.items():
            if name not in names:
                raise UsageError(
                    f"{path}: there is no setting {section}.{name}; there are {', '.join(names)}."
                )
            if not isinstance(value, bool):
                raise UsageError(f"{path}: {section}.{name} must be true or false.")
            found[name] = value
    return found


def _read(path: str | bytes) -> dict[str, Any]:
    import tomllib

    with open(path, "rb") as file:
        try:
            return tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise UsageError(
                f"{text(os.fsencode(path))} is not valid TOML: {problem}."
            ) from problem
