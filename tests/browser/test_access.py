"""For everybody: axe finds nothing in any view, dialog and theme, and no mouse is needed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import Served
from playwright.sync_api import expect
from test_views import READY, THEMES, paths, shoot

from mulligan.cli.demo.demo import prepare

AXE = Path(__file__).resolve().parents[2] / "ui/node_modules/axe-core/axe.min.js"
CHECK = """async () => {
    const found = await axe.run(document, {resultTypes: ["violations"]});
    return found.violations
        .filter((each) => ["moderate", "serious", "critical"].includes(each.impact))
        .flatMap((each) => each.nodes.map((node) => `${each.id}: ${node.html}`));
}"""


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.exists():
        ui = AXE.parents[2]
        done = subprocess.run(
            ["npm", "install", "--no-save"], cwd=ui, capture_output=True, check=False
        )
        if done.returncode or not AXE.exists():
            pytest.fail("axe-core is not installed, and npm could not install it")
    return AXE.read_text("utf-8")


@pytest.fixture(scope="module")
def served_for_dialogs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The sample project, for dialogs that are opened and left again."""
    base = tmp_path_factory.mktemp("dialogs")
    prepare(base)
    served = Served(base)
    yield served
    served.stop()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("view", READY)
def test_axe_finds_nothing(
    looked_at: Served, open_tab: Callable[..., Any], axe: str, view: str, theme: str
) -> None:
    tab = open_tab(looked_at, paths(looked_at)[view], color_scheme=theme)
    expect(tab.locator(READY[view]).first).to_be_visible()
    tab.wait_for_timeout(300)
    tab.evaluate(axe)
    assert tab.evaluate(CHECK) == []


def _click(name: str) -> Callable[[Any], None]:
    return lambda tab: tab.get_by_role("button", name=name, exact=True).last.click()


def _choose_a_file(tab: Any) -> None:
    tab.get_by_role("button", name="Files", exact=True).click()
    tab.get_by_label("Choose kettle/store.py").check()
    tab.get_by_role("button", name="Restore 1 file…").click()


def _open_a_file(tab: Any) -> None:
    tab.get_by_role("button", name="Files", exact=True).click()
    tab.locator(".tree-file button").filter(has_text="kettle/store.py").click()


def _approve_patterns(tab: Any) -> None:
    tab.get_by_role("button", name="Approvals…").click()
    tab.get_by_role("dialog").get_by_label("Pattern", exact=True).fill("**/*.md")
    tab.get_by_role("dialog").get_by_role("button", name="Add").click()
    expect(tab.locator(".patterns li")).to_have_count(1)


def _forget(tab: Any) -> None:
    row = tab.locator(".setting").filter(has_text="Keep the last")
    row.get_by_role("textbox").or_(row.get_by_role("spinbutton")).fill("3")
    tab.keyboard.press("Enter")
    tab.get_by_role("button", name="Forget now…").click()
    expect(tab.get_by_role("dialog")).to_contain_text("would be forgotten")


WIDE = {"width": 1360, "height": 850}
SMALL = {"width": 420, "height": 800}
DIALOGS: dict[str, tuple[str, dict[str, int], Callable[[Any], None]]] = {
    "help": ("home", WIDE, lambda tab: tab.keyboard.press("?")),
    "keep-all": ("review", WIDE, _click("Keep all")),
    "undo-all": ("review", WIDE, _click("Undo all")),
    "return": ("session", WIDE, _click("Return here")),
    "label": ("session", WIDE, _click("Label")),
    "reset": ("session", WIDE, _click("Reset…")),
    "approvals": ("session", WIDE, _approve_patterns),
    "rename": ("session", WIDE, _click("Rename…")),
    "delete": ("session", WIDE, _click("Delete…")),
    "drawer": ("session", SMALL, _click("Branches")),
    "restore": ("checkpoints", WIDE, _click("Restore…")),
    "restore-files": ("checkpoints", WIDE, _choose_a_file),
    "file": ("checkpoints", WIDE, _open_a_file),
    "forget": ("settings", WIDE, _forget),
}
"""Whatever opens over a view: the view, the window's size, and how to open it."""


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", DIALOGS)
def test_axe_finds_nothing_in_dialogs_and_drawers(
    served_for_dialogs: Served,
    open_tab: Callable[..., Any],
    axe: str,
    tmp_path: Path,
    name: str,
    theme: str,
) -> None:
    view, size, opened = DIALOGS[name]
    served = served_for_dialogs
    tab = open_tab(served, paths(served)[view], color_scheme=theme, viewport=size)
    expect(tab.locator(READY[view]).first).to_be_attached()
    opened(tab)
    dialog = tab.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(dialog.locator(".skeleton")).to_have_count(0)
    tab.wait_for_timeout(400)
    tab.evaluate(axe)
    assert tab.evaluate(CHECK) == []
    shoot(tab, tmp_path, f"dialog-{name}-{theme}")
    tab.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("view", READY)
def test_axe_finds_nothing_in_a_small_window(
    looked_at: Served, open_tab: Callable[..., Any], axe: str, view: str, theme: str
) -> None:
    tab = open_tab(looked_at, paths(looked_at)[view], color_scheme=theme, viewport=SMALL)
    expect(tab.locator(READY[view]).first).to_be_attached()
    tab.wait_for_timeout(300)
    tab.evaluate(axe)
    assert tab.evaluate(CHECK) == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("part", ["files", "coverage", "now"])
def test_axe_finds_nothing_in_the_parts_of_a_checkpoint(
    looked_at: Served, open_tab: Callable[..., Any], axe: str, part: str, theme: str
) -> None:
    query = "c=now" if part == "now" else f"part={part}"
    tab = open_tab(looked_at, f"{paths(looked_at)['checkpoints']}?{query}", color_scheme=theme)
    ready = {"files": ".tree-file", "coverage": ".point-pane h3, .point-pane p", "now": ".empty"}
    expect(tab.locator(ready[part]).first).to_be_visible()
    tab.evaluate(axe)
    assert tab.evaluate(CHECK) == []


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_in_toasts_and_when_the_server_is_gone(
    served: Served, open_tab: Callable[..., Any], axe: str, theme: str
) -> None:
    tab = open_tab(served, paths(served)["review"], color_scheme=theme)
    expect(tab.locator(".hunk-head").first).to_be_visible()
    tab.keyboard.press("y")
    expect(tab.locator(".toast")).to_be_visible()
    served.stop()
    expect(tab.get_by_text("The server cannot be reached.")).to_be_visible()
    tab.keyboard.press("y")
    expect(tab.locator(".toast-problem")).to_be_visible()
    tab.wait_for_timeout(300)
    tab.evaluate(axe)
    assert tab.evaluate(CHECK) == []
    served.start()


def test_the_keyboard_is_enough(served: Served, open_tab: Callable[..., Any]) -> None:
    tab = open_tab(served)
    expect(tab.locator(".session-row").first).to_be_visible()
    press = tab.keyboard.press
    press("?")
    dialog = tab.get_by_role("dialog")
    expect(dialog).to_contain_text("go to the review")
    press("Escape")
    expect(dialog).to_have_count(0)

    press("g")
    press("r")
    place = tab.locator(".stepper-place")
    expect(place).to_have_text("Change 1 of 15")
    press("j")
    press("j")
    expect(place).to_have_text("Change 3 of 15")
    press("k")
    expect(place).to_have_text("Change 2 of 15")
    press("n")
    expect(place).to_have_text("Change 2 of 14")
    press("u")
    expect(place).to_contain_text("of 15")
    press("d")
    expect(place).to_contain_text("of 1")
    press("s")
    expect(tab.locator(".diff-pair").first).to_be_visible()

    press("g")
    press("c")
    expect(tab.locator(".point").first).to_be_visible()
    press("j")
    expect(tab.locator(".point.is-active")).to_be_visible()

    press("/")
    expect(tab.get_by_label("Search everything")).to_be_focused()
    tab.keyboard.type("overdue")
    expect(tab.locator(".hit").first).to_be_visible()
    press("ArrowDown")
    expect(tab.locator(".hit").first).to_be_focused()
    press("Enter")
    expect(tab.locator(".entry.is-target")).to_be_visible()

    press("g")
    press("h")
    expect(tab.locator(".session-row").first).to_be_visible()
    press("j")
    expect(tab.locator(".session-row").first).to_be_focused()
    press("Enter")
    expect(tab.locator(".asked").first).to_be_visible()


def test_focus_can_be_seen_and_returns_after_a_dialog(
    looked_at: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(looked_at, paths(looked_at)["checkpoints"])
    expect(tab.locator(".diff-line").first).to_be_visible()
    button = tab.get_by_role("button", name="Restore…")
    button.focus()
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("dialog")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(button).to_be_focused()
    tab.keyboard.press("Tab")
    style = "getComputedStyle(document.activeElement).outlineStyle"
    assert tab.evaluate(style) != "none"
