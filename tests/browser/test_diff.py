"""A difference shows all that is different, unfolds, and is copied as the code that it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from browsing import Served
from playwright.sync_api import expect

from mulligan.cli.demo.script import Agent

BEFORE = "".join(f"value_{number} = {number}\n" for number in range(1, 201))
SELECTED = """(lines) => {
    const selection = getSelection();
    selection.removeAllRanges();
    const found = [...document.querySelectorAll(lines)];
    const range = document.createRange();
    range.setStart(found[0], 0);
    range.setEndAfter(found.at(-1));
    selection.addRange(range);
    return selection.toString();
}"""


def changed(served: Served, before: dict[str, bytes], after: dict[str, bytes]) -> None:
    """An agent changes files from one content to another, in one turn."""
    for name, content in before.items():
        (served.root / name).write_bytes(content)
    with served.workspace() as workspace:
        workspace.checkpoint("Before")
        agent = Agent(workspace, "codex", "gpt", "Differences")
        agent.asked("Change them")
        for name, content in after.items():
            (served.root / name).write_bytes(content)
        agent.ends()


def views(served: Served) -> dict[str, str]:
    return {
        "review": f"/p/{served.project}/review",
        "checkpoints": f"/p/{served.project}/checkpoints",
    }


@pytest.mark.parametrize("view", ["review", "checkpoints"])
def test_changed_words_are_marked_within_their_lines(
    fresh: Served, open_tab: Callable[..., Any], view: str
) -> None:
    changed(
        fresh,
        {"a.py": b"total = first + second + third\nkeep = 1\nx = old_call(1)\n"},
        {"a.py": b"total = first - second - third\nkeep = 1\n# new\nx = new_call(1)\ny = 2\n"},
    )
    tab = open_tab(fresh, views(fresh)[view])
    expect(tab.locator(".diff-removed .changed")).to_have_text(["+", "+", "old_call"])
    expect(tab.locator(".diff-added .changed")).to_have_text(["-", "-", "new_call"])


@pytest.mark.parametrize("view", ["review", "checkpoints"])
def test_blanks_line_ends_and_a_missing_newline_can_be_seen(
    fresh: Served, open_tab: Callable[..., Any], view: str
) -> None:
    changed(
        fresh,
        {"a.py": b"if x:\n    y = 1\n", "b.txt": b"one\ntwo\n", "c.txt": b"end\n"},
        {"a.py": b"if x:\n\ty = 1  \n", "b.txt": b"one\r\ntwo\n", "c.txt": b"end"},
    )
    tab = open_tab(fresh, views(fresh)[view])
    expect(tab.locator(".diff-added .tab")).to_have_count(1)
    expect(tab.locator(".diff-added .spaces")).to_have_text(["  "])
    expect(tab.locator(".diff-removed .spaces")).to_have_text(["    "])
    expect(tab.locator(".diff-end")).to_have_text(["␍", "no newline at end"])


@pytest.mark.parametrize("view", ["review", "checkpoints"])
def test_the_lines_around_a_change_unfold_step_by_step_or_all_at_once(
    fresh: Served, open_tab: Callable[..., Any], view: str
) -> None:
    now = BEFORE.replace("value_10 =", "other =").replace("value_150 =", "more =")
    changed(fresh, {"a.py": BEFORE.encode()}, {"a.py": now.encode()})
    tab = open_tab(fresh, views(fresh)[view])
    gaps = tab.locator(".diff-gap")
    expect(gaps.nth(1)).to_contain_text("133 unchanged lines")
    gaps.nth(1).get_by_role("button", name="below the change above").click()
    expect(tab.get_by_text("value_33 = 33")).to_be_visible()
    expect(tab.get_by_text("value_34 = 34")).to_have_count(0)
    expect(gaps.nth(1)).to_contain_text("113 unchanged lines")
    gaps.nth(0).get_by_role("button").first.click()
    expect(tab.get_by_text("value_1 = 1", exact=True)).to_be_visible()
    gaps.nth(0).get_by_role("button", name="113 unchanged lines").click()
    expect(tab.get_by_text("value_34 = 34")).to_be_visible()


@pytest.mark.parametrize("view", ["review", "checkpoints"])
def test_code_is_copied_without_signs_and_numbers(
    fresh: Served, open_tab: Callable[..., Any], view: str
) -> None:
    changed(fresh, {"a.py": b"one\n"}, {"a.py": b"one\ndef f():\n    a = 1\n\n    return a\n"})
    tab = open_tab(fresh, views(fresh)[view])
    expect(tab.locator(".diff-added")).to_have_count(4)
    text = tab.evaluate(SELECTED, ".diff-added")
    assert text.strip("\n") == "def f():\n    a = 1\n\n    return a"


def test_side_by_side_a_selection_is_of_one_side(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    changed(fresh, {"a.py": b"one = 1\ntwo = 2\n"}, {"a.py": b"one = 10\ntwo = 20\n"})
    tab = open_tab(fresh, views(fresh)["review"])
    expect(tab.locator(".diff-added").first).to_be_visible()
    tab.keyboard.press("s")
    tab.locator(".diff-half.diff-added").first.click()
    text = tab.evaluate(SELECTED, ".diff-pair")
    assert text.strip("\n") == "one = 10\ntwo = 20"


def test_a_file_of_a_hundred_thousand_lines_opens_as_it_was(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 100_001))
    (fresh.root / "long.py").write_text(text)
    with fresh.workspace() as workspace:
        workspace.checkpoint("Long")
    (fresh.root / "long.py").write_text("short\n")
    tab = open_tab(fresh, f"/p/{fresh.project}/checkpoints?part=files")
    tab.get_by_label("Filter the files").fill("long.py")
    tab.locator(".tree-file button").click()
    dialog = tab.get_by_role("dialog")
    expect(dialog.get_by_text("line 1", exact=True)).to_be_visible()
    dialog.locator(".virtual").evaluate("element => element.scrollTo(0, element.scrollHeight)")
    expect(dialog.get_by_text("line 100000", exact=True)).to_be_visible()
    assert tab.locator(".file-text .diff-line").count() < 200
