"""The other end of a server under load: processes to ask, connections that ask, and followers.

Over plain sockets, with as little in between as can be: what a client costs is measured too.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Self

LINE = 1 << 22


class Server:
    """A server in a process of its own, which says in its first line where it listens."""

    def __init__(self, command: list[str], folder: Path, home: Path | None = None) -> None:
        """What it complains of goes to a file in `folder`. A `home` has a token, to be said."""
        env = os.environ | ({} if home is None else {"MULLIGAN_HOME": str(home)})
        complaints = folder / "stderr"
        with complaints.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, *command], env=env, stdout=subprocess.PIPE, stderr=errors
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(command)} did not start: {complaints.read_text()}")
        self.port = int(json.loads(line)["url"].rpartition(":")[2])
        self._head = f"host: 127.0.0.1:{self.port}\r\n"
        if home is not None:
            self._head += f"authorization: Bearer {(home / 'server.token').read_text()}\r\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)

    def memory(self) -> int:
        """Bytes of the memory that it has now."""
        command = ["ps", "-o", "rss=", "-p", str(self._process.pid)]
        return int(subprocess.run(command, capture_output=True, check=True).stdout) * 1024

    def asking(self, path: str, body: str | None = None) -> bytes:
        """The bytes of a request."""
        if body is None:
            return f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode()
        kind = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        return f"POST {path} HTTP/1.1\r\n{self._head}{kind}\r\n{body}".encode()


class Connection:
    """One connection that asks, waits for the answer, and asks again."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    async def ask(self, request: bytes) -> bytes:
        """The body of the answer; what is no success measures nothing, and is an error."""
        head = (await self.begin(request)).lower()
        return await self.reader.readexactly(int(_between(head, b"content-length: ", b"\r\n")))

    async def begin(self, request: bytes) -> bytes:
        """The head of the answer."""
        self._writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 20"):
            asked, _, _ = request.partition(b"\r\n")  # the token is in what follows
            raise RuntimeError(f"{asked!r}: {head!r}")
        return head

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Connection]:
    connection = Connection(*await asyncio.open_connection("127.0.0.1", server.port, limit=LINE))
    try:
        yield connection
    finally:
        await connection.close()


async def load(
    server: Server, requests: list[bytes], connections: int, count: int
) -> tuple[float, list[float]]:
    """Asks so often, going round the requests; the seconds of it all and of each."""
    work = islice(cycle(requests), count)
    delays: list[float] = []
    async with AsyncExitStack() as stack:
        line = [await stack.enter_async_context(connected(server)) for _ in range(connections)]
        begun = time.perf_counter()
        await asyncio.gather(*(_ask_on(each, work, delays) for each in line))
        return time.perf_counter() - begun, delays


class Follower:
    """What one client was told: the moments at which it heard of each operation."""

    def __init__(self) -> None:
        self.told: dict[int, list[float]] = {}

    async def listen(self, reader: asyncio.StreamReader) -> None:
        # The sizes of pieces are lines too, and no event is cut in two.
        async for line in reader:
            if line.startswith(b"data: "):
                event = json.loads(line.removeprefix(b"data: "))
                if event["kind"] == "operation":
                    self.told.setdefault(event["operation"], []).append(time.perf_counter())


@asynccontextmanager
async def following(server: Server, path: str) -> AsyncIterator[Follower]:
    async with connected(server) as connection:
        await connection.begin(server.asking(path))
        # The greeting: from here on nothing is missed.
        await connection.reader.readuntil(b"retry: 1000\n\n")
        follower = Follower()
        listening = asyncio.create_task(follower.listen(connection.reader))
        try:
            yield follower
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def _ask_on(connection: Connection, work: Iterator[bytes], delays: list[float]) -> None:
    for request in work:
        begun = time.perf_counter()
        await connection.ask(request)
        delays.append(time.perf_counter() - begun)


def _between(text: bytes, begin: bytes, end: bytes) -> bytes:
    return text.partition(begin)[2].partition(end)[0]
