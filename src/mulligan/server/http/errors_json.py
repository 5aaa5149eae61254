"""Read and write JSON, with one shape for every error, and limits.

`STATUS` is the only map from error codes to HTTP statuses.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import apsw
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mulligan.errors import NO_MEMORY, MulliganError, UsageError

BODY_LIMIT = 32 << 20
MESSAGE_LIMIT = 64 << 20
HEADER_LIMIT = 64 << 10
BODY_SECONDS = 30.0
PIECE_SECONDS = 10.0
MAX_JSON_DEPTH = 100

STATUS = {
    "failed": 500,
    "usage": 400,
    "refused_root": 400,
    "not_found": 404,
    "ambiguous": 409,
    "nothing_to_undo": 404,
    "would_lose_work": 409,
    "busy": 423,
    "corrupt": 500,
    "missing_object": 500,
    "newer_format": 500,
    "out_of_space": 507,
    "not_writable": 500,
    "unsupported": 501,
    "unauthorized": 401,
    "forbidden": 403,
    "method_not_allowed": 405,
    "too_slow": 408,
    "too_large": 413,
    "range": 416,
    "too_many": 429,
}
"""Errors of the tree in `mulligan.errors`, and then those that only a server knows."""


class RequestRefused(MulliganError):
    """A request that the server refuses before it reaches a workspace."""

    def __init__(self, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.headers = dict(headers or {})


class Json(Response):
    """JSON in ASCII; bytes of names that are not UTF-8 become lone surrogates."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return encoded(content)


def encoded(content: Any) -> bytes:
    """Encode a value as JSON; NaN and infinity, which some agents log, become null."""
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"), default=_plain)
    except ValueError:
        text = json.dumps(_finite(content), separators=(",", ":"), default=_plain)
    return text.encode("ascii")


def decoded(body: bytes) -> Any:
    """Decode a JSON body; raises `UsageError` for invalid or too deeply nested JSON."""
    try:
        content = json.loads(body, parse_constant=_no_constant)
    except RecursionError:
        raise UsageError("The body is nested too deeply.") from None
    except (ValueError, UnicodeDecodeError) as problem:
        raise UsageError(f"The body is not JSON: {problem}.") from None
    if _depth(content) > MAX_JSON_DEPTH:
        raise UsageError("The body is nested too deeply.")
    return content


def query_of(scope: Mapping[str, Any]) -> dict[str, list[str]]:
    """Decode the query parameters; bytes that are not UTF-8 become surrogates."""
    found: dict[str, list[str]] = {}
    raw = bytes(scope.get("query_string", b"")).decode("latin-1")
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="surrogateescape", max_num_fields=500)
    except ValueError:
        raise UsageError("Too many query parameters; at most 500 are allowed.") from None
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


async def read_body(request: Request, limit: int = BODY_LIMIT) -> bytes:
    """Read the whole body; raises `RequestRefused` if it is too large or too slow."""
    told = request.headers.get("content-length", "")
    if told.isascii() and told.isdigit() and int(told[:20]) > limit:
        raise too_large(limit)
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            stream = request.stream()
            while True:
                async with asyncio.timeout(PIECE_SECONDS):
                    piece = await anext(stream, None)
                if piece is None:
                    return b"".join(pieces)
                size += len(piece)
                if size > limit:
                    raise too_large(limit)
                pieces.append(piece)
    except TimeoutError:
        closing = {"connection": "close"}
        raise RequestRefused(
            "too_slow", "The body did not arrive in time; send the request again.", closing
        ) from None
    except ClientDisconnect:
        raise RequestRefused(
            "too_slow", "The client went away before it had sent its body."
        ) from None


async def read_json(request: Request, limit: int = BODY_LIMIT) -> Any:
    """Decode the body; an empty one is an empty object."""
    body = await read_body(request, limit)
    return decoded(body) if body else {}


def too_large(limit: int) -> RequestRefused:
    # Close the connection rather than read the rest of the body.
    return RequestRefused(
        "too_large",
        f"The body is larger than {limit >> 20} MB; send less at once.",
        {"connection": "close"},
    )


def error_body(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def as_error(problem: BaseException) -> tuple[int, dict[str, Any]]:
    """Return status and body for an error; hide the details of unexpected ones."""
    if isinstance(problem, MulliganError):
        return STATUS[problem.code], error_body(problem.code, str(problem))
    if isinstance(problem, UnicodeError):
        return 400, error_body("usage", "The request holds text that is not valid Unicode.")
    if isinstance(problem, apsw.ConstraintError):
        message = "The name is taken already, or the request refers to a missing object."
        return 400, error_body("usage", message)
    if isinstance(problem, MemoryError):
        return 500, error_body("failed", NO_MEMORY)
    if isinstance(problem, OSError):
        return 500, error_body("failed", str(problem))
    return 500, error_body("failed", "Internal error; see the server's log.")


def error_response(problem: BaseException) -> Response:
    """Make the response for an error."""
    if isinstance(problem, HTTPException):
        return _of_starlette(problem)
    status, body = as_error(problem)
    headers = problem.headers if isinstance(problem, RequestRefused) else None
    return Json(body, status, headers)


def _of_starlette(problem: HTTPException) -> Response:
    codes = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 400: "usage"}
    texts = {404: "There is nothing at this address.", 405: "Method not allowed here."}
    code = codes.get(problem.status_code, "failed")
    message = texts.get(problem.status_code, str(problem.detail))
    return Json(error_body(code, message), STATUS[code], dict(problem.headers or {}))


def _plain(value: Any) -> Any:
    if hasattr(value, "as_json"):
        return value.as_json()
    raise TypeError(f"{type(value).__name__} has no JSON form.")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return _finite(value.as_json()) if hasattr(value, "as_json") else value


def _depth(content: Any) -> int:
    """Return the nesting depth, without recursion."""
    depth = 0
    level = [content]
    while level and depth <= MAX_JSON_DEPTH:
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, list):
                inner.extend(each)
        level = inner
        depth += 1
    return depth


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
