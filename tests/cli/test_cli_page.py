"""`mulligan up` opens the page: nothing in the list of processes lets anybody in."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import httpx2

from run import COMMAND

WAIT_SECONDS = 60


def a_browser(folder: Path) -> tuple[dict[str, str], Path]:
    """A browser that writes down what it was told to open; its environment, and where."""
    program, seen = folder / "browser", folder / "seen"
    program.write_text(f'#!/bin/sh\nprintf %s "$*" > {seen}.part && mv {seen}.part {seen}\n')
    program.chmod(0o755)
    return os.environ | {"BROWSER": f"{program} %s", "DISPLAY": ":77"}, seen


def opened(page: str, url: str) -> int:
    """The status that a browser gets at an address of the page."""
    address = httpx2.URL(page)
    named = {"host": f"{address.host}:{address.port}"}
    return httpx2.get(url, params=address.params, headers=named, timeout=WAIT_SECONDS).status_code


def test_the_browser_is_handed_a_file_that_only_its_user_can_read(
    project: Path, mulligan_home: Path, tmp_path: Path
) -> None:
    environment, seen = a_browser(tmp_path)
    process = subprocess.Popen(
        [*COMMAND, "up", "--json"], cwd=project, env=environment, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        end = time.monotonic() + WAIT_SECONDS
        while not seen.exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        handed = seen.read_text()
        token = (mulligan_home / "server.token").read_text()
        path = Path(handed.removeprefix("file://"))
        assert path.parent == mulligan_home / "open"
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        (page,) = set(re.findall(r'http://[^"]+', path.read_text().replace("&amp;", "&")))
        code = httpx2.URL(page).params["code"]
        for number in (entry for entry in os.listdir("/proc") if entry.isdigit()):
            try:
                words = Path("/proc", number, "cmdline").read_bytes()
            except OSError:
                continue
            assert token.encode() not in words and code.encode() not in words
        # The printed address is another one: it still works when the browser has opened.
        assert opened(page, told["url"]) == 200
        assert opened(told["page"], told["url"]) == 200
        assert opened(told["page"], told["url"]) == 401
        again = subprocess.run(
            [*COMMAND, "up", "--json", "--no-browser"], cwd=project, env=environment,
            capture_output=True, check=True, timeout=WAIT_SECONDS,
        )  # fmt: skip
        assert opened(json.loads(again.stdout)["page"], told["url"]) == 200
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(WAIT_SECONDS)
        process.stdout.close()
    assert not list((mulligan_home / "open").iterdir())
