"""Every view shows what it is for, in both themes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import Served
from playwright.sync_api import expect

SHOTS = os.environ.get("MULLIGAN_SHOTS")  # read now: tests do not see such names
THEMES = ("light", "dark")
TITLE = "Due dates for tasks"


def paths(served: Served) -> dict[str, str]:
    """The address of each view."""
    project = f"/p/{served.project}"
    return {
        "home": "/",
        "review": f"{project}/review",
        "session": f"{project}/session?id={served.session(TITLE)}",
        "checkpoints": f"{project}/checkpoints",
        "search": "/search?q=due",
        "statistics": "/statistics",
        "settings": f"{project}/settings",
    }


CUT_OFF = """() => [...document.querySelectorAll("main button, main a, main select")]
    .filter((each) => each.checkVisibility({visibilityProperty: true}))
    .filter((each) => !each.closest(".settings-nav, .unseen"))
    .map((each) => [each.textContent, each.getBoundingClientRect()])
    .filter(([text, box]) => box.width && (box.right > innerWidth + 1 || box.left < -1))
    .map(([text]) => text)"""
"""What can be pressed, but lies outside of the window at its left or right."""

READY = {
    "home": ".session-row",
    "review": ".hunk-head",
    "session": ".tree-node",
    "checkpoints": ".diff-line",
    "search": ".hit",
    "statistics": ".plot rect",
    "settings": ".setting",
}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("view", READY)
def test_each_view_shows_what_it_is_for(
    looked_at: Served, open_tab: Callable[..., Any], tmp_path: Path, view: str, theme: str
) -> None:
    tab = open_tab(looked_at, paths(looked_at)[view], color_scheme=theme)
    expect(tab.locator(READY[view]).first).to_be_visible()
    expect(tab.get_by_role("heading", level=1)).to_have_count(1)
    expect(tab.get_by_text("Live", exact=True)).to_be_visible()
    tab.wait_for_timeout(300)
    shoot(tab, tmp_path, f"{view}-{theme}")


def shoot(tab: Any, tmp_path: Path, name: str) -> None:
    """A picture of the page, into the folder that MULLIGAN_SHOTS names."""
    folder = Path(SHOTS or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=folder / f"{name}.png")


def test_home_lists_sessions_with_what_is_pending(
    looked_at: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(looked_at)
    rows = tab.locator(".session-row")
    expect(rows).to_have_count(6)
    expect(rows.first).to_contain_text(TITLE)
    expect(rows.first).to_contain_text("claude-code")
    expect(rows.first).to_contain_text("waiting for you")
    # One session has something pending; the others have no badge at all.
    expect(tab.locator(".session-pending")).to_have_count(1)
    expect(tab.locator(".session-pending")).to_contain_text("+51")
    tab.get_by_label("Filter the sessions").fill("gemini")
    expect(rows).to_have_count(1)
    tab.get_by_label("Filter the sessions").fill("nobody said this")
    expect(tab.get_by_text("No session matches")).to_be_visible()


def test_the_conversation_shows_messages_calls_edits_and_checkpoints(
    looked_at: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(looked_at, paths(looked_at)["session"])
    expect(tab.locator(".asked").first).to_be_visible()
    expect(tab.locator(".entry-step_snapshot").first).to_contain_text("Checkpoint")
    expect(tab.locator(".edit .path").first).to_be_visible()
    call = tab.locator(".call").filter(has_text="Bash").first
    expect(call.locator("pre")).to_have_count(0)
    call.locator("summary").click()
    expect(call.locator("pre").first).to_be_visible()
    # The branch that was left is drawn, but not as a part of the way.
    expect(tab.locator(".tree-node")).to_have_count(5)
    expect(tab.locator(".tree-node.is-active")).to_have_count(4)


def test_a_branch_that_was_left_can_be_looked_at(
    looked_at: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(looked_at, paths(looked_at)["session"])
    tab.locator(".tree-row").filter(has_text="Go ahead").click()
    expect(tab.get_by_text("This branch was left.")).to_be_visible()
    expect(tab.locator(".entry.is-target")).to_contain_text("Go ahead")
    tab.get_by_role("link", name="Show the current branch").click()
    expect(tab.get_by_text("This branch was left.")).to_be_hidden()


def test_in_a_narrow_window_the_branches_are_in_a_drawer(
    looked_at: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(
        looked_at, paths(looked_at)["session"], viewport={"width": 600, "height": 800}
    )  # fmt: skip
    tree = tab.locator(".tree-row").first
    button = tab.get_by_role("button", name="Branches")
    expect(button).to_be_visible()
    expect(tree).to_be_hidden()
    button.click()
    expect(tree).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tree).to_be_hidden()
    expect(button).to_be_focused()
    button.click()
    tab.locator(".tree-row").filter(has_text="Go ahead").click()
    expect(tree).to_be_hidden()
    expect(tab.locator(".entry.is-target")).to_contain_text("Go ahead")


def test_checkpoints_are_compared_looked_into_and_opened(
    looked_at: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(looked_at, paths(looked_at)["checkpoints"])
    expect(tab.locator(".point")).to_have_count(17)
    expect(tab.locator(".file-head").first).to_contain_text("README.md")
    tab.locator(".compare select").select_option(index=4)
    expect(tab.locator(".file-head").first).to_be_visible()
    tab.get_by_role("button", name="Files", exact=True).click()
    tab.get_by_label("Filter the files").fill("store.py")
    tab.locator(".tree-file button").filter(has_text="kettle/store.py").click()
    expect(tab.get_by_role("dialog")).to_contain_text("class Store")
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("dialog")).to_have_count(0)
    tab.get_by_role("button", name="Coverage").click()
    expect(tab.get_by_text("Everything that is in scope")).to_be_visible()


def test_any_two_checkpoints_are_compared_with_the_keyboard(
    looked_at: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(looked_at, paths(looked_at)["checkpoints"])
    expect(tab.locator(".file-head").first).to_contain_text("README.md")
    for _ in range(15):
        tab.keyboard.press("j")
    expect(tab.locator(".point.is-active")).to_contain_text("First checkpoint")
    tab.keyboard.press("b")
    expect(tab.get_by_text("from here", exact=True)).to_be_visible()
    for _ in range(15):
        tab.keyboard.press("k")
    points = looked_at.get(f"/projects/{looked_at.project}/checkpoints")["checkpoints"]
    ends = f"from={points[-1]['checkpoint']}&to={points[0]['checkpoint']}"
    files = looked_at.get(f"/projects/{looked_at.project}/diff?{ends}&stat=true")["files"]
    assert len(files) > 5
    expect(tab.locator(".bar-note").last).to_contain_text(f"{len(files)} files")
    tab.keyboard.press("b")
    expect(tab.get_by_role("button", name="Choose another to compare")).to_be_visible()
    tab.keyboard.press("b")
    expect(tab.get_by_text("from here", exact=True)).to_have_count(0)


def test_search_marks_what_matched_and_leads_to_its_moment(
    looked_at: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(looked_at, "/search")
    expect(tab.get_by_text("Search all sessions")).to_be_visible()
    tab.get_by_label("Search everything").type("collid")
    expect(tab.locator(".hit mark").first).to_have_text("collide")
    tab.locator(".hit").first.click()
    expect(tab.locator(".entry.is-target")).to_contain_text("ids that do not collide")
    tab.goto(looked_at.url + "/search?q=" + "C%2B%2B%20%22AND%20(")
    expect(tab.get_by_text("Nothing found")).to_be_visible()


def test_statistics_count_tools_and_agents(looked_at: Served, open_tab: Callable[..., Any]) -> None:
    tab = open_tab(looked_at, "/statistics")
    expect(tab.locator(".figures").first).to_contain_text("Bash")
    expect(tab.locator(".legend")).to_contain_text("gemini-cli")
    tab.get_by_role("button", name="Week").click()
    expect(tab.locator(".plot rect").first).to_be_visible()


def test_verify_runs_to_its_end_and_says_so(
    looked_at: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(looked_at, paths(looked_at)["settings"])
    tab.get_by_role("button", name="Verify").click()
    expect(tab.get_by_text("All is well")).to_be_visible()
    tab.get_by_role("button", name="How much?").click()
    expect(tab.get_by_text("could be freed")).to_be_visible()


def test_the_theme_that_was_chosen_stays(looked_at: Served, open_tab: Callable[..., Any]) -> None:
    tab = open_tab(looked_at, color_scheme="light")
    tab.get_by_role("button", name="Dark").click()
    tab.reload()
    expect(tab.locator("html")).to_have_attribute("data-theme", "dark")


def test_an_address_that_is_none_leads_back(
    looked_at: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(looked_at, "/nowhere")
    tab.get_by_role("link", name="Go to the sessions").click()
    expect(tab.locator(".session-row").first).to_be_visible()


@pytest.mark.parametrize("width", [880, 1000, 1360])
@pytest.mark.parametrize("view", READY)
def test_nothing_is_cut_off_in_windows_of_other_widths(
    looked_at: Served, open_tab: Callable[..., Any], view: str, width: int
) -> None:
    tab = open_tab(looked_at, paths(looked_at)[view], viewport={"width": width, "height": 800})
    expect(tab.locator(READY[view]).first).to_be_attached()
    assert tab.evaluate(CUT_OFF) == []


def test_nothing_is_cut_off_where_times_take_more_room(
    looked_at: Served, open_tab: Callable[..., Any]
) -> None:
    window = {"width": 880, "height": 800}
    tab = open_tab(looked_at, paths(looked_at)["checkpoints"], viewport=window, locale="pt-BR")
    expect(tab.locator(".point-about")).to_contain_text(" de 20")
    assert tab.evaluate(CUT_OFF) == []


@pytest.mark.parametrize("view", READY)
def test_a_small_window_shows_everything_without_scrolling_sideways(
    looked_at: Served, open_tab: Callable[..., Any], view: str
) -> None:
    tab = open_tab(
        looked_at, paths(looked_at)[view], viewport={"width": 420, "height": 760}
    )  # fmt: skip
    expect(tab.locator("main")).to_be_visible()
    tab.wait_for_timeout(400)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 420
    assert tab.evaluate(CUT_OFF) == []
