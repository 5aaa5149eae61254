"""For everybody: no serious finding of axe in any view and theme, and no need for a mouse."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import Served
from playwright.sync_api import expect
from test_views import READY, THEMES, paths

AXE = Path(__file__).resolve().parents[2] / "ui/node_modules/axe-core/axe.min.js"
CHECK = """async () => {
    const found = await axe.run(document, {resultTypes: ["violations"]});
    return found.violations
        .filter((each) => ["serious", "critical"].includes(each.impact))
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


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("view", READY)
def test_axe_finds_nothing_serious(
    looked_at: Served, open_tab: Callable[..., Any], axe: str, view: str, theme: str
) -> None:
    tab = open_tab(looked_at, paths(looked_at)[view], color_scheme=theme)
    expect(tab.locator(READY[view]).first).to_be_visible()
    tab.wait_for_timeout(300)
    tab.evaluate(axe)
    assert tab.evaluate(CHECK) == []


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious_in_dialogs(
    looked_at: Served, open_tab: Callable[..., Any], axe: str, theme: str
) -> None:
    tab = open_tab(looked_at, paths(looked_at)["session"], color_scheme=theme)
    tab.get_by_role("button", name="Return here").last.click()
    expect(tab.get_by_role("dialog").locator(".option").first).to_be_visible()
    tab.wait_for_timeout(400)
    tab.evaluate(axe)
    assert tab.evaluate(CHECK) == []
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("dialog")).to_have_count(0)
    tab.keyboard.press("?")
    expect(tab.get_by_role("dialog")).to_contain_text("Keyboard")
    assert tab.evaluate(CHECK) == []


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
