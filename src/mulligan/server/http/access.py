"""What lets a client in: a token, a one-time code, a cookie.

    token    for programs: `Authorization: Bearer …`. New with each start, unless kept in a file
    code     for a person: works once, within CODE_SECONDS, at `/?code=…`
    cookie   for the page: given for a code, signed with a key that is derived from the token

A cookie is bound to the Host it was given for, so a program that receives it under another name
cannot use it. It is never accepted as a token. Nothing about cookies is stored: a new token ends
all of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from mulligan.errors import UsageError

CODE_SECONDS = 300
MAX_CODES = 64
COOKIE_SECONDS = 30 * 24 * 3600
NAME_BYTES = 12
LOOPBACK_HOSTS = (None, "127.0.0.1", "::1", "localhost")
PROJECT = re.compile(r"[0-9a-f]{16}")

FIRST_DELAY_SECONDS = 0.01
MAX_DELAY_SECONDS = 1.0
MAX_WAITING = 32
FORGIVEN_AFTER_SECONDS = 60.0


class Access:
    """The token of one server, the codes that were not used yet, and the key of its cookies.

    `host` is what the server was told to listen on, `port` where it listens. On loopback the page
    has a name of its own below `localhost`, for a browser sends the cookies of 127.0.0.1 to every
    port of it.
    """

    def __init__(
        self, token: str, *, port: int, host: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._token = token.encode()
        self._now = now
        self._codes: dict[bytes, float] = {}
        self._cookie_key = self._derived("page cookie")
        own = f"{self._derived('page name')[:NAME_BYTES].hex()}.localhost"
        self.page_name = own if host in LOOPBACK_HOSTS else str(host)
        self.cookie_name = f"mulligan_{port}"
        self._port = port

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def page_address(self, project: str | None = None) -> str:
        """Make an address with a new one-time code that lets a browser in."""
        if project is not None and not PROJECT.fullmatch(project):
            raise UsageError(f"{project[:50]!r} is not the id of a project.")
        name = f"[{self.page_name}]" if ":" in self.page_name else self.page_name
        about = {"project": project} if project else {}
        return f"http://{name}:{self._port}/?{urlencode(about | {'code': self._new_code()})}"

    def redeem(self, code: str) -> bool:
        """Use up a code; false if it is unknown, used or too old."""
        until = self._codes.pop(_digest(code), None)
        return until is not None and self._now() < until

    def new_cookie(self, host: str) -> str:
        """Make the value of a cookie that is valid at one Host."""
        until = f"{int(self._now()) + COOKIE_SECONDS:x}"
        nonce = secrets.token_hex(8)
        return f"{until}.{nonce}.{self._signed(host, until, nonce)}"

    def is_cookie(self, given: str, host: str) -> bool:
        until, _, rest = given.partition(".")
        nonce, _, signature = rest.partition(".")
        expected = self._signed(host, until, nonce).encode()
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), expected):
            return False
        return self._now() < int(until, 16)

    def _new_code(self) -> str:
        code = secrets.token_urlsafe(24)
        while len(self._codes) >= MAX_CODES:
            del self._codes[next(iter(self._codes))]
        self._codes[_digest(code)] = self._now() + CODE_SECONDS
        return code

    def _signed(self, host: str, until: str, nonce: str) -> str:
        content = "\n".join((host.lower(), until, nonce)).encode("utf-8", "replace")
        return hmac.new(self._cookie_key, content, hashlib.sha256).hexdigest()

    def _derived(self, purpose: str) -> bytes:
        return hmac.new(self._token, purpose.encode(), hashlib.sha256).digest()


class Slowdown:
    """Delays the answers to wrong tokens, codes and cookies; right ones never wait.

    The delay doubles with each wrong one of the last minute, up to MAX_DELAY_SECONDS. At most
    MAX_WAITING answers wait at once, so that guesses do not use up the server's requests.
    """

    def __init__(
        self,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sleep, self._clock = sleep, clock
        self._wrong: deque[float] = deque(maxlen=16)
        self._waiting = 0

    async def wait(self) -> None:
        """Note a wrong one, and wait."""
        now = self._clock()
        while self._wrong and now - self._wrong[0] > FORGIVEN_AFTER_SECONDS:
            self._wrong.popleft()
        delay = min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** len(self._wrong))
        self._wrong.append(now)
        if self._waiting >= MAX_WAITING:
            return
        self._waiting += 1
        try:
            await self._sleep(delay)
        finally:
            self._waiting -= 1


def _digest(code: str) -> bytes:
    """Codes are looked up by digest: the time of a look-up says nothing about them."""
    return hashlib.sha256(code.encode("utf-8", "replace")).digest()
