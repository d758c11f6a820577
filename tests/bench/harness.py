"""Runs rivals side by side: interleaved, in one run, compared by medians. Times are seconds unless a name says otherwise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping

import msgspec

Samples = dict[str, list[float]]

OURS = "crewlog"


class Measured(msgspec.Struct, kw_only=True):
    """One row of the table. `value` and `rivals` are medians in `unit`; `ratio` is ours to the rival that the mark names, or to the first.

    `met` is None where a row has no mark. `durability` says what both sides promised; `note` what else was seen.
    """

    name: str
    unit: str
    value: float
    rivals: dict[str, float] = {}
    ratio: float | None = None
    mark: str = ""
    met: bool | None = None
    durability: str = "-"
    note: str = ""


class Mark(msgspec.Struct, frozen=True):
    """What is asked: ours in relation to a rival. With `at_least`, more is better."""

    rival: str
    ratio: float
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.ratio:g}× {self.rival}"

    def met_by(self, ratio: float) -> bool:
        return ratio >= self.ratio if self.at_least else ratio <= self.ratio


def interleaved(contenders: Mapping[str, Callable[[], list[float]]], rounds: int) -> Samples:
    """Every contender once a round, each round in the opposite order of the last, so that none has the better moments."""
    samples: Samples = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            samples[name] += contenders[name]()
    return samples


def compared(name: str, unit: str, samples: Samples, marks: list[Mark], *, scale: float = 1.0, durability: str = "-") -> Measured:
    """A row from samples; `scale` turns them into `unit`. Every mark must be met."""
    medians = {rival: statistics.median(values) * scale for rival, values in samples.items()}
    ours = medians.pop(OURS)
    ratios = [ours / medians[mark.rival] for mark in marks] or [ours / next(iter(medians.values()))] if medians else []
    return Measured(
        name=name,
        unit=unit,
        value=ours,
        rivals=medians,
        ratio=ratios[0] if ratios else None,
        mark=", ".join(map(str, marks)),
        met=all(mark.met_by(ratio) for mark, ratio in zip(marks, ratios)) if marks else None,
        durability=durability,
        note=f"p99 {percentile(samples[OURS], 0.99) * scale:.3g} {unit}" if len(samples[OURS]) >= 200 else "",
    )


def within(name: str, unit: str, samples: list[float], limits: Mapping[float, float], *, scale: float, durability: str = "-") -> Measured:
    """A row whose mark is absolute: each quantile at most its limit, in `unit`."""
    found = {quantile: percentile(samples, quantile) * scale for quantile in limits}
    return Measured(
        name=name,
        unit=unit,
        value=percentile(samples, 0.5) * scale,
        mark=", ".join(f"p{quantile * 100:g} ≤ {limit:g} {unit}" for quantile, limit in limits.items()),
        met=all(found[quantile] <= limit for quantile, limit in limits.items()),
        durability=durability,
        note=", ".join(f"p{quantile * 100:g} {value:.3g} {unit}" for quantile, value in found.items()),
    )


def growth(name: str, row: Measured, small: Measured, times: float, *, at_most: float | None = None) -> Measured:
    """How the cost of `row` compares with that of `small`, which had `times` less to do. The mark: it grows as the work does at the most
    (a quarter more is what a busy machine makes of that), or `at_most`.
    """
    limit = times * 1.25 if at_most is None else at_most
    cost = row.value / small.value
    exponent = math.log(cost) / math.log(times) if cost > 0 else 0.0
    return Measured(
        name=name,
        unit="×",
        value=cost,
        mark=f"≤ {limit:.3g}× for {times:,.0f}× the data",
        met=cost <= limit,
        note=f"grows as the data to the power of {exponent:.2f}",
    )


def percentile(values: list[float], quantile: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * quantile))]


def table(rows: list[Measured]) -> str:
    """The rows for people."""
    lines = [["row", "crewlog", "rivals", "ratio", "mark", "", "durability", "note"]]
    for row in rows:
        rivals = ", ".join(f"{name} {value:.4g}" for name, value in row.rivals.items())
        met = "" if row.met is None else ("ok" if row.met else "MISSED")
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}×"
        lines.append([row.name, f"{row.value:.4g} {row.unit}", rivals, ratio, row.mark, met, row.durability, row.note])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
