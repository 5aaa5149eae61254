"""How a browser gets in: by a file, by an address, once; and what it sends to other servers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from browsing import Served
from playwright.sync_api import expect

from mulligan.server.lifecycle.page_files import write_page_file


@contextmanager
def another_server() -> Iterator[tuple[int, list[str]]]:
    """A server of somebody else on this machine: its port, and the cookies it was sent."""
    got: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>another</title>")

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, got
        server.shutdown()


def test_a_file_leads_to_the_page(fresh: Served, browser: Any, tmp_path: Path) -> None:
    path = write_page_file(str(tmp_path), fresh.page())
    with browser.new_context() as context:
        tab = context.new_page()
        tab.goto(Path(path).as_uri())
        tab.wait_for_url(f"{fresh.url}/")
        expect(tab.get_by_role("heading", level=1)).to_be_visible()
        (cookie,) = context.cookies()
        assert cookie["name"] == f"mulligan_{fresh.port}"
        assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
        assert fresh.token not in cookie["value"]


def test_an_address_that_was_used_says_how_to_get_another(fresh: Served, browser: Any) -> None:
    page = fresh.page()
    for expected in (200, 401):
        with browser.new_context() as context:
            tab = context.new_page()
            assert tab.goto(page).status == expected
    assert "mulligan up" in tab_text(browser, page)


def tab_text(browser: Any, address: str) -> str:
    with browser.new_context() as context:
        tab = context.new_page()
        tab.goto(address)
        return str(tab.locator("body").inner_text())


def test_the_cookie_goes_to_no_other_server_of_this_machine(fresh: Served, browser: Any) -> None:
    with another_server() as (port, got), browser.new_context() as context:
        tab = context.new_page()
        tab.goto(fresh.page())
        tab.wait_for_url(f"{fresh.url}/")
        for name in ("127.0.0.1", "localhost", "other.localhost"):
            tab.goto(f"http://{name}:{port}/")
        assert got and set(got) == {""}


def test_another_local_page_cannot_ask_with_the_cookie(fresh: Served, browser: Any) -> None:
    with another_server() as (port, _got), browser.new_context() as context:
        tab = context.new_page()
        tab.goto(fresh.page())
        tab.wait_for_url(f"{fresh.url}/")
        tab.goto(f"http://127.0.0.1:{port}/")
        asking = """async url => {
            try {
                const found = await fetch(url, {credentials: "include", mode: "no-cors"});
                return found.status;
            } catch (problem) { return String(problem); }
        }"""
        seen: list[int] = []
        tab.on("response", lambda answer: seen.append(answer.status))
        tab.evaluate(asking, f"{fresh.url}/api/v1/projects")
        assert set(seen) <= {401, 403}
