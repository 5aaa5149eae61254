"""Run the benchmark: `./dev bench [options]`.

It makes the corpora in a cache folder outside the checkout, gives every contestant its own copy,
lets all of them take each step in turn, and prints medians, ratios against the best peer and the
bars. The copies and all state are removed at the end, also after an error or a signal; the corpora
stay in the cache for the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

# Started as a script, Python looks for modules in bench/ itself: look in the checkout first.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import corpora, report
from bench.contestant import Contestant, run, timed
from bench.corpora import CORPORA, Corpus, Tree
from bench.ours import OURS, OneShot, start_commands
from bench.peers import PEERS
from bench.report import Samples
from bench.scenarios import SCENARIOS, Course, Record, journey

RESULTS = Path(__file__).resolve().parent / "results"

# Above this, contestants run one after the other: all copies at once would take too much disk.
_TOGETHER = 300_000_000


OTHERS = ("review", "journal", "server", "page", "hooks", "mechanisms")
"""Measurements of their own, each in a file of this name: `./dev bench review`."""


def main() -> int:
    if sys.argv[1:2] and sys.argv[1] in OTHERS:
        chosen = import_module(f"bench.{sys.argv[1]}")
        return int(chosen.main(sys.argv[2:]))
    options = parse()
    # A signal becomes an exception, so that everything is cleaned up on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.load:
        results = json.loads(options.load.read_text())
    else:
        results = measure(options)
        file = options.json or RESULTS / time.strftime("bench-%Y%m%d-%H%M%S.json")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(results, indent=1) + "\n")
        print(f"All samples are in {file}.", file=sys.stderr)
    show(results)
    if options.plot:
        report.plot(results["samples"], options.plot)
        print(f"The plot is in {options.plot}.", file=sys.stderr)
    return 1 if results["failures"] else 0


def parse() -> argparse.Namespace:
    everyone = [*PEERS, *OURS]
    parser = argparse.ArgumentParser(
        prog="./dev bench",
        description="Measure Mulligan beside its peers on the same trees and the same edits.",
    )
    parser.add_argument("--sizes", default="S,M", help="corpora to use, of S,M,L,B (default S,M)")
    parser.add_argument("--all", action="store_true", help="every corpus: S,M,L,B")
    parser.add_argument(
        "--peers",
        metavar="NAMES",
        help=f"contestants, commas between: {', '.join(everyone)}; 'mulligan' stands for all of "
        "ours (default: all that are installed)",
    )
    parser.add_argument(
        "--scenarios",
        metavar="NAMES",
        help=f"what to measure, commas between: {', '.join(SCENARIOS)} (default: all)",
    )
    parser.add_argument("--repeat", type=int, default=3, help="fresh copies of each (default 3)")
    parser.add_argument("--takes", type=int, default=3, help="of each short step (default 3)")
    parser.add_argument("--row", type=int, default=200, help="checkpoints in a row (default 200)")
    parser.add_argument("--cache", type=Path, help="where corpora and copies are kept")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the samples go")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the medians as a PNG")
    parser.add_argument("--load", type=Path, metavar="FILE", help="show the samples of a past run")
    parser.add_argument("--quick", action="store_true", help="S once, 10 in a row: a smoke test")
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.repeat, options.takes, options.row = "S", 1, 1, 10
    if options.all:
        options.sizes = ",".join(CORPORA)
    options.sizes = _chosen(parser, options.sizes, CORPORA)
    options.peers = _chosen(parser, options.peers, everyone, {"mulligan": list(OURS)})
    options.scenarios = _chosen(parser, options.scenarios, SCENARIOS)
    if options.cache is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        options.cache = Path(home) / "mulligan-bench"
    return options


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run everything that was asked for, and return the samples with all that explains them."""
    options.cache.mkdir(parents=True, exist_ok=True)
    contestants = present(options.peers)
    samples: Samples = {}
    failures: list[str] = []
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if "start" in options.scenarios and OneShot.name in contestants:
        try:
            samples["-"] = measure_start()
        except RuntimeError as error:
            failures.append(f"start: {error}")
    for name in options.sizes:
        corpus = CORPORA[name]
        say(f"{corpus.describe()}: making it, or finding it in {options.cache}")
        tree = corpora.make(corpus, options.cache)
        rows = samples[name] = {contestant: {} for contestant in contestants}
        together = corpus.bytes + corpus.large * corpus.large_bytes <= _TOGETHER
        for number in range(options.repeat):
            # Nobody always goes first.
            turn = number % len(contestants)
            order = [*list(contestants)[turn:], *list(contestants)[:turn]]
            for group in [order] if together else [[one] for one in order]:
                say(f"{name}, round {number + 1} of {options.repeat}: {', '.join(group)}")
                journeys = {one: contestants[one] for one in group}
                failures += take_turns(journeys, tree, name, options, rows)
    return {
        "started": started,
        "machine": machine(options.cache),
        "repeat": options.repeat,
        "takes": options.takes,
        "row": options.row,
        "corpora": {name: asdict(CORPORA[name]) for name in options.sizes},
        "samples": samples,
        "failures": failures,
    }


def take_turns(
    contestants: dict[str, type[Contestant]],
    tree: Tree,
    corpus: str,
    options: argparse.Namespace,
    rows: dict[str, dict[str, list[float]]],
) -> list[str]:
    """One round: each contestant takes a step in turn on its own copy. Returns what failed."""
    failures = []
    open_ones: dict[str, tuple[Contestant, Iterator[None]]] = {}
    with work_folder(options.cache) as work:
        try:
            for name, kind in contestants.items():
                home = work / name.replace(" ", "-")
                (home / "state").mkdir(parents=True)
                contestant = kind(home / "tree", home / "state")
                own = corpora.copy(tree, contestant.tree)
                record = recorder(rows[name])
                course = Course(corpus, options.scenarios, options.takes, options.row)
                steps = journey(contestant, own, course, record)
                open_ones[name] = contestant, steps
            going = dict(open_ones)
            while going:
                for name, (_, steps) in list(going.items()):
                    try:
                        next(steps)
                    except StopIteration:
                        del going[name]
                    except Exception as error:
                        failures.append(f"{corpus}, {name}: {type(error).__name__}: {error}")
                        say(f"FAILED {failures[-1]}")
                        del going[name]
        finally:
            for contestant, _ in open_ones.values():
                contestant.close()
    return failures


@contextmanager
def work_folder(cache: Path) -> Iterator[Path]:
    """A folder for the copies of one round, removed whatever happens."""
    work = Path(tempfile.mkdtemp(prefix="work-", dir=cache))
    try:
        yield work
    finally:
        # Removing a file mostly waits, for milliseconds on some disks: wait for many at once.
        with ThreadPoolExecutor(16) as pool:
            remove = partial(shutil.rmtree, ignore_errors=True)
            list(pool.map(remove, work.glob("*/*/*")))
        remove(work)


def recorder(row: dict[str, list[float]]) -> Record:
    return lambda key, value: row.setdefault(key, []).append(value)


def present(names: list[str]) -> dict[str, type[Contestant]]:
    """The contestants that can take part here; the others are named with the reason."""
    found = {}
    for name in names:
        kind = (PEERS | OURS)[name]
        reason = kind.missing()
        if reason is None:
            found[name] = kind
        else:
            say(f"{name} is left out: {reason}")
    if not found:
        sys.exit("bench: nobody is left to be measured")
    return found


def measure_start() -> dict[str, dict[str, list[float]]]:
    """The start of the command beside the bare start of the same Python, in turn."""
    commands = start_commands()
    rows: dict[str, dict[str, list[float]]] = {name: {"start": []} for name in commands}
    for number in range(11):
        for name, command in commands.items():
            seconds = timed(partial(run, command, cwd=Path.home()))
            if number:  # the first one warms the caches
                rows[name]["start"].append(seconds)
    return rows


def show(results: dict[str, Any]) -> None:
    samples: Samples = results["samples"]
    for name, rows in report.medians(samples).items():
        if name == "-":
            title = "Start of the command"
        else:
            title = Corpus(**results["corpora"][name]).describe()
            title += f"; {results['row']} in a row, five edits each"
        print(f"\n{title}  (medians, seconds)")
        print(report.table(rows))
    verdicts = report.judge(samples)
    print(f"\nOne fsync of 4 KB took {results['machine']['fsync'] * 1000:.1f} ms here.")
    if verdicts:
        print("\nMulligan against the best peer, and the bars")
        print(report.verdict_table(verdicts))
    for failure in results["failures"]:
        print(f"FAILED {failure}")


def machine(cache: Path) -> dict[str, Any]:
    """What one needs to know to compare this run with another."""
    return {
        "system": platform.platform(),
        "processor": _line_of("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory": _line_of("/proc/meminfo", "MemTotal"),
        "load": os.getloadavg(),
        "filesystem": _output("stat", "-f", "-c", "%T", str(cache)),
        "fsync": fsync_seconds(cache),
        "python": platform.python_version(),
        "versions": {
            command: _output(command, "version" if command == "restic" else "--version")
            for command in ("git", "jj", "restic", "borg")
            if shutil.which(command)
        },
    }


def fsync_seconds(folder: Path) -> float:
    """What one small durable write costs here: the floor of every durable checkpoint."""

    def write() -> None:
        file.write(bytes(4096))
        os.fsync(file.fileno())

    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        return median(timed(write) for _ in range(21))


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _chosen(
    parser: argparse.ArgumentParser,
    text: str | None,
    known: Iterable[str],
    groups: Mapping[str, list[str]] | None = None,
) -> list[str]:
    """Names from a list with commas, in the order in which they are known; None means all."""
    known = list(known)
    if text is None:
        return known
    names = [name.strip() for name in text.split(",")]
    wanted = {one for name in names for one in (groups or {}).get(name, [name])}
    unknown = sorted(wanted - set(known))
    if unknown:
        parser.error(f"{unknown[0]!r} is not one of {', '.join(known)}")
    return [name for name in known if name in wanted]


def _line_of(file: str, name: str) -> str | None:
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return None
    found = [line.partition(":")[2].strip() for line in lines if line.startswith(name)]
    return found[0] if found else None


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
