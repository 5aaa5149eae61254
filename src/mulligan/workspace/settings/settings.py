"""Read settings from three files; later ones win.

1. `config.toml` in Mulligan's home.
2. What was set for the project through Mulligan, in the project's data.
3. `.mulligan.toml` in the project itself.

Agents and strangers can write the third. Until the user accepts its content (`trust`), only those
of its values count that protect at least as much as the user's own; a broken file is ignored. A
mistake in the user's own files raises `UsageError`.

[checkpoints]
max_file_size = "100 MB"      # larger files are named in coverage, not kept
guard = true                  # keep copies of small files that only a file pattern ignores
guard_file_size = "5 MB"
guard_total_size = "200 MB"

[review]
keep_on_commit = true         # work committed with git counts as kept

[agents]
tell_rejections = false       # tell an agent at its next prompt what the user undid
strict = false                # stop an agent whose work cannot be recorded

[retention]                   # what `mulligan forget` deletes; 0 is no rule
keep_last = 0                 # all but the last N checkpoints
keep_days = 0                 # checkpoints older than N days
keep_size = 0                 # the oldest, until the store fits
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from mulligan.core.coverage import PassedOver, decode_path
from mulligan.errors import UsageError
from mulligan.workspace.settings.accepted import read_accepted
from mulligan.worktree.fs.safe_paths import open_root
from mulligan.worktree.ignore.stat_memo import StatMemo, depends_on
from mulligan.worktree.scan.classify import Limits
from mulligan.worktree.scan.rule_files import Accepted, RuleFile, is_accepted, read_rule_file

UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
MAX_SAFE_JSON_INTEGER = 1 << 53  # JSON readers lose precision above 2**53.
MAX_FILE_BYTES = 256 << 10
SET_FILE = "settings.toml"
PROJECT_FILE = b".mulligan.toml"
PROJECT_FILE_MAX_BYTES = 64 << 10
REASON_MAX_LENGTH = 300
LINE_MAX_DOTS = 64
LIMITS = {
    "max_file_size": "file_bytes",
    "guard": "guard",
    "guard_file_size": "guard_bytes",
    "guard_total_size": "guard_total",
}


class Retention(NamedTuple):
    """What `forget` deletes by rule; 0 is no rule."""

    keep_last: int = 0
    keep_days: int = 0
    keep_size: int = 0


class Settings(NamedTuple):
    """The settings in effect for a project."""

    limits: Limits = Limits()
    keep_on_commit: bool = True
    tell_rejections: bool = False
    strict: bool = False
    retention: Retention = Retention()

    def as_json(self) -> dict[str, int | bool]:
        """Return every setting by name."""
        limits = self.limits._asdict()
        values = {name: limits[field] for name, field in LIMITS.items()} | self._asdict()
        del values["limits"], values["retention"]
        return values | self.retention._asdict()


class Effective(NamedTuple):
    """The settings in effect, the origin of each, and what of the project's file is ignored."""

    settings: Settings
    origins: dict[str, str]
    accepted: Accepted
    passed_over: PassedOver | None = None


class InForce:
    """The settings of an open project, read again when a file changes."""

    def __init__(self, home: str, root: bytes, directory: str) -> None:
        self._where = (home, root, directory)
        self._known = StatMemo[Effective]()
        self.read()

    def read(self) -> Effective:
        return self._known.get(None, lambda: effective(*self._where))


def read_settings(home: str, root: bytes, directory: str | None = None) -> Settings:
    """Read a project's settings; raise `UsageError` for a mistake in the user's files.

    `directory` holds the project's data, with the settings that were set through Mulligan.
    """
    return effective(home, root, directory).settings


def origins(home: str, root: bytes, directory: str) -> dict[str, str]:
    """Return the origin of each changed setting: `home`, `set` or `project`."""
    return effective(home, root, directory).origins


def effective(home: str, root: bytes, directory: str | None = None) -> Effective:
    """Read the user's settings, then what the project's file may add to them."""
    values, places = _user_values(home, directory)
    accepted = read_accepted(directory)
    content, problem = read_project_file(root)
    said: dict[str, Any] = {}
    if content is not None:
        try:
            said = _checked(_parsed(content), "has a mistake")
        except UsageError as mistake:
            problem = str(mistake)
    passed_over = PassedOver(PROJECT_FILE, _shortened(problem), True) if problem else None
    if content is not None and not is_accepted(PROJECT_FILE, content, accepted):
        less = _weakened(said, _make(values))
        said = {name: value for name, value in said.items() if name not in less}
        if less:
            reason = f"is not accepted; ignored in it: {', '.join(less)}"
            passed_over = PassedOver(PROJECT_FILE, reason, False)
    return Effective(
        _make(values | said), places | dict.fromkeys(said, "project"), accepted, passed_over
    )


def read_project_file(root: bytes) -> RuleFile:
    """Read the project's own settings file, as far as that is safe."""
    depends_on(os.path.join(root, PROJECT_FILE))
    try:
        with open_root(root) as fd:
            return read_rule_file(fd, PROJECT_FILE, PROJECT_FILE_MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return RuleFile(None)


def weakened_by(home: str, directory: str, content: bytes) -> list[str]:
    """Return the settings that a project's file weakens; raise `UsageError` if it is broken."""
    own, _places = _user_values(home, directory)
    return _weakened(_checked(_parsed(content), decode_path(PROJECT_FILE)), _make(own))


def _weakened(said: Mapping[str, int], own: Settings) -> list[str]:
    present = own.as_json()
    return [name for name, value in said.items() if not PROTECTS[name](value, present[name])]


def _user_values(home: str, directory: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of the user's own files, and the origin of each."""
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for place, path in _user_files(home, directory):
        if os.path.isfile(depends_on(path)):
            said = _checked(_read(path), decode_path(os.fsencode(path)))
            values |= said
            places |= dict.fromkeys(said, place)
    return values, places


def _shortened(problem: str) -> str:
    problem = problem.rstrip(".")
    return problem if len(problem) <= REASON_MAX_LENGTH else problem[:REASON_MAX_LENGTH] + "…"


def change_settings(directory: str, values: Mapping[str, Mapping[str, Any]]) -> None:
    """Set settings of a project, by section and name; `None` resets one."""
    unknown = set(values) - set(SECTIONS)
    if unknown:
        raise UsageError(f"There is no section {', '.join(sorted(unknown))} of settings.")
    path = os.path.join(directory, SET_FILE)
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
    """Return the section of a setting; raise `UsageError` if it is unknown."""
    for section, inside in SECTIONS.items():
        if name in inside:
            return section
    raise UsageError(f"There is no setting {name!r}.")


def parse_size(value: object, where: str) -> int:
    """Parse a number of bytes: a number, or text such as `100 MB`."""
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and 0 <= value <= MAX_SAFE_JSON_INTEGER
    ):
        return value
    if isinstance(value, str):
        number = value.strip().rstrip("kKmMgGtTbB").strip()
        unit = value.strip()[len(number) :].strip().upper()
        unit = unit if unit.endswith("B") or not unit else unit + "B"
        try:
            if (
                unit in UNITS
                and 0 <= (size := float(number) * UNITS[unit]) <= MAX_SAFE_JSON_INTEGER
            ):
                return int(size)
        except (ValueError, OverflowError):
            pass
    raise UsageError(f"{where}: {value!r} is not a size; write a number of bytes, or '100 MB'.")


def _number(value: object, where: str) -> int:
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and 0 <= value <= MAX_SAFE_JSON_INTEGER
    ):
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
"""Every setting, with the parser of its value."""


def _at_least(value: int, own: int) -> bool:
    return value >= own


def _deletes_no_sooner(value: int, own: int) -> bool:
    """True if a retention rule deletes no sooner; 0 is no rule."""
    return value == 0 or 0 < own <= value


PROTECTS: dict[str, Callable[[int, int], bool]] = {
    "max_file_size": _at_least,
    "guard": _at_least,
    "guard_file_size": _at_least,
    "guard_total_size": _at_least,
    # Work that counts as kept is no longer shown for review.
    "keep_on_commit": lambda value, own: value <= own,
    # Only the user decides how agents are treated.
    "tell_rejections": operator.eq,
    "strict": operator.eq,
    "keep_last": _deletes_no_sooner,
    "keep_days": _deletes_no_sooner,
    "keep_size": _deletes_no_sooner,
}
"""For each setting: does the project's value protect at least as much as the user's?"""


def _user_files(home: str, directory: str | None) -> Iterator[tuple[str, str]]:
    yield "home", os.path.join(home, "config.toml")
    if directory is not None:
        yield "set", os.path.join(directory, SET_FILE)


def _checked(content: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a file's values by setting; unknown sections belong to other programs."""
    checked: dict[str, Any] = {}
    for section, known in SECTIONS.items():
        inside = content.get(section, {})
        if not isinstance(inside, dict):
            raise UsageError(f"{where}: [{section}] must be a table.")
        for name, value in inside.items():
            if name not in known:
                raise UsageError(
                    f"{where}: there is no setting {section}.{name}; there are {', '.join(known)}."
                )
            checked[name] = known[name](value, f"{where}: {section}.{name}")
    return checked


def _make(values: Mapping[str, Any]) -> Settings:
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


def _read(path: str) -> dict[str, Any]:
    """Read one of the user's own files."""
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise UsageError(f"is larger than {MAX_FILE_BYTES >> 10} KiB")
        return _parsed(content)
    except UsageError as problem:
        raise UsageError(f"{decode_path(os.fsencode(path))} {problem}.") from problem
    except OSError as problem:
        raise UsageError(
            f"{decode_path(os.fsencode(path))} cannot be read: {problem.strerror}. Fix it, or "
            "move it "
            "away."
        ) from problem


def _parsed(content: bytes) -> dict[str, Any]:
    import tomllib

    # tomllib is quadratic in the number of parts of a key, and a key is within one line.
    for line in content.splitlines():
        if line.count(b".") > LINE_MAX_DOTS and not line.lstrip().startswith(b"#"):
            raise UsageError(f"has a line with more than {LINE_MAX_DOTS} dots")
    try:
        return tomllib.loads(content.decode())
    except RecursionError as problem:
        raise UsageError("is not valid TOML: it is nested too deeply") from problem
    except ValueError as problem:
        raise UsageError(f"is not valid TOML: {problem}") from problem
