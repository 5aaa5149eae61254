"""The least that a server of this kind does: `bench.server` starts it beside Mulligan's.

starlette under uvicorn, with the settings of `mulligan serve` and nothing around it: no token, no
limits, no thread, no journal. It is given what Mulligan answered to each request, and answers
with the same, made into JSON anew each time; a POST is told to everyone who follows.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

EVENTS = "/events"
CHECKPOINTS = "/checkpoints"


def application(answers: dict[str, Any]) -> Starlette:
    """`answers` is what to say to each path."""
    followers: set[asyncio.Queue[bytes]] = set()
    number = 0

    async def answer(request: Request) -> Response:
        return JSONResponse(answers[request.url.path])

    async def checkpoint(request: Request) -> Response:
        nonlocal number
        number += 1
        event = {"project": "bare", "number": number, "kind": "operation", "operation": number}
        data = b"id: %d\nevent: operation\ndata: %s\n\n" % (number, json.dumps(event).encode())
        for queue in followers:
            queue.put_nowait(data)
        return JSONResponse({"checkpoint": str(number)}, 201)

    async def told() -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        followers.add(queue)
        try:
            yield b"retry: 1000\n\n"
            while True:
                yield await queue.get()
        finally:
            followers.discard(queue)

    async def events(request: Request) -> Response:
        return StreamingResponse(told(), media_type="text/event-stream")

    return Starlette(
        routes=[
            *(Route(path, answer) for path in answers),
            Route(CHECKPOINTS, checkpoint, methods=["POST"]),
            Route(EVENTS, events),
        ]
    )


def main() -> None:
    answers = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    config = uvicorn.Config(
        application(answers), http="h11", lifespan="off", log_config=None, log_level="error",
        access_log=False, proxy_headers=False, server_header=False, timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    # With its protocol said: only then does asyncio send small pieces at once.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        listener.setblocking(False)
        print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"}), flush=True)
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
