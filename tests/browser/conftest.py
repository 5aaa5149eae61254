"""A real browser, and a real server for it: what a person would have.

The browser is Debian's chromium, or the one that MULLIGAN_BROWSER names. The page is built from its
sources if need be. Without a browser, or where the page cannot be built, these tests are skipped,
and say why.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import SECONDS, Served
from playwright import sync_api as playwright

from mulligan.cli.demo.demo import prepare
from mulligan.cli.demo.script import make_project
from mulligan.workspace.workspace import open_workspace

ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    program = os.environ.get("MULLIGAN_BROWSER") or shutil.which("chromium")
    if program is None:
        pytest.fail("there is no chromium; install it, or name one in MULLIGAN_BROWSER")
    _build_page()
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Served]:
    """The sample project as it is before any agent has come, with one checkpoint."""
    make_project(tmp_path / "kettle")
    with open_workspace(tmp_path / "kettle", home=str(tmp_path / "home")) as workspace:
        workspace.checkpoint("First checkpoint")
    served = Served(tmp_path)
    yield served
    served.stop()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """The sample project after all that `mulligan demo` plays, for tests that change it."""
    prepare(tmp_path)
    served = Served(tmp_path)
    yield served
    served.stop()


@pytest.fixture(scope="session")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same, for tests that only look."""
    base = tmp_path_factory.mktemp("looked-at")
    prepare(base)
    served = Served(base)
    yield served
    served.stop()


@pytest.fixture
def open_tab(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a tab that is let in. Whatever the page complains about fails the test."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def open_one(served: Served, path: str = "/", **options: Any) -> Any:
        options = {"viewport": {"width": 1360, "height": 850}} | options
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(SECONDS * 1000)
        tab = context.new_page()
        tab.on("pageerror", lambda problem: complaints.append(str(problem)))
        tab.on("console", lambda message: _note(message, complaints))
        tab.goto(served.page())
        tab.wait_for_url(f"{served.url}/")
        if path != "/":
            tab.goto(served.url + path)
        return tab

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


def _note(message: Any, complaints: list[str]) -> None:
    # That the server was not there, or refused something, is what some tests are about.
    if message.type == "error" and not message.text.startswith("Failed to load resource"):
        complaints.append(message.text)


def _build_page() -> None:
    found = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    module.build(ROOT)
