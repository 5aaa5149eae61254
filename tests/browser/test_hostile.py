"""What agents and files say is text, whatever it looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browsing import Served
from playwright.sync_api import expect

from mulligan.cli.demo.script import Agent
from mulligan.core.entries import TOOL_CALL, NewEntry

HOSTILE = (
    "<img src=x onerror=\"document.title='taken'\"> <script>document.title='taken'</script>\n\n"
    "[a link](javascript:document.title='taken') [another](https://example.org) "
    "**<b>bold</b>**\n\n```html\n</pre><script>document.title='taken'</script>\n```\n"
)


def test_hostile_text_is_shown_and_never_run(fresh: Served, open_tab: Callable[..., Any]) -> None:
    with fresh.workspace() as workspace:
        agent = Agent(workspace, "codex", "<i>model</i>", "<script>document.title='taken'</script>")
        agent.asked(HOSTILE)
        agent.writes("<svg onload=alert(1)>.html", HOSTILE)
        agent.says(HOSTILE)
        agent.ends()
    session = f"/p/{fresh.project}/session?id={agent.session}"
    views = {
        session: "</pre><script>",
        f"/p/{fresh.project}/review": "<svg onload=alert(1)>.html",
        f"/p/{fresh.project}/checkpoints": "<svg onload=alert(1)>.html",
        "/search?q=onerror": "<img src=x",
        "/": "<script>document.title",
    }
    for path, text in views.items():
        tab = open_tab(fresh, path)
        expect(tab.get_by_text(text).first).to_be_visible()
        assert tab.locator("main img, main script, main b, main i").count() == 0
        assert "taken" not in tab.title()
    tab = open_tab(fresh, session)
    expect(tab.locator(".prose a").first).to_have_attribute("href", "https://example.org")
    assert tab.locator("a[href^='javascript']").count() == 0


def test_without_the_token_there_is_nothing_to_see(fresh: Served, browser: Any) -> None:
    with browser.new_context() as context:
        tab = context.new_page()
        assert tab.goto(fresh.url).status == 401
        assert tab.goto(f"{fresh.url}/?code=wrong").status == 401


UNSEEN = {
    "U+202E": "\u202e",
    "U+2066": "\u2066",
    "U+200B": "\u200b",
    "U+3164": "\u3164",
    "U+FFA0": "\uffa0",
    "U+FE0E": "\ufe0e",
    "U+E0101": "\U000e0101",
    "U+E0061": "\U000e0061",
    "U+2800": "\u2800",
    "U+034F": "\u034f",
}


def test_what_cannot_be_seen_is_marked_in_every_view(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    code = "".join(f"x{each}y\n" for each in UNSEEN.values())
    said = " ".join(f"x{each}y" for each in UNSEEN.values())
    with fresh.workspace() as workspace:
        agent = Agent(workspace, "codex", "m\u200bodel", "A ti\u202etle")
        agent.asked(f"needle {said}")
        agent.writes("na\u202eme.py", code)
        agent.says(f"{said}\n\n`{said}`\n\n```py\n{code}```\n")
        agent.ends()
    views = {
        f"/p/{fresh.project}/review": ".diff-text",
        f"/p/{fresh.project}/session?id={agent.session}": ".prose pre",
        "/search?q=needle": ".hit-text",
    }
    for path, place in views.items():
        tab = open_tab(fresh, path)
        for name in UNSEEN:
            marks = tab.locator(f"{place} .invisible[data-label='{name}']")
            expect(marks.first).to_be_visible()
        assert tab.evaluate(UNMARKED) == []
    for path in ("/", f"/p/{fresh.project}/checkpoints"):
        tab = open_tab(fresh, path)
        expect(tab.locator("[data-label='U+202E']").first).to_be_visible()
        assert tab.evaluate(UNMARKED) == []


UNMARKED = """() => {
    const odd = /[\\u061c\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2069\\u3164\\ufe00-\\ufe0f]/;
    const found = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode())
        if (odd.test(node.data) && !node.parentElement.closest(".invisible"))
            found.push(node.data);
    for (const each of document.querySelectorAll("[title], [aria-label]"))
        for (const name of ["title", "aria-label"])
            if (odd.test(each.getAttribute(name) ?? "")) found.push(each.outerHTML);
    if (odd.test(document.title)) found.push(document.title);
    return found;
}"""


def test_a_mark_keeps_the_lines_as_high_as_they_are_and_the_text_as_it_was(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    line = "if \u202e\u2066// admin\u2069 \u2066" * 40
    with fresh.workspace() as workspace:
        agent = Agent(workspace, "codex", "model", "Long")
        agent.asked("Long")
        agent.writes("long.py", f"{line}\nlast\n")
        agent.ends()
    tab = open_tab(fresh, f"/p/{fresh.project}/review")
    row = tab.locator(".diff-line", has=tab.locator(".invisible")).first
    expect(row).to_be_visible()
    high = row.evaluate("row => [row.querySelector('.diff-text').scrollHeight, row.clientHeight]")
    assert high[0] <= high[1]
    assert line in row.text_content()


def test_prose_keeps_its_emoji(fresh: Served, open_tab: Callable[..., Any]) -> None:
    text = "Done \u2764\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f467 1\ufe0f\u20e3\u00a0!"
    with fresh.workspace() as workspace:
        agent = Agent(workspace, "codex", "model", "Emoji")
        agent.asked("Emoji")
        agent.says(text)
        agent.ends()
    tab = open_tab(fresh, f"/p/{fresh.project}/session?id={agent.session}")
    expect(tab.locator(".prose", has_text="Done")).to_be_visible()
    assert tab.locator(".prose .invisible, .prose .invisible-blank").count() == 0


def backticks(size: int) -> str:
    """Runs of backticks of all lengths, none of which closes another."""
    runs: list[str] = []
    while sum(map(len, runs)) < size:
        runs.append("`" * (len(runs) + 1) + "a")
    return "".join(runs)


def test_no_message_can_freeze_or_blank_a_session(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    size = 400_000
    hard = [
        ">" * 20_000,
        "> " * 20_000,
        "- " * 20_000 + "x",
        "\n".join(" " * each + "- x" for each in range(600)),
        backticks(size),
        *(part * (size // len(part)) for part in ("_a ", "[a](b", '[a](b "', "![")),
        *(part * 20_000 for part in ("**a", "~~a", "```\n")),
        "# " + "# #" * (size // 3) + "x",
        "a|b\n" + " " * size + "x",
        "- " + " " * size + "\u2028",
        "**a " * 20_000 + " a**" * 20_000,
    ]
    sessions: list[str] = []
    with fresh.workspace() as workspace:
        for text in hard:
            agent = Agent(workspace, "codex", "model", "Hard")
            agent.asked("Hard")
            agent.says(text)
            agent.says("~~Still~~ here")
            agent.ends()
            sessions.append(agent.session)
    tab = open_tab(fresh)
    for session in sessions:
        tab.goto(f"{fresh.url}/p/{fresh.project}/session?id={session}")
        tab.locator(".prose s", has_text="Still").wait_for()
        assert tab.locator(".trouble").count() == 0


def test_an_entry_that_cannot_be_drawn_takes_no_other_along(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    with fresh.workspace() as workspace:
        agent = Agent(workspace, "codex", "model", "Broken")
        agent.asked("Before")
        # Nothing can make a text of this name.
        data = {"name": {"toString": 1, "valueOf": 1}, "input": {}, "status": "success"}
        workspace.sessions.append(agent.session, NewEntry(TOOL_CALL, "its own words", data))
        agent.says("After")
        agent.ends()
    tab = open_tab(fresh, f"/p/{fresh.project}/session?id={agent.session}")
    for text in ("Before", "After", "its own words", "This entry could not be shown"):
        expect(tab.locator(".timeline").get_by_text(text)).to_be_visible()
