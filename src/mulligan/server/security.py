"""Who may ask: checked before anything else hears of a request, for HTTP and WebSocket alike.

Three doors. *Host* must be a name of ours: a page that has its own name point to this machine
is turned away. *Origin*, where a browser tells it, must be our own page. And then the *token*,
compared in constant time. On the unix socket the file's permissions, and the user at the other
end, are the check instead.
"""

from __future__ import annotations

import hmac
import ipaddress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from mulligan.errors import MulliganError
from mulligan.server.errors_json import Refused, error_response, query_of

COOKIE = "mulligan_token"
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
HELP = "In a browser, open the address that `mulligan up` or `mulligan serve` printed."
IN_ADDRESS = ("/api/v1/events", "/")
"""Where a token may stand in the address: an `EventSource` cannot send headers."""


class Guard:
    """Lets through who may ask, and puts the headers on every answer.

    `host` is what the server was told to listen on, if that is more than loopback.
    """

    def __init__(self, app: ASGIApp, *, token: str, host: str | None = None) -> None:
        self._app = app
        self._token = token.encode()
        self._host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
        except MulliganError as problem:
            await _refuse(problem, scope, receive, send)
            return
        await self._app(scope, receive, _with_headers(scope, send))

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        local = is_local(scope)
        if not local:
            self._check_host(scope, headers)
        check_origin(scope, headers)
        if not local and not self._is_known(scope, headers):
            raise Refused(
                "unauthorized",
                "Say the token, which is in the file server.token in Mulligan's home: "
                "`Authorization: Bearer …`.",
                {"www-authenticate": "Bearer"},
            )

    def _check_host(self, scope: Scope, headers: Headers) -> None:
        server = scope.get("server")
        port = server[1] if server else None
        name, given = split_host(headers.get("host", ""))
        if given != port or not _is_our_name(name, self._host):
            raise Refused("forbidden", "The server does not go by that name.")

    def _is_known(self, scope: Scope, headers: Headers) -> bool:
        return any(
            hmac.compare_digest(given.encode("utf-8", "replace"), self._token)
            for given in _tokens(scope, headers)
        )


def is_local(scope: Scope) -> bool:
    """Whether a request came over the unix socket, where whoever may connect may ask."""
    server = scope.get("server")
    return server is not None and server[1] is None


def check_origin(scope: Scope, headers: Headers) -> None:
    """Raises `Refused` for what another page has a browser ask, wherever that page is from."""
    origin = headers.get("origin")
    if origin is not None:
        parts = _parts(origin)
        if parts is None or parts != split_host(headers.get("host", "")):
            raise Refused("forbidden", "Only the server's own page may ask from a browser.")
    # Other ports of this machine are the "same site", and cookies do not know ports.
    site = headers.get("sec-fetch-site", "none")
    if site not in ("none", "same-origin") and scope["path"].startswith("/api/"):
        raise Refused("forbidden", "Only the server's own page may ask from a browser.")


def split_host(given: str) -> tuple[str, int | None]:
    """A `Host` as name and port; a name without port means the port of plain HTTP."""
    try:
        parts = urlsplit(f"//{given}")
        port = parts.port
    except ValueError:
        return "", None
    if parts.path or parts.query or parts.fragment or "@" in given:
        return "", None
    return (parts.hostname or "").lower(), 80 if port is None else port


def _parts(origin: str) -> tuple[str, int | None] | None:
    scheme, _, rest = origin.partition("://")
    return split_host(rest) if scheme == "http" and rest else None


def _is_our_name(name: str, host: str | None) -> bool:
    """An address is what it is; only names can be made to point here by others."""
    if name == "localhost" or (host is not None and name == host.lower()):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or host is not None


def _tokens(scope: Scope, headers: Headers) -> list[str]:
    found = []
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        found.append(given.strip())
    for line in headers.getlist("cookie"):
        try:
            cookie: SimpleCookie = SimpleCookie(line)
        except CookieError:
            continue
        if COOKIE in cookie:
            found.append(cookie[COOKIE].value)
    if scope["type"] == "websocket" or scope["path"] in IN_ADDRESS:
        found += query_of(scope).get("token", [])
    return found


def _with_headers(scope: Scope, send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if scope["path"].startswith("/api/"):
                headers.setdefault("cache-control", "no-store")
        await send(message)

    return wrapped


async def _refuse(problem: MulliganError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await WebSocketClose(code=1008, reason=str(problem))(scope, receive, send)
        return
    response: Response = error_response(problem)
    if "text/html" in Headers(scope=scope).get("accept", ""):
        # Somebody looks at it: then a sentence is better than JSON.
        response = PlainTextResponse(f"{problem}\n{HELP}\n", response.status_code)
    # A body that nobody has asked for is not read: the connection ends with the answer.
    if Headers(scope=scope).get("content-length", "0") != "0":
        response.headers["connection"] = "close"
    await response(scope, receive, _with_headers(scope, send))
