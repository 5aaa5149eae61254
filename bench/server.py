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
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mulligan
from bench import bare
from bench.client import Connection, Follower, Server, connected, following, load
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
OFTEN = 36
"""So many of the cheapest request are asked for each of the others, when the memory is watched."""

BY_SERVER, BY_OTHERS = "by the server", "by another process"
PATIENCE = 15.0
COUNTS = ("told", "lost", "twice")

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
    least = {
        "entries": SESSIONS * 4,
        "count": ROUNDS,
        "clients": 1,
        "checkpoints": 1,
        "requests": 4,
    }
    for name, number in least.items():
        if getattr(options, name) < number:
            parser.error(f"--{name} must be at least {number}")
    return options


async def measure(folder: Path, options: argparse.Namespace) -> Figures:
    """Fills a project, starts both servers, and takes every measurement."""
    project, home = folder / "project", folder / "home"
    with ExitStack() as stack:
        say(f"filling {options.entries:,} entries")
        workspace = stack.enter_context(mulligan.open(make(project), home=str(home)))
        paths = fill(workspace, options.entries)
        ours = stack.enter_context(Server(["-m", "mulligan", "serve", "--json"], folder, home))
        memory = {"start": ours.memory()}
        answers = {name: await first(ours, path) for name, path in paths.items()}
        memory["asked once"] = ours.memory()
        (folder / "answers.json").write_text(json.dumps({f"/{n}": a for n, a in answers.items()}))
        script = str(Path(bare.__file__).resolve())
        plain = stack.enter_context(Server([script, str(folder / "answers.json")], folder))
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
        session = workspace.sessions.create(
            title=f"Session {number}", agent="bench", checkpoint=False
        )
        workspace.sessions.append(session.id, *islice(words, entries // SESSIONS))
    workspace.checkpoint("filled")
    for at in range(CHANGED):
        Path(os.fsdecode(workspace.root), f"file-{at}.txt").write_text("changed\n")
    project = workspace.project.location.id
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
    project = f"/api/v1/projects/{workspace.project.location.id}"
    file = Path(os.fsdecode(workspace.root), "edited.txt")
    rows = {}

    async def by_the_server(asking: Connection, number: int) -> str:
        file.write_text(f"{BY_SERVER} {number}\n")
        request = ours.asking(f"{project}/checkpoints", "{}")
        return str(json.loads(await asking.ask(request))["checkpoint"])

    async def by_another(asking: Connection, number: int) -> str:
        file.write_text(f"{BY_OTHERS} {number}\n")
        return (await asyncio.to_thread(workspace.checkpoint)).id

    async def by_the_bare(asking: Connection, number: int) -> str:
        request = plain.asking(bare.CHECKPOINTS, "{}")
        return str(json.loads(await asking.ask(request))["checkpoint"])

    def operations() -> dict[str, int]:
        found = workspace.operations(4 * options.checkpoints + 10)
        return {each.after: each.number for each in found if each.after}

    def counted() -> dict[str, int]:
        return {str(number): number for number in range(options.checkpoints + 1)}

    events = f"/api/v1/events?project={workspace.project.location.id}"
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
            asking = await stack.enter_async_context(connected(server))
            taking = partial(take, asking)
            rows[who] = await delays_of_events(clients, taking, numbers, options.checkpoints)
    return {who: row | {"ratio": ratio(row, rows[BARE])} for who, row in rows.items()}


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
        "taking": spread(taken)["p50"],
        "told": len(delays),
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
    names = [name for name in ("p50", "p99") if ours.get(name) and plain.get(name)]
    found = {name: ours[name] / plain[name] for name in names}
    if "per_second" in ours:
        found["a second"] = ours["per_second"] / plain["per_second"]
    return found


def table(results: Figures) -> str:
    """Milliseconds beside those of the bare server, and ratios of ours to its."""
    columns = ("a second", "p50", "p99") * 3
    lines = [f"{results['entries']:,} entries; milliseconds: Mulligan, bare, ratio", ""]
    lines.append(f"{'connections':22}" + _names(columns))
    for what, row in results["requests"].items():
        parts = (_milliseconds(row[OURS]), _milliseconds(row[BARE]), row["ratio"])
        lines.append(f"{what:22}" + "".join(_cells(part, columns[:3]) for part in parts))
    lines += ["", f"{'events':22}" + _names(("p50", "p99", "ratio", "p99", "taking", *COUNTS))]
    for who, row in results["events"].items():
        cells = _cells(_milliseconds(row), ("p50", "p99")) + _cells(row["ratio"], ("p50", "p99"))
        cells += _cells(_milliseconds(row), ("taking",))
        lines.append(f"{who:22}{cells}" + "".join(f"{row[name]:9,}" for name in COUNTS))
    memory, plain = results["memory"][OURS], results["memory"][BARE]
    lines += ["", f"{'memory':31}" + _names(("MB", "growth", "ratio"))]
    for when, size in memory.items():
        grown = (size - memory["asked once"]) / 1e6
        lines.append(f"{when:31}{size / 1e6:9.1f}{grown:+9.1f}{size / plain['end']:9.2f}")
    lines.append(f"{'bare, at the end':31}{plain['end'] / 1e6:9.1f}")
    return "\n".join(lines)


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _milliseconds(row: Figures) -> Figures:
    found: Figures = {name: row[name] * 1000 for name in ("p50", "p99", "taking") if name in row}
    return found | {"a second": row.get("per_second")}


def _names(names: tuple[str, ...]) -> str:
    return "".join(f"{name:>9}" for name in names)


def _cells(row: Figures, names: tuple[str, ...]) -> str:
    return "".join(_cell(row.get(name)) for name in names)


def _cell(value: float | None) -> str:
    return f"{'-':>9}" if value is None else f"{value:9,.{0 if value >= 1000 else 2}f}"


if __name__ == "__main__":
    sys.exit(main())
