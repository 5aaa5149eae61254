"""First steps and long lists: what a newcomer sees, and what goes on as one scrolls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browsing import Served
from playwright.sync_api import expect

from mulligan.cli.demo.script import Agent, make_project
from mulligan.core.entries import ASSISTANT_OUTPUT, USER_INPUT, NewEntry
from mulligan.workspace.workspace import open_workspace


def test_a_newcomer_is_told_what_to_do_and_can_do_it_there(
    tmp_path: Path, open_tab: Callable[..., Any]
) -> None:
    make_project(tmp_path / "kettle")
    served = Served(tmp_path)
    try:
        tab = open_tab(served)
        expect(tab.get_by_text("Which project should Mulligan protect?")).to_be_visible()
        for view in ("review", "checkpoints", "settings"):
            tab.goto(f"{served.url}/{view}")
            expect(tab.get_by_text("mulligan up").first).to_be_visible()
        tab.goto(served.url)
        tab.get_by_label("Folder of the project").fill(str(tmp_path / "kettle"))
        tab.get_by_role("button", name="Protect this folder").click()
        expect(tab.get_by_text("No sessions yet")).to_be_visible()
        assert served.get(f"/projects/{served.project}/checkpoints")["checkpoints"]
    finally:
        served.stop()


def test_a_folder_that_is_none_is_refused_with_a_reason(
    tmp_path: Path, open_tab: Callable[..., Any]
) -> None:
    served = Served(tmp_path)
    try:
        tab = open_tab(served)
        tab.get_by_label("Folder of the project").fill("/")
        with tab.expect_response("**/api/v1/projects") as answer:
            tab.get_by_role("button", name="Protect this folder").click()
        words = answer.value.json()["error"]["message"]
        expect(tab.locator(".toast-problem")).to_contain_text(words)
        tab.unroute_all()
    finally:
        served.stop()


def test_sessions_of_several_projects_go_on_as_one_scrolls(
    fresh: Served, tmp_path: Path, open_tab: Callable[..., Any]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for root, count in ((fresh.root, 50), (other, 45)):
        with open_workspace(root, home=fresh.home) as workspace:
            for number in range(count):
                workspace.sessions.create(
                    agent="codex", title=f"{root.name} {number}", checkpoint=False, process=0
                )
    tab = open_tab(fresh)
    rows = tab.locator(".session-row")
    expect(rows.first).to_contain_text("other 44")
    assert rows.count() < 95
    for _ in range(12):
        tab.locator(".page-scroll").evaluate("box => box.scrollTo(0, box.scrollHeight)")
        tab.wait_for_timeout(150)
    expect(rows).to_have_count(95)
    expect(rows.last).to_contain_text("kettle 0")
    tab.locator(".card-main").filter(has_text="other").click()
    expect(rows).to_have_count(30)


def test_a_long_conversation_begins_at_its_end_and_goes_back(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    with fresh.workspace() as workspace:
        session = workspace.sessions.create(agent="codex", title="Long", process=0).id
        for number in range(200):
            workspace.sessions.append(
                session,
                NewEntry(USER_INPUT, f"Question {number}."),
                NewEntry(ASSISTANT_OUTPUT, f"Answer {number}, which is a quince."),
            )
    tab = open_tab(fresh, f"/p/{fresh.project}/session?id={session}")
    expect(tab.get_by_text("Answer 199, which")).to_be_in_viewport()
    # One page of it is there. Where that begins there is soon more, and what is read stays.
    tab.locator(".timeline").evaluate("box => box.scrollTo(0, 40)")
    asked = tab.locator(".entry-user_input")
    expect(asked.filter(has_text="Question 140.")).to_be_in_viewport()
    expect(asked.filter(has_text="Question 139.")).to_be_attached()
    expect(asked.filter(has_text="Question 140.")).to_be_in_viewport()

    # From a hit in the middle there is a way to the end.
    tab.goto(f"{fresh.url}/search?q=" + json.dumps("Question 20."))
    tab.locator(".hit").first.click()
    expect(tab.locator(".entry.is-target")).to_be_in_viewport()
    tab.get_by_role("link", name="Go to the end").click()
    expect(tab.get_by_text("Answer 199, which")).to_be_in_viewport()


def test_an_agent_that_works_is_followed_to_the_end(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    with fresh.workspace() as workspace:
        agent = Agent(workspace, "codex", "a-model", "Talkative")
        agent.asked("Talk.")
        tab = open_tab(fresh, f"/p/{fresh.project}/session?id={agent.session}")
        for number in range(40):
            agent.says(f"Sentence {number}.\n\nAnd another.")
        expect(tab.get_by_text("Sentence 39.")).to_be_in_viewport()
        agent.ends()


def test_badge_and_card_have_their_counts_on_a_first_load(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    # A server that was just started, and that has not opened the project for anybody yet.
    tab = open_tab(served)
    expect(tab.locator(".rail-count")).to_have_text("9")
    expect(tab.locator(".card-pending")).to_contain_text("+")
