"""The direction of imports between the rooms, read from the source of every module.

    errors, version, clock, sqlite_readonly <- core
        <- store, journal, worktree, importers, exporters <- workspace <- agent
        <- the public API (`mulligan` itself) <- protocols, server <- cli <- __main__

A room may import itself and what is to the left of it; rooms between the same arrows do not know
each other. Every import statement counts, wherever it stands: inside a function, or under
`if TYPE_CHECKING`. `core` moreover is pure: no disk, no clock, no chance.

Inside a room, the modules and folders of every folder form an order too: none imports another
that imports it back, directly or by way of others. `INNER_ORDERS` says which, where it matters.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"

API = "mulligan"
LEVELS = [
    {"errors", "version", "clock", "sqlite_readonly"},
    {"core"},
    {"store", "journal", "worktree", "importers", "exporters"},
    {"workspace"},
    {"agent"},
    {API},
    {"protocols", "server"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: number for number, rooms in enumerate(LEVELS) for room in rooms}

CORE_MAY_IMPORT = sys.stdlib_module_names | {"msgspec"}
CORE_ROOMS = {"core", "errors"}
IMPURE = {
    *("os", "pathlib", "shutil", "tempfile", "sqlite3", "apsw"),
    *("time", "random", "secrets"),
    *("asyncio", "multiprocessing", "socket", "subprocess", "threading"),
}

SQL = re.compile(r"\s*(SELECT |INSERT |DELETE FROM |UPDATE \S+ SET |PRAGMA )")
EXECUTING = ("execute", "executemany")
MAY_WRITE_SQL = ("journal", "store", "importers", "sqlite_readonly")
SHOWS_SQL = "mulligan.cli.demo."
"""The demo's project, whose files hold SQL."""

INNER_ORDERS = {
    "mulligan.worktree": [{"fs"}, {"ignore", "watch"}, {"scan"}, {"restore"}],
    "mulligan.workspace": [
        {"project", "results", "new_id", "git_program"},
        {"settings"},
        {"open_project"},
        {"appending", "imported"},
        {"snapshot"},
        {"attribution", "trust"},
        {"watch_server", "import_previews"},
        {"restore", "search", "maintenance"},
        {"review", "sessions", "excludes"},
        {"transfer"},
        {"hooks"},
        {"opening", "session_commands", "review_commands", "maintenance_commands"},
        {"workspace"},
    ],
}


def test_every_import_follows_the_direction_of_the_rooms() -> None:
    modules = list(modules_of(SOURCES))
    assert API in [name for name, _, _ in modules]
    wrong = [
        complaint
        for name, is_package, source in modules
        for complaint in complaints(name, source, is_package=is_package)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("errors", "import mulligan.core.tree", "errors must not import core"),
        ("errors", "from mulligan.version import __version__", "errors must not import version"),
        ("core.tree", "import mulligan.store", "core must not import store"),
        ("core.tree", "import json, mulligan.store.packs as p", "core must not import store"),
        ("core.tree", "from mulligan import store", "core must not import store"),
        ("core.tree", "from .. import errors, worktree", "core must not import worktree"),
        ("core.tree", "from ..worktree.scan import walk", "core must not import worktree"),
        ("core.tree", "from ..version import __version__", "core must not import version"),
        ("core.deep.er", "from ...journal import db", "core must not import journal"),
        ("core.tree", "import os.path", "core must not import os"),
        ("core.tree", "from pathlib import PurePath", "core must not import pathlib"),
        ("core.tree", "def f():\n    import random", "core must not import random"),
        ("core.tree", "import numpy", "core must not import numpy"),
        ("store.packs", "from mulligan.journal.db import Journal", "store must not import journal"),
        ("worktree.scan", "from ..store import objects", "worktree must not import store"),
        ("worktree.scan", "from mulligan import Workspace", "worktree must not import mulligan"),
        ("importers.pi", "from .. import *", "importers must not import mulligan"),
        ("store.packs", "class A:\n  from ..agent import x", "store must not import agent"),
        (
            "journal.db",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..workspace import Open",
            "journal must not import workspace",
        ),
        (
            "workspace.open",
            "try:\n    x\nfinally:\n    async def f():\n        import mulligan.cli",
            "workspace must not import cli",
        ),
        ("workspace.open", "from mulligan.agent import loop", "workspace must not import agent"),
        ("server.app", "import mulligan.protocols.mcp.server", "server must not import protocols"),
        ("server.app", "from ..cli.output import table", "server must not import cli"),
        ("", "from .cli import main", "mulligan must not import cli"),
        ("helpers", "import json", "helpers is not a room"),
        ("store.packs", "from ..helpers import things", "helpers is not a room"),
    ],
)
def test_an_import_against_the_direction_is_found(module: str, source: str, complaint: str) -> None:
    name = f"{API}.{module}".rstrip(".")
    found = complaints(name, source, is_package=not module)
    assert [text.split(": ")[1] for text in found] == [complaint]


@pytest.mark.parametrize(
    ("module", "is_package", "source"),
    [
        ("mulligan", True, "from .workspace import Workspace\nfrom .version import __version__"),
        ("mulligan", True, "from mulligan.errors import MulliganError"),
        ("mulligan.version", False, "__version__ = '1'"),
        ("mulligan.core", True, "from .tree import Tree\nfrom . import diff"),
        ("mulligan.core.tree", False, "from . import diff\nfrom .diff import hunks"),
        ("mulligan.core.tree", False, "import hashlib, msgspec\nfrom ..errors import Corrupt"),
        ("mulligan.core.tree", False, "from mulligan import errors"),
        (
            "mulligan.store.packs",
            False,
            "import os\nfrom ..core import tree\nfrom . import gc",
        ),
        ("mulligan.workspace.open", False, "from .. import store, journal, worktree, errors"),
        ("mulligan.server", True, "from ..workspace import open\nfrom .app import App"),
        ("mulligan.cli.main", False, "import mulligan, click\nfrom ..server import app"),
        ("mulligan.__main__", False, "from .cli.main import main"),
    ],
)
def test_an_import_along_the_direction_is_allowed(
    module: str, is_package: bool, source: str
) -> None:
    assert complaints(module, source, is_package=is_package) == []


def test_a_module_with_a_bad_import_is_found_on_disk(tmp_path: Path) -> None:
    room = tmp_path / "mulligan" / "store"
    room.mkdir(parents=True)
    (tmp_path / "mulligan" / "__init__.py").touch()
    (room / "__init__.py").write_text("from ..journal import db\n")
    (room / "packs.py").write_text("from . import gc\n")
    found = [
        complaint
        for name, is_package, source in modules_of(tmp_path)
        for complaint in complaints(name, source, is_package=is_package)
    ]
    assert found == ["mulligan.store, line 1: store must not import journal"]


def test_no_folder_has_an_import_cycle() -> None:
    folders = inner_imports(SOURCES)
    assert {"mulligan.workspace", "mulligan.worktree.scan"} <= folders.keys()
    wrong = [f"{folder}: {' -> '.join(cycle)}" for folder, cycle in cycles(folders)]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("folder", INNER_ORDERS)
def test_a_folder_keeps_its_inner_order(folder: str) -> None:
    level = {name: number for number, names in enumerate(INNER_ORDERS[folder]) for name in names}
    present = {path.stem for path in (SOURCES / folder.replace(".", "/")).iterdir()}
    assert present - {"__init__", "__pycache__"} == level.keys()
    wrong = [
        f"{name} must not import {other}"
        for name, others in inner_imports(SOURCES)[folder].items()
        for other in others
        if level[other] >= level[name]
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_only_the_journal_and_the_store_write_sql() -> None:
    wrong = [
        f"{name}, line {line}: SQL belongs into a function of journal"
        for name, _is_package, source in modules_of(SOURCES)
        if room_of(name) not in MAY_WRITE_SQL and not name.startswith(SHOWS_SQL)
        for line in sql_lines(source)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('rows("SELECT path FROM ledger")', [1]),
        ('sql = (\n    f"SELECT {COLUMNS} "\n    "FROM entries"\n)', [2]),
        ("x = 1\ndb.execute(sql)", [2]),
        ('row("""\n    UPDATE entries SET seq = 1""")', [1]),
        ('"""Delete from the table; UPDATE SET in a list of words."""', []),
    ],
)
def test_sql_is_found_in_a_source(source: str, lines: list[int]) -> None:
    assert list(sql_lines(source)) == lines


def test_a_cycle_inside_a_folder_is_found(tmp_path: Path) -> None:
    room = tmp_path / "mulligan" / "store"
    room.mkdir(parents=True)
    (room / "a.py").write_text("def f():\n    from mulligan.store.b import c\n")
    (room / "b.py").write_text("from mulligan.store import a\n")
    (room / "c.py").write_text("from mulligan.store import a\n")
    assert list(cycles(inner_imports(tmp_path))) == [("mulligan.store", ["a", "b", "a"])]


def sql_lines(source: str) -> Iterator[int]:
    """The lines with a string that begins as SQL, or with a call that executes some."""
    for node in ast.walk(ast.parse(source)):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if (is_text and SQL.match(node.value)) or (is_method and node.func.attr in EXECUTING):
            yield node.lineno


def inner_imports(sources: Path) -> dict[str, dict[str, set[str]]]:
    """For every folder: which of its modules and folders import which others of it."""
    modules = list(modules_of(sources))
    known = {name for name, _is_package, _source in modules}
    folders: dict[str, dict[str, set[str]]] = {}
    for name, is_package, source in modules:
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.ImportFrom):
                continue
            origin = absolute(name, node, is_package=is_package)
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                add_edge(folders, name, full if full in known else origin)
    return folders


def add_edge(folders: dict[str, dict[str, set[str]]], importer: str, imported: str) -> None:
    """Note the import in the folder where the two modules' paths part."""
    here, there = importer.split("."), imported.split(".")
    common = 0
    while common < min(len(here), len(there)) and here[common] == there[common]:
        common += 1
    if 1 < common < min(len(here), len(there)):
        folder = folders.setdefault(".".join(here[:common]), {})
        folder.setdefault(here[common], set()).add(there[common])


def cycles(folders: dict[str, dict[str, set[str]]]) -> Iterator[tuple[str, list[str]]]:
    """One import cycle of each folder that has any."""
    for folder, imports in folders.items():
        for start in sorted(imports):
            if found := path_back(imports, start, [start]):
                yield folder, found
                break


def path_back(imports: dict[str, set[str]], start: str, path: list[str]) -> list[str] | None:
    for other in sorted(imports.get(path[-1], ())):
        if other == start:
            return [*path, other]
        if other not in path and (found := path_back(imports, start, [*path, other])):
            return found
    return None


def modules_of(sources: Path) -> Iterator[tuple[str, bool, str]]:
    """Every module under `sources`: its name, whether it is a package, and its source."""
    for path in sorted(sources.rglob("*.py")):
        parts = path.relative_to(sources).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        yield name, is_package, path.read_text("utf-8")


def complaints(module: str, source: str, *, is_package: bool) -> list[str]:
    """What is wrong with the imports of a module, one line each."""
    room = room_of(module)
    if room not in LEVEL:
        return [f"{module}, line 1: {room} is not a room"]
    found = []
    for line, name in imported_names(module, source, is_package=is_package):
        top = name.split(".")[0]
        other = room_of(name) if top == API else top
        if top == API and other not in LEVEL:
            reason = f"{other} is not a room"
        elif not may_import(room, other, ours=top == API):
            reason = f"{room} must not import {other}"
        else:
            continue
        found.append(f"{module}, line {line}: {reason}")
    return found


def may_import(room: str, other: str, *, ours: bool) -> bool:
    if ours:
        allowed = other == room or LEVEL[other] < LEVEL[room]
        return allowed and (room != "core" or other in CORE_ROOMS)
    return room != "core" or (other in CORE_MAY_IMPORT and other not in IMPURE)


def room_of(module: str) -> str:
    """`store` for `mulligan.store.packs`; the API for `mulligan` itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else API


def imported_names(module: str, source: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """The absolute name of every module that a source imports, with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            origin = absolute(module, node, is_package=is_package)
            if origin != API:
                yield node.lineno, origin
                continue
            # `from mulligan import store` imports a room; any other name is the API's.
            for alias in node.names:
                yield node.lineno, f"{API}.{alias.name}" if alias.name in LEVEL else API


def absolute(module: str, node: ast.ImportFrom, *, is_package: bool) -> str:
    """Where a `from … import` takes from, its leading dots resolved."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    up = node.level - 1 if is_package else node.level
    base = parts[: len(parts) - up]
    return ".".join([*base, *([node.module] if node.module else [])])
