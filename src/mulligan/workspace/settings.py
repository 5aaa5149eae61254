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

[retention]                   # what to forget when somebody asks for it; 0 is no rule
keep_last = 0                 # all but the last so many checkpoints
keep_days = 0                 # those that are older
keep_size = 0                 # the oldest, until the rest fits
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from mulligan.core.coverage import text
from mulligan.errors import UsageError
from mulligan.worktree.ignore.stat_memo import Remembered, consult
from mulligan.worktree.scan.classify import Limits

UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
MOST = 1 << 53  # what every reader of JSON can tell from its neighbours
SET = "settings.toml"
LIMITS = {
    "max_file_size": "file_bytes",
    "guard": "guard",
    "guard_file_size": "guard_bytes",
    "guard_total_size": "guard_total",
}


class Retention(NamedTuple):
    """What is to be forgotten when somebody asks for it; 0 is no rule."""

    keep_last: int = 0
    keep_days: int = 0
    keep_size: int = 0


class Settings(NamedTuple):
    """What is in force for a project."""

    limits: Limits = Limits()
    keep_on_commit: bool = True
    tell_rejections: bool = False
    strict: bool = False
    retention: Retention = Retention()

    def as_json(self) -> dict[str, int | bool]:
        """Every setting by its name."""
        limits = self.limits._asdict()
        found = {name: limits[field] for name, field in LIMITS.items()} | self._asdict()
        del found["limits"], found["retention"]
        return found | self.retention._asdict()


class InForce:
    """The settings of a project that is open for long: those that its files have at the moment."""

    def __init__(self, home: str, root: bytes, directory: str) -> None:
        self._where = (home, root, directory)
        self._known = Remembered[Settings]()
        self.read()

    def read(self) -> Settings:
        return self._known.get(None, lambda: read_settings(*self._where))


def read_settings(home: str, root: bytes, directory: str | None = None) -> Settings:
    """The settings of a project; raises `UsageError` for one that makes no sense.

    `directory` is where the project's data is, and what was set through Mulligan.
    """
    values: dict[str, Any] = {}
    for _place, said in _said(home, root, directory):
        values |= said
    return _made(values)


def origins(home: str, root: bytes, directory: str) -> dict[str, str]:
    """Where each setting that is not the default comes from: `home`, `set` or `project`."""
    found: dict[str, str] = {}
    for place, said in _said(home, root, directory):
        found |= dict.fromkeys(said, place)
    return found


def change_settings(directory: str, values: Mapping[str, Mapping[str, Any]]) -> None:
    """Sets some settings for a project, by section and name; `None` takes one back."""
    unknown = set(values) - set(SECTIONS)
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
    _checked(known, "the settings")
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
    """The section that a setting stands in; raises `UsageError` if there is no such setting."""
    for section, inside in SECTIONS.items():
        if name in inside:
            return section
    raise UsageError(f"There is no setting {name!r}.")


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


def _number(value: object, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST:
        return value
    raise UsageError(f"{where} must be a whole number; 0 is no rule.")


def _switch(value: object, where: str) -> bool:
    if isinstance(value, bool):
        return value
    raise UsageError(f"{where} must be true or false.")


Reading = Callable[[object, str], int]
SECTIONS: dict[str, dict[str, Reading]] = {
    "checkpoints": {
        "max_file_size": parse_size,
        "guard": _switch,
        "guard_file_size": parse_size,
        "guard_total_size": parse_size,
    },
    "review": {"keep_on_commit": _switch},
    "agents": {"tell_rejections": _switch, "strict": _switch},
    "retention": {"keep_last": _number, "keep_days": _number, "keep_size": parse_size},
}
"""Every setting, and how what somebody wrote for it is read."""


def _said(home: str, root: bytes, directory: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """What each place says, the one that wins last."""
    for place, path in _places(home, root, directory):
        if os.path.isfile(consult(path)):
            yield place, _checked(_read(path), text(os.fsencode(path)))


def _places(home: str, root: bytes, directory: str | None) -> Iterator[tuple[str, str | bytes]]:
    yield "home", os.path.join(home, "config.toml")
    if directory is not None:
        yield "set", os.path.join(directory, SET)
    yield "project", os.path.join(root, b".mulligan.toml")


def _checked(content: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values in a file, by name. Sections of which nobody knows here are somebody else's."""
    found: dict[str, Any] = {}
    for section, known in SECTIONS.items():
        inside = content.get(section, {})
        if not isinstance(inside, dict):
            raise UsageError(f"{where}: [{section}] must be a table.")
        for name, value in inside.items():
            if name not in known:
                raise UsageError(
                    f"{where}: there is no setting {section}.{name}; there are {', '.join(known)}."
                )
            found[name] = known[name](value, f"{where}: {section}.{name}")
    return found


def _made(values: Mapping[str, Any]) -> Settings:
    limits = {field: values[name] for name, field in LIMITS.items() if name in values}
    retention = {name: values[name] for name in Retention._fields if name in values}
    rest = {name: values[name] for name in Settings._fields if name in values}
    return Settings(limits=Limits(**limits), retention=Retention(**retention), **rest)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str) and value.isprintable() and not {'"', "\\"} & set(value):
        return f'"{value}"'
    raise UsageError(f"{value!r} cannot be a setting.")


def _read(path: str | bytes) -> dict[str, Any]:
    import tomllib

    with open(path, "rb") as file:
        try:
            return tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise UsageError(
                f"{text(os.fsencode(path))} is not valid TOML: {problem}."
            ) from problem
