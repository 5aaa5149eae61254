"""Authenticate every HTTP and WebSocket request before any other code sees it.

1. *Host* must be a name of ours: this stops DNS rebinding.
2. *Origin*, where a browser sends it, must be our own page.
3. The *token*, or the page's *cookie* (`access`). A browser gets the cookie for a one-time code.

On the unix socket the file's permissions, and the user at the other end, are the check instead.
"""

from __future__ import annotations

import ipaddress
from html import escape
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from mulligan.errors import MulliganError
from mulligan.server.http.access import PROJECT, Access, Slowdown
from mulligan.server.http.errors_json import RequestRefused, error_response, query_of

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
HELP = "To open the page, run `mulligan up` (also beside a running `mulligan serve`)."
USED = "This address works once and for five minutes, and was used or is too old."
OTHER_ORIGIN = f"Origin not allowed: requests of other sites are refused. {HELP}"
IN_ADDRESS = ("/api/v1/events",)
"""Paths that accept the token as a parameter: an `EventSource` cannot send headers."""
NOT_BY_COOKIE = ("/api/v1/page-address",)
"""Paths that need the token: a cookie must not yield another cookie."""
ENTERED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Mulligan</title>
<meta http-equiv="refresh" content="0;url={where}"></head>
<body><p><a href="{where}">Open Mulligan</a></p></body></html>
"""
"""Not a redirect: a browser would treat that as started by the linking page, and would not send the
new cookie (SameSite=Strict)."""


class Guard:
    """Refuse unauthenticated requests, and add security headers to every response.

    `host` is the address to listen on, if that is not loopback.
    """

    def __init__(self, app: ASGIApp, *, access: Access, host: str | None = None) -> None:
        self._app = app
        self._access = access
        self._host = host
        self._slowdown = Slowdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            entered = await self._check(scope)
        except MulliganError as problem:
            await _refuse(problem, scope, receive, send)
            return
        await (entered or self._app)(scope, receive, _with_headers(scope, send))

    async def _check(self, scope: Scope) -> Response | None:
        """Raise `RequestRefused`; return the response to a one-time code, else None."""
        headers = Headers(scope=scope)
        local = is_local(scope)
        if not local:
            self._check_host(scope, headers)
        check_origin(scope, headers)
        if local:
            return None
        code = _code(scope)
        if code is not None:
            return await self._enter(code, scope, headers)
        if not self._is_known(scope, headers):
            if _tokens(scope, headers) or self._cookies(headers):
                await self._slowdown.wait()
            raise RequestRefused(
                "unauthorized",
                "Token missing or wrong. Send `Authorization: Bearer TOKEN`; the token is in the "
                "file server.token in Mulligan's home.",
                {"www-authenticate": "Bearer"},
            )
        return None

    def _check_host(self, scope: Scope, headers: Headers) -> None:
        server = scope.get("server")
        port = server[1] if server else None
        name, given = split_host(headers.get("host", ""))
        if given != port or not (name == self._access.page_name or _is_our_name(name, self._host)):
            raise RequestRefused("forbidden", f"Host header not allowed. {HELP}")

    def _is_known(self, scope: Scope, headers: Headers) -> bool:
        if any(map(self._access.is_token, _tokens(scope, headers))):
            return True
        return scope["path"] not in NOT_BY_COOKIE and self._has_cookie(headers)

    def _has_cookie(self, headers: Headers) -> bool:
        host = headers.get("host", "")
        return any(self._access.is_cookie(given, host) for given in self._cookies(headers))

    def _cookies(self, headers: Headers) -> list[str]:
        found = []
        for line in headers.getlist("cookie"):
            try:
                cookie: SimpleCookie = SimpleCookie(line)
            except CookieError:
                continue
            if self._access.cookie_name in cookie:
                found.append(cookie[self._access.cookie_name].value)
        return found

    async def _enter(self, code: str, scope: Scope, headers: Headers) -> Response:
        """Exchange a one-time code for a cookie, and lead to the page."""
        if "sec-purpose" in headers or "purpose" in headers:
            # A browser that only prefetches must not use the code up.
            return PlainTextResponse("Not for prefetching.\n", 503)
        project = query_of(scope).get("project", [""])[0]
        where = f"/p/{project}/home" if PROJECT.fullmatch(project) else "/"
        answer = HTMLResponse(ENTERED.format(where=escape(where)))
        answer.headers["cache-control"] = "no-store"
        if self._access.redeem(code):
            value = self._access.new_cookie(headers.get("host", ""))
            answer.set_cookie(
                self._access.cookie_name, value, httponly=True, samesite="strict", path="/"
            )
        elif not self._has_cookie(headers):
            await self._slowdown.wait()
            raise RequestRefused("unauthorized", USED, {"www-authenticate": "Bearer"})
        return answer


def is_local(scope: Scope) -> bool:
    """True if the request came over the unix socket, which only the user can open."""
    server = scope.get("server")
    return server is not None and server[1] is None


def check_origin(scope: Scope, headers: Headers) -> None:
    """Raise `RequestRefused` for requests that another site's page makes."""
    origin = headers.get("origin")
    if origin is not None:
        parts = _parts(origin)
        if parts is None or parts != split_host(headers.get("host", "")):
            raise RequestRefused("forbidden", OTHER_ORIGIN)
    # Other ports of this machine are "same-site", and cookies ignore ports.
    site = headers.get("sec-fetch-site", "none")
    if site not in ("none", "same-origin") and scope["path"].startswith("/api/"):
        raise RequestRefused("forbidden", OTHER_ORIGIN)


def split_host(given: str) -> tuple[str, int | None]:
    """Split a `Host` header into name and port; the default port is 80."""
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
    """Accept addresses; of names only our own, since DNS can point any name here."""
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
    if scope["type"] == "websocket" or scope["path"] in IN_ADDRESS:
        found += query_of(scope).get("token", [])
    return found


def _code(scope: Scope) -> str | None:
    """Return the one-time code in the page's address, if any."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != "/":
        return None
    found = query_of(scope).get("code")
    return found[0] if found else None


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
        # A browser shows it to the user: text is better than JSON.
        response = PlainTextResponse(f"{problem}\n{HELP}\n", response.status_code)
    # Close the connection rather than read the body of a refused request.
    if Headers(scope=scope).get("content-length", "0") != "0":
        response.headers["connection"] = "close"
    await response(scope, receive, _with_headers(scope, send))
