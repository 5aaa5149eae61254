"""From samples to a verdict: medians, ratios against the best peer, the bars, tables and a plot.

Everything here but the plot is arithmetic on plain values. A bar compares one way of running
Mulligan with the fastest of its peers in the same run, or with a fixed limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.scenarios import SCENARIOS

# corpus -> contestant -> scenario -> what was measured
Samples = dict[str, dict[str, dict[str, list[float]]]]

BEST_PEERS = ("git-tuned", "opencode", "jj")
ANY_GIT = ("git", "git-tuned")
LIBRARY = "mulligan library"
WATCHER = "mulligan watcher"


@dataclass(frozen=True)
class Bar:
    """At most `limit` times the best of `peers`; with no peers, at most `limit` itself."""

    scenario: str
    contestant: str
    limit: float
    aim: float
    corpora: str
    peers: tuple[str, ...] = BEST_PEERS


BARS = (
    Bar("first", LIBRARY, 1 / 5, 1 / 10, "ML"),
    Bar("same", LIBRARY, 1.0, 0.7, "ML"),
    Bar("same", WATCHER, 1 / 20, 1 / 60, "SML"),
    Bar("edits", WATCHER, 1 / 20, 1 / 60, "SML"),
    Bar("edits", LIBRARY, 0.7, 0.35, "SML"),
    Bar("changes", LIBRARY, 0.5, 0.25, "SML"),
    Bar("diff", LIBRARY, 0.7, 0.3, "SML"),
    Bar("restore", LIBRARY, 0.8, 0.5, "SML"),
    Bar("row", LIBRARY, 1 / 3, 1 / 6, "SML"),
    Bar("row", WATCHER, 1 / 3, 1 / 6, "SML"),
    Bar("row-disk", LIBRARY, 1 / 5, 1 / 10, "SML"),
    Bar("byte", LIBRARY, 1 / 10, 1 / 10, "B", ANY_GIT),
    Bar("byte-disk", LIBRARY, 256 * 1024, 64 * 1024, "B", ()),
    Bar("start", "mulligan", 4.0, 2.0, "-", ("python -c pass",)),
    Bar("memory", LIBRARY, 300e6, 150e6, "L", ()),
)


@dataclass(frozen=True)
class Verdict:
    """How a bar came out: the value is a ratio, or bytes where the bar is a fixed limit."""

    bar: Bar
    corpus: str
    value: float
    peer: str | None
    peer_value: float | None

    @property
    def outcome(self) -> str:
        if self.value <= self.bar.aim:
            return "ok, aim met"
        return "ok" if self.value <= self.bar.limit else "MISSED"


def medians(samples: Samples) -> dict[str, dict[str, dict[str, float]]]:
    return {
        corpus: {
            contestant: {key: median(values) for key, values in by_scenario.items() if values}
            for contestant, by_scenario in by_contestant.items()
        }
        for corpus, by_contestant in samples.items()
    }


def judge(samples: Samples, bars: Iterable[Bar] = BARS) -> list[Verdict]:
    """Hold what was measured against the bars; a bar with nothing to compare is left out."""
    verdicts = []
    for corpus, by_contestant in medians(samples).items():
        for bar in bars:
            ours = by_contestant.get(bar.contestant, {}).get(bar.scenario)
            if corpus not in bar.corpora or ours is None:
                continue
            if not bar.peers:
                verdicts.append(Verdict(bar, corpus, ours, None, None))
                continue
            rivals = [
                (by_contestant[peer][bar.scenario], peer)
                for peer in bar.peers
                if by_contestant.get(peer, {}).get(bar.scenario)
            ]
            if rivals:
                peer_value, peer = min(rivals)
                verdicts.append(Verdict(bar, corpus, ours / peer_value, peer, peer_value))
    return verdicts


def table(by_contestant: dict[str, dict[str, float]]) -> str:
    """Rows are contestants, columns the scenarios that anyone has a value for."""
    keys = [key for key in SCENARIOS if any(key in row for row in by_contestant.values())]
    rows = [["", *(SCENARIOS[key].title for key in keys)]]
    for contestant, values in by_contestant.items():
        cells = [shown(key, values[key]) if key in values else "–" for key in keys]
        rows.append([contestant, *cells])
    return aligned(rows)


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    rows = [["", "who", "value", "best peer", "bar", "aim", ""]]
    for verdict in verdicts:
        bar = verdict.bar
        scenario = SCENARIOS[bar.scenario]
        title = f"{verdict.corpus}  {scenario.title}" if verdict.corpus != "-" else scenario.title
        if verdict.peer is None:
            value, peer = shown(bar.scenario, verdict.value), "–"
            limit, aim = shown(bar.scenario, bar.limit), shown(bar.scenario, bar.aim)
        else:
            assert verdict.peer_value is not None
            value = f"{significant(verdict.value)} ×"
            peer = f"{verdict.peer} {shown(bar.scenario, verdict.peer_value)}"
            limit, aim = f"{significant(bar.limit)} ×", f"{significant(bar.aim)} ×"
        rows.append([title, bar.contestant, value, peer, limit, aim, verdict.outcome])
    return aligned(rows, left=(0, 1, 3, 6))


def shown(key: str, value: float) -> str:
    return significant(value / 1e6 if SCENARIOS[key].unit == "bytes" else value)


def significant(value: float) -> str:
    """Three digits that mean something, never in powers of ten."""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    digits = next((digits for digits in range(1, 7) if abs(value) >= 10 ** (2 - digits)), 7)
    return f"{value:.{digits}f}"


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def plot(samples: Samples, file: Path) -> None:
    """Grouped bars on a logarithmic scale, one panel a corpus; shorter is better."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = {corpus: rows for corpus, rows in medians(samples).items() if corpus != "-"}
    contestants = list(dict.fromkeys(name for rows in panels.values() for name in rows))
    colours = {name: _colour(name, number) for number, name in enumerate(contestants)}
    figure, axes = pyplot.subplots(
        len(panels), 1, figsize=(13, 4.2 * len(panels)), squeeze=False, layout="constrained"
    )
    for axis, (corpus, rows) in zip(axes[:, 0], panels.items(), strict=True):
        keys = [
            key
            for key, scenario in SCENARIOS.items()
            if scenario.unit == "seconds" and any(key in row for row in rows.values())
        ]
        width = 0.86 / len(rows)
        for number, (name, values) in enumerate(rows.items()):
            places = [
                place + (number - (len(rows) - 1) / 2) * width
                for place, key in enumerate(keys)
                if key in values
            ]
            heights = [values[key] for key in keys if key in values]
            axis.bar(places, heights, width * 0.9, label=name, color=colours[name])
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(lambda seconds, _: f"{seconds:g}")
        axis.set_xticks(range(len(keys)), [SCENARIOS[key].title for key in keys])
        axis.set_ylabel("seconds (logarithmic)")
        axis.set_title(f"Corpus {corpus}: medians, shorter is better")
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(ncols=min(4, len(rows)), fontsize=8, frameon=False, loc="upper right")
        low, high = axis.get_ylim()
        axis.set_ylim(low, high * 6)  # room for the legend
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def _colour(name: str, number: int) -> str:
    """Ours in shades of red; peers in colours that stay apart without it."""
    ours = {"mulligan one-shot": "#fcae91", LIBRARY: "#ef3b2c", WATCHER: "#99000d"}
    others = ("#08306b", "#4292c6", "#9ecae1", "#525252", "#969696", "#807dba", "#41ab5d")
    return ours.get(name, others[number % len(others)])
