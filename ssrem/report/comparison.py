"""Two runs side by side: settings, evaluators, correlations, tables and gates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ssrem.report.data import Row, Rows
from ssrem.report.numbers import is_figure

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
        """Whether the two values are not equal."""
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
    def about(self) -> list[Pair]:
        """Stage, times and version of ssrem of the runs."""
        return self._pairs(lambda side: {(key,): side.run[key] for key in ABOUT})

    @property
    def settings(self) -> list[Pair]:
        """Parameters and inputs, one pair per value, nested ones included."""
        return self._pairs(
            lambda side: {
                (what, name): value
                for what in ("parameters", "inputs")
                for name, value in flat(side.run[what]).items()
            }
        )

    @property
    def evaluators(self) -> dict[str, list[Pair]]:
        """Evaluator to its columns in both runs; of several versions in one run, the newest."""
        columns = self._pairs(
            lambda side: {
                (self._name(row), column): row[column]
                for row in _by_version(side.evaluators)
                for column in OF_EVALUATOR
            }
        )
        return {
            name: [Pair(p.names[1:], p.first, p.second, p.difference) for p in columns if p.names[0] == name]
            for name in dict.fromkeys(pair.names[0] for pair in columns)
        }

    @property
    def correlations(self) -> list[Pair]:
        """Spearman's ρ of the same evaluator, whatever its version, on the same set; first and second are the rows."""
        return self._pairs(
            lambda side: {
                (self._name(row), *(row[key] for key in CELL)): row for row in _by_version(side.correlations)
            },
            lambda row: row and row["spearman"],
        )

    @property
    def changes(self) -> list[Pair]:
        """The correlations that both runs have, the largest difference first."""
        both = ((abs(pair.difference), pair) for pair in self.correlations if pair.difference is not None)
        return [pair for _, pair in sorted(both, key=lambda item: item[0], reverse=True)]

    @property
    def tables(self) -> list[Pair]:
        """Rows of each table that the runs wrote; None if the other run wrote none, or if not known."""

        def counts(side: Side) -> dict[tuple[str], int | None]:
            of_table: dict[tuple[str], list[Any]] = {}
            for row in side.outputs:
                of_table.setdefault((row["table"],), []).append(row["rows"])
            return {name: None if None in rows else sum(rows) for name, rows in of_table.items()}

        return self._pairs(counts)

    @property
    def gates(self) -> list[Pair]:
        """Whether each expectation held; None for a run whose gate did not check it."""
        return self._pairs(
            lambda side: {tuple(row[key] for key in GATE): bool(row["passed"]) for row in side.gates}
        )

    def _pairs(
        self,
        values: Callable[[Side], Mapping[Any, Any]],
        figure: Callable[[Any], Any] = lambda value: value,
    ) -> list[Pair]:
        """The values of both sides by name; figure: the number of a value, of which the difference is taken."""
        first, second = values(self.first), values(self.second)
        pairs = []
        for names in dict.fromkeys([*first, *second]):
            one, other = first.get(names), second.get(names)
            a, b = figure(one), figure(other)
            pairs.append(Pair(names, one, other, b - a if is_figure(a) and is_figure(b) else None))
        return pairs

    def _name(self, row: Row) -> str:
        """Evaluator of a row. If each run has a single evaluator and these differ, one name for both matches them."""
        first, second = ({str(row["evaluator"]) for row in s.evaluators} for s in (self.first, self.second))
        both = len(first) == len(second) == 1 and first != second and row["evaluator"] in first | second
        return f"{min(first)} and {min(second)}" if both else row["evaluator"]


def flat(values: Any, name: str = "") -> dict[str, Any]:
    """Nested mappings as one, keys joined by dots; lists as JSON."""
    if isinstance(values, Mapping) and (values or not name):
        joined: dict[str, Any] = {}
        for key, value in values.items():
            joined |= flat(value, f"{name}.{key}" if name else str(key))
        return joined
    is_json = isinstance(values, list | tuple | Mapping)
    return {name: json.dumps(values, ensure_ascii=False) if is_json else values}


def _by_version(rows: Rows) -> list[Row]:
    return sorted(rows, key=lambda row: int(row["version"]))
