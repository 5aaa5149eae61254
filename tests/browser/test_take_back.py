"""Take back: each button takes back what it names, and what was refused stays where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browsing import Served
from playwright.sync_api import expect

from mulligan.cli.demo.script import Agent

REFUSED = "(keep) was done since operation"


def test_the_button_of_an_earlier_decision_takes_back_no_later_one(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(served, f"/p/{served.project}/review")
    place = tab.locator(".stepper-place")
    expect(place).to_have_text("Change 1 of 15")
    tab.keyboard.press("y")
    expect(place).to_have_text("Change 1 of 14")
    first = tab.locator(".toast").first
    expect(first).to_contain_text("Kept a change")
    tab.keyboard.press("a")
    expect(place).to_contain_text("of 13")
    expect(tab.locator(".toast")).to_have_count(2)
    first.get_by_role("button", name="Take back").click()
    expect(tab.get_by_text(REFUSED)).to_be_visible()
    assert served.pending() == 13
    # In the order in which they were made, the last first, both are taken back.
    tab.keyboard.press("u")
    expect(place).to_contain_text("of 14")
    tab.keyboard.press("u")
    expect(place).to_contain_text("of 15")


def test_redo_does_again_what_was_taken_back_and_it_can_be_taken_back_again(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(served, f"/p/{served.project}/review")
    place = tab.locator(".stepper-place")
    expect(place).to_have_text("Change 1 of 15")
    tab.keyboard.press("y")
    expect(place).to_contain_text("of 14")
    tab.keyboard.press("u")
    expect(place).to_contain_text("of 15")
    tab.get_by_role("button", name="Redo").click()
    expect(place).to_contain_text("of 14")
    tab.keyboard.press("u")
    expect(place).to_contain_text("of 15")
    with served.workspace() as workspace:
        assert workspace.maintenance.verify().clean


def test_undoing_an_approval_does_not_take_back_another_session(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    session = served.session("Due dates for tasks")
    tab = open_tab(served, f"/p/{served.project}/session?id={session}")
    tab.get_by_role("button", name="Approve", exact=True).click()
    expect(tab.get_by_text("Approved. Later changes")).to_be_visible()
    with served.workspace() as workspace:
        agent = Agent(workspace, "codex", "another-model", "Meanwhile")
        agent.asked("Add a file.")
        agent.writes("ZZZ.md", "late\n")
        agent.ends()
        workspace.review.approve(agent.session)
    tab.get_by_role("button", name="Undo", exact=True).click()
    expect(tab.get_by_text("(approve) was done since operation")).to_be_visible()
    with served.workspace() as workspace:
        assert workspace.review.round_status(agent.session).has_unapproved is False
        assert workspace.review.round_status(session).has_unapproved is False


def test_a_change_that_could_not_be_undone_keeps_the_reader_at_it(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    with fresh.workspace() as workspace:
        agent = Agent(workspace, "codex", "a-model", "Three files")
        agent.asked("Write three files.")
        for name in ("AAA.md", "BBB.md", "CCC.md"):
            agent.writes(name, "one\ntwo\nthree\n")
        agent.ends()
        # The user's own line, within the agent's hunk: it is mixed now, and not to be lost.
        (fresh.root / "AAA.md").write_text("one\nmine\nthree\n")
        workspace.checkpoint()
    tab = open_tab(fresh, f"/p/{fresh.project}/review")
    place, active = tab.locator(".stepper-place"), tab.locator(".hunk-head.is-active")
    expect(place).to_have_text("Change 1 of 3")
    hunk = active.get_attribute("data-hunk")
    tab.keyboard.press("n")
    expect(tab.get_by_text("1 change left alone")).to_be_visible()
    expect(place).to_have_text("Change 1 of 3")
    assert active.get_attribute("data-hunk") == hunk
    assert (fresh.root / "AAA.md").read_text() == "one\nmine\nthree\n"
    tab.get_by_role("button", name="Undo anyway").click()
    expect(tab.get_by_text("Undid a change in AAA.md.")).to_be_visible()
    expect(place).to_have_text("Change 1 of 2")
    assert not (fresh.root / "AAA.md").exists()


def test_the_first_prompt_is_rewound_to_with_its_files_and_its_text(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    with fresh.workspace() as workspace:
        agent = Agent(workspace, "codex", "a-model", "One message")
        agent.asked("Write a file.")
        agent.writes("AAA.md", "one\n")
        agent.ends()
    tab = open_tab(fresh, f"/p/{fresh.project}/session?id={agent.session}")
    asked = tab.locator(".entry-user_input").filter(has_text="Write a file.")
    asked.get_by_role("button", name="Return here").click()
    dialog = tab.get_by_role("dialog")
    expect(dialog.locator(".plan-part").filter(has_text="Delete")).to_contain_text("AAA.md")
    dialog.get_by_role("button", name="Return with files").click()
    expect(
        tab.get_by_text("The conversation and the files are back at this point.")
    ).to_be_visible()
    assert not (fresh.root / "AAA.md").exists()
    back = tab.locator(".draft")
    expect(back).to_contain_text("The session is back before this message.")
    expect(back).to_contain_text("Write a file.")
    other = open_tab(fresh, f"/p/{fresh.project}/session?id={agent.session}")
    expect(other.get_by_text("Before the first message")).to_be_visible()
    tab.get_by_role("button", name="Undo", exact=True).click()
    expect(tab.get_by_text("The return is undone.")).to_be_visible()
    assert (fresh.root / "AAA.md").exists()
