"""The server under load: `./dev bench server [options]`.

A real `mulligan serve` on a project of its own, and beside it the least that the same stack can
do (`bench/bare.py`): starlette under uvicorn with the same settings, which answers with the same
JSON. This process asks both, in turn, over plain sockets, so that what the client costs is the
same small part of either. Then a hundred clients follow what happens while checkpoints are taken,
by the server and by another process; each must be told each of them once. At last the server is
asked very often, and what it holds of the memory is looked at on the way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple, Self

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mulligan
from bench import bare
from bench.journal import COMMON, stream
from mulligan import Workspace

OURS, BARE = "mulligan", "bare"
CONNECTIONS = (1, 8)
ROUNDS = 5
"""So often the two take turns, that a busy moment meets both."""

SESSIONS = 10
FILES = 200
CHANGED = 10
PAGE = 50
HITS = 20
OFTEN = 16
"""So many of the cheapest request are asked for each of the others, when the memory is watched."""

BY_SERVER, BY_OTHERS = "by the server", "by another process"
PATIENCE = 15.0
LINE = 1 << 22

Figures = dict[str, Any]
Take = Callable[[int], Awaitable[str]]
"""Takes a checkpoint, the so-and-so-manieth, and gives its id."""


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    # A signal becomes an exception, so that servers end and everything is removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="mulligan-bench-server-", dir=options.place) as place:
        results = asyncio.run(measure(Path(place).resolve(), options))
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    lost = [row for row in results["events"].values() if row["lost"] or row["twice"]]
    return 1 if lost else 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench server", description=__doc__)
    add = parser.add_argument
    add("--entries", type=int, default=2_000, help="in ten sessions (default 2,000)")
    add("--count", type=int, default=500, help="of each request at each step (default 500)")
    add("--clients", type=int, default=100, help="that follow events (default 100)")
    add("--checkpoints", type=int, default=50, help="while they follow, each way (default 50)")
    add("--requests", type=int, default=100_000, help="for the memory (default 100,000)")
    add("--place", type=Path, help="where the project is made (default /tmp)")
    add("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args(arguments)
    if options.entries < SESSIONS * 4 or options.count < ROUNDS or options.checkpoints < 1:
        parser.error(f"at least {SESSIONS * 4} entries, a count of {ROUNDS}, and one checkpoint")
    return options


class Server:
    """A server in a process of its own, which says in its first line where it listens."""

    def __init__(self, command: list[str], home: Path | None = None) -> None:
        env = os.environ | ({} if home is None else {"MULLIGAN_HOME": str(home)})
        self._process = subprocess.Popen(
            [sys.executable, *command], env=env, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(command)} did not start")
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
            raise RuntimeError(f"{request!r}: {head!r}")
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


async def measure(folder: Path, options: argparse.Namespace) -> Figures:
    """Fills a project, starts both servers, and takes every measurement."""
    project, home = folder / "project", folder / "home"
    with ExitStack() as stack:
        say(f"filling {options.entries:,} entries")
        workspace = stack.enter_context(mulligan.open(make(project), home=str(home)))
        paths = fill(workspace, options.entries)
        ours = stack.enter_context(Server(["-m", "mulligan", "serve", "--json"], home))
        memory = {"start": ours.memory()}
        answers = {name: await first(ours, path) for name, path in paths.items()}
        memory["asked once"] = ours.memory()
        (folder / "answers.json").write_text(json.dumps({f"/{n}": a for n, a in answers.items()}))
        script = str(Path(bare.__file__).resolve())
        plain = stack.enter_context(Server([script, str(folder / "answers.json")]))
        begun = plain.memory()
        requests = await under_load(ours, plain, paths, options.count)
        memory["after the load"] = ours.memory()
        events = await followed(ours, plain, workspace, options)
        memory["after the events"] = ours.memory()
        await ask_often(ours, paths, options.requests, memory)
        return {
            "entries": options.entries,
            "bytes": {name: len(json.dumps(each)) for name, each in answers.items()},
            "requests": requests,
            "events": events,
            "memory": {OURS: memory, BARE: {"start": begun, "end": plain.memory()}},
        }


def make(project: Path) -> Path:
    project.mkdir()
    for at in range(FILES):
        (project / f"file-{at}.txt").write_text(f"line of file {at}\n" * 50)
    return project


def fill(workspace: Workspace, entries: int) -> dict[str, str]:
    """Some sessions, and some files changed since a checkpoint; gives what to ask, by name."""
    words = stream(1)
    for number in range(SESSIONS):
        session = workspace.new_session(title=f"Session {number}", agent="bench", checkpoint=False)
        workspace.append(session.id, *islice(words, entries // SESSIONS))
    workspace.checkpoint("filled")
    for at in range(CHANGED):
        Path(os.fsdecode(workspace.root), f"file-{at}.txt").write_text("changed\n")
    project = workspace.project.id
    about = f"/api/v1/projects/{project}"
    return {
        "health": "/api/v1/health",
        "status": f"{about}/status",
        "conversation": f"{about}/sessions/{session.id}/conversation?limit={PAGE}",
        "history": f"/api/dialogs/{session.id}/history?project={project}&limit={PAGE}",
        "search": f"/api/v1/search?q={COMMON}&project={project}&limit={HITS}",
    }


async def first(server: Server, path: str) -> Any:
    """The first answer, which opens the project or makes the index, and is not measured."""
    async with connected(server) as connection:
        return json.loads(await connection.ask(server.asking(path)))


async def under_load(
    ours: Server, plain: Server, paths: dict[str, str], count: int
) -> dict[str, Figures]:
    """Each request at each number of connections; both servers take turns."""
    rows = {}
    for name, path in paths.items():
        for connections in CONNECTIONS:
            say(f"{name}, {connections} at once")
            samples: dict[str, tuple[float, list[float]]] = {OURS: (0, []), BARE: (0, [])}
            for _ in range(ROUNDS):
                for who, server, asked in ((OURS, ours, path), (BARE, plain, f"/{name}")):
                    request = server.asking(asked)
                    took, delays = await load(server, [request], connections, count // ROUNDS)
                    samples[who] = samples[who][0] + took, samples[who][1] + delays
            row: Figures = {
                who: {"per_second": len(delays) / took, **spread(delays)}
                for who, (took, delays) in samples.items()
            }
            rows[f"{name}, {connections}"] = row | {"ratio": ratio(row[OURS], row[BARE])}
    return rows


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


async def ask_often(
    server: Server, paths: dict[str, str], count: int, memory: dict[str, int]
) -> None:
    """Most of the requests are the cheapest; the others come round often enough to leave traces."""
    cheap, *others = [server.asking(path) for path in paths.values()]
    requests = [cheap] * OFTEN + others
    for quarter in range(1, 5):
        say(f"asking {count // 4:,} times, {quarter} of 4")
        await load(server, requests, CONNECTIONS[-1], count // 4)
        memory[f"after {count // 4 * quarter:,} requests"] = server.memory()


async def followed(
    ours: Server, plain: Server, workspace: Workspace, options: argparse.Namespace
) -> dict[str, Figures]:
    """How late events are: of checkpoints by the server, by another process, and the bare one's."""
    project = f"/api/v1/projects/{workspace.project.id}"
    file = Path(os.fsdecode(workspace.root), "edited.txt")
    rows = {}
    async with connected(ours) as asking, connected(plain) as asking_bare:

        async def by_the_server(number: int) -> str:
            file.write_text(f"{BY_SERVER} {number}\n")
            request = ours.asking(f"{project}/checkpoints", "{}")
            return str(json.loads(await asking.ask(request))["checkpoint"])

        async def by_another(number: int) -> str:
            file.write_text(f"{BY_OTHERS} {number}\n")
            return (await asyncio.to_thread(workspace.checkpoint)).id

        async def by_the_bare(number: int) -> str:
            request = plain.asking(bare.CHECKPOINTS, "{}")
            return str(json.loads(await asking_bare.ask(request))["checkpoint"])

        def operations() -> dict[str, int]:
            found = workspace.operations(4 * options.checkpoints + 10)
            return {each.after: each.number for each in found if each.after and each.changed}

        def counted() -> dict[str, int]:
            return {str(number): number for number in range(options.checkpoints + 1)}

        events = f"/api/v1/events?project={workspace.project.id}"
        for who, server, path, take, numbers in (
            (BARE, plain, bare.EVENTS, by_the_bare, counted),
            (BY_SERVER, ours, events, by_the_server, operations),
            (BY_OTHERS, ours, events, by_another, operations),
        ):
            say(f"{options.clients} clients, {options.checkpoints} checkpoints {who}")
            async with AsyncExitStack() as stack:
                clients = [
                    await stack.enter_async_context(following(server, path))
                    for _ in range(options.clients)
                ]
                rows[who] = await delays_of_events(clients, take, numbers, options.checkpoints)
    return {who: row | {"ratio": ratio(row, rows[BARE])} for who, row in rows.items()}


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


async def delays_of_events(
    clients: list[Follower], take: Take, numbers: Callable[[], dict[str, int]], count: int
) -> Figures:
    """Takes checkpoints one after the other.

    A delay counts from the moment at which whoever took the checkpoint knows that it is there;
    who is told before that is told at once.
    """
    answered: dict[str, float] = {}
    taken: list[float] = []
    for number in range(count):
        begun = time.perf_counter()
        made = await take(number)
        answered[made] = time.perf_counter()
        taken.append(answered[made] - begun)
    known = numbers()
    wanted = {known[made]: at for made, at in answered.items()}
    deadline = time.perf_counter() + PATIENCE
    while time.perf_counter() < deadline and any(wanted.keys() - each.told for each in clients):
        await asyncio.sleep(0.02)
    delays = [
        max(0.0, each.told[operation][0] - at)
        for each in clients
        for operation, at in wanted.items()
        if operation in each.told
    ]
    return spread(delays) | {
        "checkpoint": spread(taken)["p50"],
        "events": len(delays),
        "lost": len(clients) * len(wanted) - len(delays),
        "twice": sum(len(at) > 1 for each in clients for at in each.told.values()),
    }


def spread(seconds: list[float]) -> Figures:
    """The median, and what one in a hundred goes beyond; nothing where nothing was measured."""
    ordered = sorted(seconds)
    at = len(ordered) - 1
    return {"p50": ordered[at // 2], "p99": ordered[at * 99 // 100]} if ordered else {}


def ratio(ours: Figures, plain: Figures) -> Figures:
    """How many times the bare server's each of ours is."""
    names = [name for name in ("per_second", "p50", "p99") if ours.get(name) and plain.get(name)]
    return {name: ours[name] / plain[name] for name in names}


def table(results: Figures) -> str:
    """Milliseconds, beside those of the bare server; ratios are ours to its."""
    columns = ("a second", "p50", "p99", "bare", "p50", "p99", "ratio", "p50", "p99")
    lines = [f"Requests, {results['entries']:,} entries (milliseconds)", ""]
    lines.append(f"{'connections':22}" + "".join(f"{name:>9}" for name in columns))
    for what, row in results["requests"].items():
        cells = [row[who] for who in (OURS, BARE, "ratio")]
        lines.append(f"{what:22}" + "".join(map(_cells, cells, (1000, 1000, 1))))
    lines += ["", f"{'Events (milliseconds)':22}" + "".join(
        f"{name:>9}" for name in ("p50", "p99", "ratio", "p99", "told", "lost", "twice", "taking")
    )]  # fmt: skip
    for who, row in results["events"].items():
        shown = [row.get("p50"), row.get("p99")]
        cells = "".join(_cell(None if each is None else each * 1000) for each in shown)
        cells += "".join(_cell(row["ratio"].get(name)) for name in ("p50", "p99"))
        cells += "".join(f"{row[name]:9,}" for name in ("events", "lost", "twice"))
        lines.append(f"{who:22}{cells}{_cell(row['checkpoint'] * 1000)}")
    memory, plain = results["memory"][OURS], results["memory"][BARE]
    lines += ["", f"{'Memory (MB)':30}{'':9}{'growth':>9}"]
    once = memory["asked once"]
    for when, size in memory.items():
        lines.append(f"{when:30}{size / 1e6:9.1f}{(size - once) / 1e6:+9.1f}")
    lines.append(f"{'bare, at the end':30}{plain['end'] / 1e6:9.1f}")
    lines.append(f"{'ratio':30}{size / plain['end']:9.2f}")
    return "\n".join(lines)


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


async def _ask_on(connection: Connection, work: Iterator[bytes], delays: list[float]) -> None:
    for request in work:
        begun = time.perf_counter()
        await connection.ask(request)
        delays.append(time.perf_counter() - begun)


def _between(text: bytes, begin: bytes, end: bytes) -> bytes:
    return text.partition(begin)[2].partition(end)[0]


def _cells(figures: Figures, times: float) -> str:
    shown = {**figures, "p50": figures["p50"] * times, "p99": figures["p99"] * times}
    return "".join(_cell(shown.get(name)) for name in ("per_second", "p50", "p99"))


def _cell(value: float | None) -> str:
    return f"{'-':>9}" if value is None else f"{value:9,.{0 if value >= 1000 else 2}f}"


if __name__ == "__main__":
    sys.exit(main())
