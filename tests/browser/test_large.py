"""Much to review stays smooth: only what is seen is drawn, and nobody loses his place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browsing import SECONDS, Served
from playwright.sync_api import expect

FILES = 2000
DRAWN = 2500  # elements in the whole page; all lines would be many times that


def test_two_thousand_files_are_reviewed_with_few_elements(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    with fresh.workspace() as workspace:
        session = workspace.sessions.create(agent="codex", title="Everywhere", process=0).id
        workspace.sessions.begin_turn(session, "Touch everything.")
        for number in range(FILES):
            path = fresh.root / f"made/{number // 100:02}/file_{number:04}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"value_{each} = {number}\n" for each in range(10)))
        workspace.sessions.end_turn(session)
    tab = open_tab(fresh, f"/p/{fresh.project}/review")
    place = tab.locator(".stepper-place")
    expect(place).to_have_text(f"Change 1 of {FILES}", timeout=SECONDS * 1000)
    assert tab.evaluate("document.querySelectorAll('*').length") < DRAWN
    tab.keyboard.press("k")
    expect(place).to_have_text(f"Change {FILES} of {FILES}")
    expect(tab.locator(".hunk-head.is-active")).to_be_in_viewport()
    expect(tab.locator(".files-row.is-active")).to_contain_text("file_1999.py")
    assert tab.evaluate("document.querySelectorAll('*').length") < DRAWN
    tab.keyboard.press("y")
    expect(place).to_have_text(f"Change {FILES - 1} of {FILES - 1}")


def test_a_file_of_a_hundred_thousand_lines_has_lines_around_its_changes(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    lines = [f"value_{number} = compute(name='line {number}')\n" for number in range(100_000)]
    path = fresh.root / "long.py"
    path.write_text("".join(lines))
    with fresh.workspace() as workspace:
        workspace.checkpoint("With a long file")
        session = workspace.sessions.create(agent="codex", title="Long", process=0).id
        workspace.sessions.begin_turn(session, "Change its end.")
        lines[99_000] = "changed = True\n"
        path.write_text("".join(lines))
        workspace.sessions.end_turn(session)
    tab = open_tab(fresh, f"/p/{fresh.project}/review")
    expect(tab.get_by_text("changed = True")).to_be_visible()
    expect(tab.get_by_text("value_98999 =")).to_be_visible()
    tab.get_by_role("button", name="more lines above the change below").click()
    expect(tab.get_by_text("value_98980 =")).to_be_visible()
    assert tab.evaluate("document.querySelectorAll('*').length") < DRAWN


def test_a_large_file_with_long_lines_is_reviewed(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    lines = [f"const value{number} = {number};" for number in range(20_000)]
    path = fresh.root / "web/large.js"
    path.write_text("\n".join(lines) + "\n")
    with fresh.workspace() as workspace:
        workspace.checkpoint("With a large file")
        session = workspace.sessions.create(agent="codex", title="Large", process=0).id
        workspace.sessions.begin_turn(session, "Change a large file.")
        for number in range(0, 20_000, 500):
            lines[number] = f"let value{number} = -{number};"
        lines[10_000] = "const data = '" + "x" * 300_000 + "';"
        path.write_text("\n".join(lines) + "\n")
        workspace.sessions.end_turn(session)
    tab = open_tab(fresh, f"/p/{fresh.project}/review")
    place = tab.locator(".stepper-place")
    expect(place).to_have_text("Change 1 of 40")
    for _ in range(20):
        tab.keyboard.press("j")
    expect(place).to_have_text("Change 21 of 40")
    expect(tab.get_by_text("more characters")).to_be_visible()
    gap = tab.locator(".diff-gap button").first
    expect(gap).to_contain_text("unchanged lines")
    gap.click()
    assert tab.evaluate("document.querySelectorAll('*').length") < DRAWN
