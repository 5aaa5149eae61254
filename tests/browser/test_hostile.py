"""What agents and files say is text, whatever it looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browsing import Served
from playwright.sync_api import expect

from mulligan.cli.demo.script import Agent

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
