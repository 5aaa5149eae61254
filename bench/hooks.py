"""Measure hooks: `./dev bench hooks [options]`.

An agent waits for its hooks: at each prompt, before and after each call, at the end of a turn. So
each of these is run as an agent runs it, process start included, on a project in which nothing
has changed: by itself, and with a server running; beside it stands `python -c pass`, the least that
any program in Python takes. With `--agents` the real agents do a small task besides, with Mulligan
and without, in the same run (they are those of `./dev test agents`, and talk to its scripted
model).

Samples of everything alternate, so that a busy moment meets all of them alike; medians count. On a
busy machine the processor's own time (`cpu`) says more than the clock: it is what the hook itself
has computed, though not what a server did for it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import corpora
from bench.client import Server
from bench.corpora import CORPORA

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "mulligan-bench"
MULLIGAN = [sys.executable, "-m", "mulligan"]
AIM = 0.1
"""Seconds that a prompt may take longer than a program that does nothing."""

CALL = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {}}
EVENTS = {
    "prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "Go on."},
    "before a call": {"hook_event_name": "PreToolUse", **CALL},
    "after a call": {"hook_event_name": "PostToolUse", **CALL},
    "end of a turn": {"hook_event_name": "Stop", "last_assistant_message": "Done."},
}
SERVED = ", with a server"


class Took(NamedTuple):
    """Seconds by the clock, and of the processor."""

    clock: float
    cpu: float


Samples = dict[str, list[Took]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench hooks", description=__doc__)
    parser.add_argument("--sizes", default="S,M", help="corpora to use (default S,M)")
    parser.add_argument("--takes", type=int, default=15, help="takes of each event (default 15)")
    parser.add_argument("--agents", action="store_true", help="run the real agents too")
    parser.add_argument(
        "--turns", type=int, default=3, help="turns of each agent, with and without (default 3)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args(arguments)
    figures: dict[str, Any] = {}
    for size in options.sizes.split(","):
        samples = hooks(size, options.takes)
        figures[f"hooks {size}"] = samples
        show(f"Hooks on {size} ({CORPORA[size].files:,} files), nothing changed", samples)
    if options.agents:
        turns = agents(options.turns)
        figures["agents"] = turns
        print("\nA turn of two calls, seconds (median): alone, with Mulligan, and what that adds")
        for name, (alone, protected) in turns.items():
            medians = median(alone), median(protected)
            print(
                f"  {name:<16} {medians[0]:6.2f} {medians[1]:6.2f} {medians[1] - medians[0]:+6.2f}"
            )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def hooks(size: str, takes: int) -> Samples:
    """Each event, told to a process of its own, on copies of a corpus with homes of their own."""
    samples: Samples = {"python -c pass": []}
    with scratch() as place, ExitStack() as stack:
        told_where = {}
        for served in ("", SERVED):
            home = place / f"mulligan{served}"
            tree = corpora.copy(corpora.make(CORPORA[size], CACHE), place / f"project{served}")
            home.mkdir()
            if served:
                stack.enter_context(Server(["-m", "mulligan", "serve", "--json"], place, home))
            environment = {**os.environ, "MULLIGAN_HOME": str(home)}
            # A user's Python keeps what it has compiled.
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            told_where[served] = (str(tree.root), environment)
        for take in range(-1, takes):
            for served, (directory, environment) in told_where.items():
                nothing = timed([sys.executable, "-c", "pass"], b"", environment)
                for name, event in EVENTS.items():
                    told = {**event, "session_id": "bench", "cwd": directory}
                    told |= {"tool_use_id": f"call {take}", "prompt": f"Go on, {take}."}
                    took = tell(told, environment)
                    # The first look at everything is measured elsewhere: nothing has changed here.
                    if take >= 0:
                        samples.setdefault(name + served, []).append(took)
                samples["python -c pass"].append(nothing)
    return samples


def agents(turns: int) -> dict[str, tuple[list[float], list[float]]]:
    """The seconds of a turn of each real agent, without Mulligan and with it.

    Each has two homes, which it keeps: what an agent sets up at its first start, and what it does
    once for a plugin that is new to it, happens before anything is measured.
    """
    sys.path.insert(0, str(ROOT / "tests/agents"))
    import task
    from programs import AGENTS, Place
    from script import Script, Step, Turn, shell, write
    from scripted_model import ScriptedModel

    steps = (Step((write("new.txt", "new\n"),)), Step((shell("rm old.txt"),)))
    script = Script((Turn("Begin.", steps),))
    names = {"claude": "claude-code", "codex-code-mode": "codex"}
    found = {}
    for name, agent in AGENTS.items():
        seconds: tuple[list[float], list[float]] = ([], [])
        with scratch() as place:
            # OpenCode fetches its package for plugins when it first sees one: not part of this.
            own = {"MULLIGAN_HOME": str(place / "mulligan"), "npm_config_offline": "true"}
            homes = [place / "home alone", place / "home protected"]
            for home in homes:
                home.mkdir()
            path = f"{agent.program.install().parent}:{os.environ['PATH']}"
            subprocess.run(
                [*MULLIGAN, "install", names.get(name, name)], check=True, cwd=place,
                env={**os.environ, **own, "HOME": str(homes[1]), "PATH": path},
                capture_output=True,
            )  # fmt: skip
            for turn in range(-1, turns):
                for home, taken in zip(homes, seconds, strict=True):
                    project = place / f"{home.name} {turn}"
                    project.mkdir()
                    task.prepare(project)
                    with ScriptedModel(script, agent.toolbox, project) as model:
                        start = time.perf_counter()
                        done = agent.run(Place(project, home, model.url), "Begin.", environment=own)
                        if turn >= 0:
                            taken.append(time.perf_counter() - start)
                        if done.returncode:
                            raise SystemExit(f"{name} failed: {done.stderr}")
        found[name] = seconds
    return found


def tell(event: dict[str, Any], environment: dict[str, str]) -> Took:
    return timed([*MULLIGAN, "hook", "claude-code"], json.dumps(event).encode(), environment)


def timed(command: list[str], given: bytes, environment: dict[str, str]) -> Took:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, input=given, env=environment, capture_output=True, check=True)
    clock = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mulligan-bench-hooks-") as place:
        yield Path(place).resolve()


def show(title: str, samples: Samples) -> None:
    print(f"\n{title}; milliseconds over a program that does nothing: median, best; cpu: the same")
    least = [milliseconds(samples["python -c pass"], column) for column in Took._fields]
    for name, taken in samples.items():
        columns = [milliseconds(taken, column) for column in Took._fields]
        if taken is samples["python -c pass"]:
            over = columns
        else:
            over = [
                (middle - least_middle, best - least_best)
                for (middle, best), (least_middle, least_best) in zip(columns, least, strict=True)
            ]
        shown = "  ".join(f"{middle:6.1f} {best:6.1f}" for middle, best in over)
        print(f"  {name:<30} {shown}{mark(name, over[0][0])}")


def milliseconds(taken: list[Took], column: str) -> tuple[float, float]:
    """The median and the best."""
    found = [getattr(each, column) * 1e3 for each in taken]
    return median(found), min(found)


def mark(name: str, middle: float) -> str:
    if not name.startswith("prompt"):
        return ""
    return "  as aimed" if middle <= AIM * 1e3 else f"  aim: {AIM * 1e3:.0f}"


if __name__ == "__main__":
    sys.exit(main())
