"""Several tabs, agents at work, and a server that goes and comes back."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from browsing import Served
from playwright.sync_api import expect

from mulligan.cli.demo.script import Agent

LOADED = """() => performance.getEntriesByType("resource").filter(({name}) =>
    /assets\\/(review|session|checkpoints|search|statistics|settings)-/.test(name)).length"""


def test_what_one_tab_decides_the_other_shows(served: Served, open_tab: Callable[..., Any]) -> None:
    path = f"/p/{served.project}/review"
    one, other = open_tab(served, path), open_tab(served, path)
    expect(one.locator(".stepper-place")).to_have_text("Change 1 of 15")
    expect(other.locator(".stepper-place")).to_have_text("Change 1 of 15")
    one.keyboard.press("a")
    expect(one.locator(".stepper-place")).to_have_text("Change 1 of 13")
    expect(other.locator(".stepper-place")).to_have_text("Change 1 of 13")
    other.keyboard.press("u")
    expect(one.locator(".stepper-place")).to_have_text("Change 3 of 15")


def test_the_reader_keeps_his_place_while_an_agent_works(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(served, f"/p/{served.project}/review")
    expect(tab.locator(".stepper-place")).to_have_text("Change 1 of 15")
    for _ in range(7):
        tab.keyboard.press("j")
    expect(tab.locator(".stepper-place")).to_have_text("Change 8 of 15")
    active = tab.locator(".hunk-head.is-active")
    expect(active).to_be_visible()
    tab.wait_for_timeout(300)
    hunk, top = active.get_attribute("data-hunk"), active.bounding_box()["y"]
    with served.workspace() as workspace:
        agent = Agent(workspace, "codex", "another-model", "Meanwhile")
        agent.asked("Add a file that comes first.")
        agent.writes("AAA.md", "".join(f"line {each}\n" for each in range(60)))
        agent.ends()
    expect(tab.locator(".stepper-place")).to_have_text("Change 9 of 16")
    assert active.get_attribute("data-hunk") == hunk
    assert abs(active.bounding_box()["y"] - top) < 2


def test_a_server_that_was_killed_is_missed_and_comes_back_by_itself(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(served, f"/p/{served.project}/review")
    expect(tab.locator(".stepper-place")).to_have_text("Change 1 of 15")
    served.stop(signal.SIGKILL)
    expect(tab.get_by_text("The server cannot be reached.")).to_be_visible()
    # What is decided meanwhile cannot be done, and comes back to be decided.
    tab.keyboard.press("y")
    expect(tab.get_by_text("The server does not answer.")).to_be_visible()
    expect(tab.locator(".stepper-place")).to_contain_text("of 15")
    # What happens meanwhile is there as soon as the server is.
    with served.workspace() as workspace:
        agent = Agent(workspace, "codex", "another-model", "Meanwhile")
        agent.asked("Add a file.")
        agent.writes("ZZZ.md", "late\n")
        agent.ends()
    served.start()
    expect(tab.get_by_text("The server cannot be reached.")).to_be_hidden()
    expect(tab.locator(".stepper-place")).to_contain_text("of 16")
    tab.keyboard.press("y")
    expect(tab.locator(".stepper-place")).to_contain_text("of 15")


def test_other_views_can_be_gone_to_while_the_server_is_away(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    tab = loaded(open_tab, served)
    served.stop(signal.SIGKILL)
    expect(tab.get_by_text("The server cannot be reached.")).to_be_visible()
    for key, title in (("t", "Statistics"), ("c", "Checkpoints"), ("r", "Review")):
        tab.keyboard.press("g")
        tab.keyboard.press(key)
        expect(tab.get_by_text("The server does not answer.").first).to_be_visible()
        expect(tab.get_by_role("heading", level=1)).to_have_text(title)
    served.start()
    expect(tab.locator(".stepper-place")).to_have_text("Change 1 of 15")


def loaded(open_tab: Callable[..., Any], served: Served) -> Any:
    """A tab on the sessions that has had the time to load the parts of all other views."""
    tab = open_tab(served)
    expect(tab.locator(".session-row").first).to_be_visible()
    for _ in range(100):
        if tab.evaluate(LOADED) >= 6:
            break
        tab.wait_for_timeout(100)
    return tab


def test_a_comparison_with_the_disk_stays_unfolded_while_files_change(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    lines = [f"value_{number} = {number}\n" for number in range(100)]
    (fresh.root / "long.py").write_text("".join(lines))
    with fresh.workspace() as workspace:
        workspace.checkpoint("Long")
    lines[50] = "changed = True\n"
    (fresh.root / "long.py").write_text("".join(lines))
    tab = open_tab(fresh, f"/p/{fresh.project}/checkpoints?c=now")
    tab.get_by_role("button", name="47 unchanged lines").click()
    expect(tab.get_by_text("value_20 =")).to_be_visible()
    (fresh.root / "zebra.py").write_text("new\n")
    expect(tab.locator(".bar-note").last).to_contain_text("2 files")
    expect(tab.get_by_text("value_20 =")).to_be_visible()


def test_sessions_appear_and_grow_while_one_looks(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(fresh)
    expect(tab.get_by_text("No sessions yet")).to_be_visible()
    with fresh.workspace() as workspace:
        agent = Agent(workspace, "codex", "a-model", "A new one")
        row = tab.locator(".session-row").filter(has_text="A new one")
        expect(row).to_be_visible()
        agent.asked("Do something.")
        row.click()
        expect(tab.locator(".asked")).to_contain_text("Do something.")
        agent.says("I am at it.")
        expect(tab.get_by_text("I am at it.")).to_be_visible()
        agent.writes("new.txt", "new\n")
        agent.ends()
        expect(tab.locator(".step")).to_contain_text("1 added")
        expect(tab.get_by_role("link", name="Review +1")).to_be_visible()


def test_taking_back_does_not_take_back_what_an_agent_did_since(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(served, f"/p/{served.project}/review")
    place = tab.locator(".stepper-place")
    expect(place).to_have_text("Change 1 of 15")
    tab.keyboard.press("n")
    expect(tab.get_by_text("Undid a change in README.md.")).to_be_visible()
    with served.workspace() as workspace:
        agent = Agent(workspace, "codex", "another-model", "Meanwhile")
        agent.asked("Add a file.")
        agent.writes("ZZZ.md", "late\n")
        agent.ends()
    expect(place).to_contain_text("of 15")
    tab.keyboard.press("u")
    expect(tab.get_by_text("(turn) was done since operation")).to_be_visible()
    assert (served.root / "ZZZ.md").exists()
