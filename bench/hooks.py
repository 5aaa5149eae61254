"""Measure hooks: `./dev bench hooks [options]`.

An agent waits for its hooks: at each prompt, before and after each call, at the end of a turn. So
each of these is run as an agent runs it, process start included, on a project in which nothing
has changed; beside it stands `python -c pass`, the least that any program in Python takes. With
`--agents` the real agents do a small task besides, with Mulligan and without, in the same run
(they are those of `./dev test agents`, and talk to its scripted model).

Samples of everything alternate, so that a busy moment meets all of them alike; medians count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import corpora
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
Samples = dict[str, list[float]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench hooks", description=__doc__)
    parser.add_argument("--sizes", default="S,M", help="corpora to use (default S,M)")
    parser.add_argument("--takes", type=int, default=15, help="takes of each event (default 15)")
    parser.add_argument("--agents", action="store_true", help="run the real agents too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args(arguments)
    figures: dict[str, Any] = {}
    for size in options.sizes.split(","):
        samples = hooks(size, options.takes)
        figures[f"hooks {size}"] = samples
        show(f"Hooks on {size} ({CORPORA[size].files:,} files), nothing changed", samples)
    if options.agents:
        turns = agents()
        figures["agents"] = turns
        print("\nA turn of two calls, seconds: alone, with Mulligan, and what that adds")
        for name, (alone, protected) in turns.items():
            print(f"  {name:<16} {alone:6.2f} {protected:6.2f} {protected - alone:+6.2f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def hooks(size: str, takes: int) -> Samples:
    """Each event, told to a process of its own, on a copy of a corpus."""
    samples: Samples = {"python -c pass": []}
    with scratch() as place:
        tree = corpora.copy(corpora.make(CORPORA[size], CACHE), place / "project")
        environment = {**os.environ, "MULLIGAN_HOME": str(place / "mulligan")}
        common = {"session_id": "bench", "cwd": str(tree.root)}
        # The first look at everything is measured elsewhere; here, nothing has changed.
        tell({**EVENTS["prompt"], **common}, environment)
        tell({**EVENTS["end of a turn"], **common}, environment)
        for take in range(takes):
            nothing = [sys.executable, "-c", "pass"]
            samples["python -c pass"].append(timed(nothing, b"", environment))
            for name, event in EVENTS.items():
                told = {**event, **common, "tool_use_id": f"call {take}"}
                told["prompt"] = f"Go on, {take}."
                samples.setdefault(name, []).append(tell(told, environment))
    return samples


def agents() -> dict[str, tuple[float, float]]:
    """The seconds of a turn of each real agent, without Mulligan and with it."""
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
        seconds = []
        for protected in (False, True):
            with scratch() as place:
                project, home = place / "project", place / "home"
                project.mkdir()
                home.mkdir()
                task.prepare(project)
                # OpenCode fetches its package for plugins when it first sees one: not part of this.
                own = {"MULLIGAN_HOME": str(place / "mulligan"), "npm_config_offline": "true"}
                if protected:
                    path = f"{agent.program.install().parent}:{os.environ['PATH']}"
                    subprocess.run(
                        [*MULLIGAN, "install", names.get(name, name)], check=True, cwd=project,
                        env={**os.environ, **own, "HOME": str(home), "PATH": path},
                        capture_output=True,
                    )  # fmt: skip
                with ScriptedModel(script, agent.toolbox, project) as model:
                    start = time.perf_counter()
                    done = agent.run(Place(project, home, model.url), "Begin.", environment=own)
                    seconds.append(time.perf_counter() - start)
                    if done.returncode:
                        raise SystemExit(f"{name} failed: {done.stderr}")
        found[name] = (seconds[0], seconds[1])
    return found


def tell(event: dict[str, Any], environment: dict[str, str]) -> float:
    return timed([*MULLIGAN, "hook", "claude-code"], json.dumps(event).encode(), environment)


def timed(command: list[str], given: bytes, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, input=given, env=environment, capture_output=True, check=True)
    return time.perf_counter() - start


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mulligan-bench-hooks-") as place:
        yield Path(place).resolve()


def show(title: str, samples: Samples) -> None:
    least = median(samples["python -c pass"])
    print(f"\n{title}; milliseconds: median, best, and the median over a program that does nothing")
    for name, seconds in samples.items():
        over = median(seconds) - least
        mark = (
            "" if name != "prompt" else "  as aimed" if over <= AIM else f"  aim: {AIM * 1e3:.0f}"
        )
        figures = (median(seconds), min(seconds), over)
        shown = " ".join(f"{each * 1e3:7.0f}" for each in figures)
        print(f"  {name:<16} {shown}{mark}")


if __name__ == "__main__":
    sys.exit(main())
