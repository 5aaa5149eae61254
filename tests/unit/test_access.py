"""Tokens, one-time codes and cookies: what lets in, for how long, and how wrong ones are slowed."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest

from mulligan.errors import UsageError
from mulligan.server.http import access
from mulligan.server.http.access import Access, Slowdown


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def door(clock: Clock) -> Access:
    return Access("token" * 10, port=8737, now=clock)


def code_in(address: str) -> str:
    return parse_qs(urlsplit(address).query)["code"][0]


def test_a_code_expires(door: Access, clock: Clock) -> None:
    late, early = code_in(door.page_address()), code_in(door.page_address())
    clock.now += access.CODE_SECONDS - 1
    assert door.redeem(early)
    clock.now += 1
    assert not door.redeem(late)


def test_only_so_many_codes_are_kept(door: Access) -> None:
    codes = [code_in(door.page_address()) for _ in range(access.MAX_CODES + 5)]
    assert [door.redeem(code) for code in codes] == [False] * 5 + [True] * access.MAX_CODES


def test_a_cookie_expires_and_belongs_to_one_host_and_one_token(door: Access, clock: Clock) -> None:
    host = f"{door.page_name}:8737"
    cookie = door.new_cookie(host)
    assert door.is_cookie(cookie, host) and door.is_cookie(cookie, host.upper())
    assert not door.is_cookie(cookie, "127.0.0.1:8737")
    assert not Access("other" * 10, port=8737, now=clock).is_cookie(cookie, host)
    assert not door.is_token(cookie)
    until, nonce, signature = cookie.split(".")
    for forged in (
        f"{int(until, 16) + 1:x}.{nonce}.{signature}",
        f"{until}.x.{signature}",
        "",
        "..",
    ):
        assert not door.is_cookie(forged, host)
    clock.now += access.COOKIE_SECONDS
    assert not door.is_cookie(cookie, host)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("192.0.2.7", "http://192.0.2.7:1/"),
        ("box", "http://box:1/"),
        ("fe80::1", "http://[fe80::1]:1/"),
    ],
)
def test_beyond_loopback_the_page_is_where_the_server_was_told_to_listen(
    host: str, name: str
) -> None:
    assert Access("t" * 40, port=1, host=host).page_address().startswith(name)


@pytest.mark.parametrize("host", [None, "127.0.0.1", "::1", "localhost"])
def test_on_loopback_the_page_has_a_name_of_its_own(host: str | None) -> None:
    first, second = (Access(token * 40, port=1, host=host) for token in "ab")
    assert first.page_name.endswith(".localhost") and first.page_name != second.page_name


def test_what_is_no_project_is_in_no_address(door: Access) -> None:
    with pytest.raises(UsageError):
        door.page_address("../x")


def test_wrong_ones_wait_longer_and_longer_up_to_a_bound(clock: Clock) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    slowdown = Slowdown(sleep, clock)
    for _ in range(50):
        asyncio.run(slowdown.wait())
    assert waited == sorted(waited)
    assert waited[0] == access.FIRST_DELAY_SECONDS and waited[-1] == access.MAX_DELAY_SECONDS
    clock.now += access.FORGIVEN_AFTER_SECONDS + 1
    asyncio.run(slowdown.wait())
    assert waited[-1] == access.FIRST_DELAY_SECONDS


def test_only_so_many_wait_at_once(clock: Clock) -> None:
    async def run() -> tuple[int, int]:
        going = asyncio.Event()

        async def sleep(seconds: float) -> None:
            await going.wait()

        slowdown = Slowdown(sleep, clock)
        tasks = [asyncio.create_task(slowdown.wait()) for _ in range(access.MAX_WAITING + 7)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        done = sum(task.done() for task in tasks)
        going.set()
        await asyncio.gather(*tasks)
        return done, len(tasks)

    done, asked = asyncio.run(run())
    assert done == asked - access.MAX_WAITING
