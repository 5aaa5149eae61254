"""The user's settings: `config.toml` in the home, then what was set for the project through
Mulligan, then `.mulligan.toml` in the project itself. The later wins.

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
from collections.abc import Mapping
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


SET = "settings.toml"
SWITCHES = {"review": ("keep_on_commit",), "agents": ("tell_rejections", "strict")}


class Settings(NamedTuple):
    """What is in force for a project."""

    limits: Limits = Limits()
    keep_on_commit: bool = True
    tell_rejections: bool = False
    strict: bool = False


def read_settings(home: str, root: bytes, directory: str | None = None) -> Settings:
    """The settings of a project; raises `UsageError` for one that makes no sense.

    `directory` is where the project's data is, and what was set through Mulligan.
    """
    found = Settings()
    places: list[str | bytes] = [os.path.join(home, "config.toml")]
    if directory is not None:
        places.append(os.path.join(directory, SET))
    for path in (*places, os.path.join(root, b".mulligan.toml")):
        if os.path.isfile(path):
            found = _applied(found, _read(path), text(os.fsencode(path)))
    return found


def change_settings(directory: str, values: Mapping[str, Mapping[str, Any]]) -> None:
    """Sets some settings for a project, by section and name; `None` takes one back."""
    unknown = set(values) - {"checkpoints", *SWITCHES}
    if unknown:
        raise UsageError(f"There is no section {', '.join(sorted(unknown))} of settings.")
    path = os.path.join(directory, SET)
    known = _read(path) if os.path.isfile(path) else {}
    for section, given in values.items():
        inside = known.setdefault(section, {})
        if not isinstance(given, Mapping) or not isinstance(inside, dict):
            raise UsageError(f"The settings of {section!r} are names and values.")
        inside |= given
        known[section] = {name: value for name, value in inside.items() if value is not None}
    _applied(Settings(), known, "the settings")
    lines = []
    for section, inside in known.items():
        lines += [f"[{section}]", *(f"{name} = {_toml(value)}" for name, value in inside.items())]
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def section_of(name: str) -> str:
    """The section that a setting stands in."""
    return next((each for each, names in SWITCHES.items() if name in names), "checkpoints")


def as_json(settings: Settings) -> dict[str, dict[str, Any]]:
    """The settings by section and name, as they are written."""
    limits = settings.limits._asdict()
    return {
        "checkpoints": {name: limits[field] for name, field in NAMES.items()},
        **{
            section: {name: getattr(settings, name) for name in names}
            for section, names in SWITCHES.items()
        },
    }


def _applied(found: Settings, content: dict[str, Any], where: str) -> Settings:
    found = found._replace(limits=_with(found.limits, content, where))
    return found._replace(**_switches(content, where))


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str) and value.isprintable() and not {'"', "\\"} & set(value):
        return f'"{value}"'
    raise UsageError(f"{value!r} cannot be a setting.")


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
