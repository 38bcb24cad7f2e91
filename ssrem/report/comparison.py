"""Two runs side by side: settings, evaluators, correlations, tables and gates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ssrem.report.data import Row, Rows
from ssrem.report.numbers import change, is_figure

ABOUT = ("stage", "started", "ended", "ssrem_version")
OF_EVALUATOR = (
    *("evaluator", "version", "promoted", "encoder", "train_responses", "valid_loss"),
    *("best_epoch", "seconds", "why", "signature"),
)
CELL = ("dataset", "criterion", "aggregation", "level", "score")
GATE = ("table", "expectation")


@dataclass(frozen=True)
class Side:
    """A run and what the home folder still holds of it.

    run: its row in `runs`, parameters and inputs as mappings; evaluators, correlations and gates: rows of the tables
    of these names; outputs: rows with table, rows (None if not known) and state, whether they are still
    published; lost: what is no longer available, in words.
    """

    run: Row
    evaluators: Rows = field(default_factory=list)
    correlations: Rows = field(default_factory=list)
    outputs: Rows = field(default_factory=list)
    gates: Rows = field(default_factory=list)
    lost: Sequence[str] = ()


@dataclass(frozen=True)
class Pair:
    """One value under both runs. names: what it is; difference: second minus first, where both are numbers."""

    names: tuple[Any, ...]
    first: Any
    second: Any
    difference: float | None = None

    @property
    def differs(self) -> bool:
        return bool(self.first != self.second)


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side; each list is in the order of the first run, then what only the second has."""

    generated_at: str
    ssrem_version: str
    home: str
    first: Side
    second: Side

    @property
    def sentences(self) -> list[str]:
        """What differs, in short."""
        stages = (self.first.run["stage"], self.second.run["stage"])
        sentences = []
        if self.first.run["run_id"] == self.second.run["run_id"]:
            sentences.append("Both are the same run.")
        elif stages[0] != stages[1]:
            sentences.append(
                f"These are runs of different stages, {stages[0]} and {stages[1]}, so little can be compared."
            )
        settings = [pair for pair in self.settings if pair.differs]
        names = ", ".join(pair.names[1] for pair in settings[:4]) + (" and more" if len(settings) > 4 else "")
        sentences.append(
            f"They differ in {names}." if settings else "Their settings and inputs are the same."
        )
        changes = [pair for pair in self.correlations if pair.difference is not None]
        if changes:
            most = max(changes, key=lambda pair: abs(pair.difference or 0.0))
            evaluator, dataset, criterion, _, level, score = most.names
            sentences.append(
                f"Of {len(changes):,} correlations with human ratings that both have, "
                f"{sum((pair.difference or 0) > 0 for pair in changes):,} are higher in the second; the largest change "
                f"is {change(most.difference)} ({evaluator} {score} on {dataset}, {criterion}, {level} level)."
            )
        return sentences

    @property
    def about(self) -> list[Pair]:
        """Stage, times and version of ssrem of the runs."""
        return [Pair((key,), self.first.run[key], self.second.run[key]) for key in ABOUT]

    @property
    def settings(self) -> list[Pair]:
        """Parameters and inputs, one pair per value, nested ones included."""
        return [
            _pair((what, key), first, second)
            for what in ("parameters", "inputs")
            for key, first, second in _matched(flat(self.first.run[what]), flat(self.second.run[what]))
        ]

    @property
    def evaluators(self) -> dict[str, list[Pair]]:
        """Evaluator to its columns in both runs; of several versions in one run, the newest."""
        names = self._names
        sides = [
            {names.get(row["evaluator"], row["evaluator"]): row for row in _by_version(side.evaluators)}
            for side in self._sides
        ]
        return {
            name: [_pair((key,), first and first[key], second and second[key]) for key in OF_EVALUATOR]
            for name, first, second in _matched(*sides)
        }

    @property
    def correlations(self) -> list[Pair]:
        """Spearman's ρ of the same evaluator, whatever its version, on the same set; first and second are the rows."""
        names = self._names
        sides = [
            {
                (names.get(row["evaluator"], row["evaluator"]), *(row[key] for key in CELL)): row
                for row in _by_version(side.correlations)
            }
            for side in self._sides
        ]
        return [
            Pair(key, first, second, _difference(first and first["spearman"], second and second["spearman"]))
            for key, first, second in _matched(*sides)
        ]

    @property
    def _names(self) -> dict[str, str]:
        """If each run has a single evaluator and these differ, one name for both, so that they are matched."""
        first, second = ({str(row["evaluator"]) for row in side.evaluators} for side in self._sides)
        if len(first) == len(second) == 1 and first != second:
            both = f"{min(first)} and {min(second)}"
            return dict.fromkeys(first | second, both)
        return {}

    @property
    def tables(self) -> list[Pair]:
        """Rows of each table that the runs wrote; None if the other run wrote none, or if not known."""
        return [
            _pair((name,), first, second)
            for name, first, second in _matched(*(_counts(side.outputs) for side in self._sides))
        ]

    @property
    def gates(self) -> list[Pair]:
        """Whether each expectation held; None for a run whose gate did not check it."""
        sides = [
            {tuple(row[key] for key in GATE): bool(row["passed"]) for row in side.gates}
            for side in self._sides
        ]
        return [Pair(*matched) for matched in _matched(*sides)]

    @property
    def _sides(self) -> tuple[Side, Side]:
        return self.first, self.second


def flat(values: Any, name: str = "") -> dict[str, Any]:
    """Nested mappings as one, keys joined by dots; lists as JSON."""
    if isinstance(values, Mapping) and (values or not name):
        joined: dict[str, Any] = {}
        for key, value in values.items():
            joined |= flat(value, f"{name}.{key}" if name else str(key))
        return joined
    return {
        name: json.dumps(values, ensure_ascii=False) if isinstance(values, list | tuple | Mapping) else values
    }


def _by_version(rows: Rows) -> list[Row]:
    return sorted(rows, key=lambda row: int(row["version"]))


def _counts(outputs: Rows) -> dict[str, int | None]:
    counts: dict[str, int | None] = {}
    for row in outputs:
        known = counts.get(row["table"], 0)
        counts[row["table"]] = None if known is None or row["rows"] is None else known + row["rows"]
    return counts


def _matched(first: Mapping[Any, Any], second: Mapping[Any, Any]) -> Iterable[tuple[Any, Any, Any]]:
    for key in [*first, *(key for key in second if key not in first)]:
        yield key, first.get(key), second.get(key)


def _pair(names: tuple[Any, ...], first: Any, second: Any) -> Pair:
    return Pair(names, first, second, _difference(first, second))


def _difference(first: Any, second: Any) -> float | None:
    return second - first if is_figure(first) and is_figure(second) else None
