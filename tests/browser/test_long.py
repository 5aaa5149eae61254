"""A very long conversation: only what is seen is drawn, and one always lands where one meant to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browsing import Served
from playwright.sync_api import expect

from mulligan.core.entries import ASSISTANT_OUTPUT, TOOL_CALL, TOOL_RESULT, USER_INPUT, NewEntry

QUESTIONS = 2500
DRAWN = 1500  # elements in the whole page; all entries would be many times that
TOP = "document.querySelector('.timeline').scrollTop"


@pytest.fixture
def long(fresh: Served) -> str:
    """A session of 10,000 entries; gives its address."""
    with fresh.workspace() as workspace:
        session = workspace.sessions.create(agent="codex", title="Long", process=0).id
        for begin in range(0, QUESTIONS, 100):
            asked = range(begin, min(begin + 100, QUESTIONS))
            workspace.sessions.append(
                session, *(entry for each in asked for entry in _question(each))
            )
    return f"/p/{fresh.project}/session?id={session}"


def _question(number: int) -> Iterator[NewEntry]:
    call = {"name": "Bash", "call": f"c{number}", "input": {"command": "make"}}
    yield NewEntry(USER_INPUT, f"Question {number}.")
    yield NewEntry(TOOL_CALL, "", call | {"status": "success"})
    yield NewEntry(TOOL_RESULT, f"outcome{number}", {"call": f"c{number}"})
    yield NewEntry(ASSISTANT_OUTPUT, f"Answer {number}.\n\n" + "And so on. " * (number % 90))


def elements(tab: Any) -> int:
    return int(tab.evaluate("document.querySelectorAll('*').length"))


def scroll(tab: Any, to: str) -> None:
    tab.locator(".timeline").evaluate(f"box => box.scrollTo(0, {to})")
    tab.wait_for_timeout(60)


def test_ten_thousand_entries_are_read_from_the_end_to_the_beginning_and_back(
    fresh: Served, long: str, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(fresh, long)
    expect(tab.get_by_text(f"Answer {QUESTIONS - 1}.")).to_be_in_viewport()
    assert elements(tab) < DRAWN
    first = tab.get_by_text("Question 0.", exact=True).and_(tab.locator(".prose *"))
    for _ in range(400):
        scroll(tab, "0")
        if first.count():
            break
    expect(first).to_be_in_viewport()
    assert elements(tab) < DRAWN
    scroll(tab, "box.scrollHeight")
    expect(tab.get_by_text(f"Answer {QUESTIONS - 1}.")).to_be_in_viewport()
    assert elements(tab) < DRAWN


def test_what_is_read_stays_where_it_is_while_more_is_loaded_before_it(
    fresh: Served, long: str, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(fresh, long)
    expect(tab.get_by_text(f"Answer {QUESTIONS - 1}.")).to_be_in_viewport()
    scroll(tab, "900")
    tab.wait_for_timeout(800)
    place = """() => {
        const box = document.querySelector('.timeline').getBoundingClientRect();
        const row = [...document.querySelectorAll('.entry')]
            .find((each) => each.getBoundingClientRect().bottom > box.top + 100);
        return [row.dataset.key, row.getBoundingClientRect().top];
    }"""
    key, top = tab.evaluate(place)
    # What comes at the end does not move what is read either.
    with fresh.workspace() as workspace:
        workspace.sessions.append(long.partition("id=")[2], NewEntry(ASSISTANT_OUTPUT, "One more."))
    tab.wait_for_timeout(800)
    assert tab.evaluate(place) == [key, pytest.approx(top, abs=1)]


@pytest.mark.parametrize("number", [3, 1234, QUESTIONS - 2])
def test_a_hit_lands_on_its_entry(
    fresh: Served, long: str, open_tab: Callable[..., Any], number: int
) -> None:
    tab = open_tab(fresh, f'/search?q="Question {number}."')
    hit = tab.locator(".hit").filter(has_text=f"Question {number}.").first
    hit.click()
    target = tab.locator(".entry.is-target")
    expect(target).to_contain_text(f"Question {number}.")
    expect(target).to_be_in_viewport()
    tab.wait_for_timeout(300)
    expect(target).to_be_in_viewport()
    assert elements(tab) < DRAWN


def test_a_hit_in_what_came_of_a_call_opens_the_call(
    fresh: Served, long: str, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(fresh, "/search?q=outcome777")
    tab.locator(".hit").first.click()
    target = tab.locator(".entry.is-target")
    expect(target).to_contain_text("outcome777")
    expect(target).to_be_in_viewport()


def test_from_a_hit_one_reads_on_to_the_end(
    fresh: Served, long: str, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(fresh, f'/search?q="Question {QUESTIONS - 150}."')
    tab.locator(".hit").first.click()
    expect(tab.locator(".entry.is-target")).to_be_in_viewport()
    last = tab.get_by_text(f"Answer {QUESTIONS - 1}.")
    for _ in range(60):
        scroll(tab, "box.scrollHeight")
        if last.count():
            break
    expect(last).to_be_in_viewport()
    expect(tab.get_by_text("There are later messages.")).to_have_count(0)


def test_the_tree_of_a_long_session_holds_all_its_messages_with_few_elements(
    fresh: Served, long: str, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(fresh, long)
    expect(tab.locator(".tree-row").last).to_contain_text(f"Question {QUESTIONS - 1}.")
    label = tab.locator(".tree .virtual").get_attribute("aria-label")
    assert label == f"A tree of {QUESTIONS} messages on 1 branches"
    assert tab.locator(".tree-row").count() < 60
