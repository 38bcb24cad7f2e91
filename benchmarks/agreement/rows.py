"""The computed rows, one file each: what each was made by, and whether it shows a gain."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.agreement.plan import Entry
from ssrem.agreement import Z_95
from ssrem.files import write_json
from ssrem.samples import Floats

FOLDER = Path(__file__).parent / "rows"
TOO_SMALL = "budget too small to tell"


@dataclass(frozen=True)
class ComputedRows:
    """The rows in `folder`. data: what rows are computed on now, in the form that each row keeps."""

    folder: Path
    data: Mapping[str, Any]

    def read(self, entry: Entry) -> dict[str, Any] | None:
        """The row as it was kept, current or not; None if there is none."""
        file = self.folder / f"{entry.name}.json"
        row: dict[str, Any] | None = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        return row

    def runs(self, entry: Entry) -> list[dict[str, Any]]:
        """The runs of the row, one per seed; none if the row is out of date."""
        row = self.read(entry)
        return row["runs"] if row and not self.why_outdated(entry, row) else []

    def why_outdated(self, entry: Entry, row: Mapping[str, Any]) -> str | None:
        """The first of the things that the row was made with that has changed since; None for a current row."""
        before, now = (_flat(one) for one in (row["made_by"], self._determinants(entry)))
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                return f"{name} {before.get(name)!s:.80}, now {now.get(name)!s:.80}"
        return None

    def add(self, entry: Entry, run: Mapping[str, Any], command: str) -> None:
        """Keep a run beside those of other seeds; runs that are out of date are replaced."""
        runs = [*self.runs(entry), dict(run)]
        row = {
            "row": entry.name,
            "made_by": self._determinants(entry),
            "command": command,
            "date": f"{datetime.now(UTC):%F}",
            "runs": sorted(runs, key=lambda one: one["seed"]),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f"{entry.name}.part"
        write_json(part, row)
        part.replace(self.folder / f"{entry.name}.json")

    def state(self, entry: Entry) -> str:
        """The state of the row in a few words: done, how many seeds are done, out of date and why, or missing."""
        row = self.read(entry)
        if row is None:
            return "missing"
        if why := self.why_outdated(entry, row):
            return f"out of date: {why}"
        return "done" if len(row["runs"]) >= entry.seeds else f"{len(row['runs'])} of {entry.seeds} seeds"

    def _determinants(self, entry: Entry) -> dict[str, Any]:
        data = {name: value for name, value in self.data.items() if name not in ("chitchat", "responses")}
        if entry.learn in ("corpus", "both"):
            data[entry.learns_from] = self.data[entry.learns_from]
        return {**entry.made_by, **data}


def _flat(made_by: Mapping[str, Any]) -> dict[str, Any]:
    """The determinants without inner mappings: a key for each setting and annotated set."""
    inner = {
        f"{name} {key}": at for name, of in made_by.items() if isinstance(of, dict) for key, at in of.items()
    }
    return {**{name: value for name, value in made_by.items() if not isinstance(value, dict)}, **inner}


def gain_of_share(what: str, start: float, end: float, n: int) -> dict[str, Any]:
    """The gain of a share of `n` cases over its start; low: the lower end of its 95% interval.

    The two shares are taken as independent, which makes the interval rather too wide than too narrow. A start
    that was not measured is chance, .5, which has no error, but is treated as if it were measured.
    """
    error = float(np.sqrt((start * (1 - start) + end * (1 - end)) / max(n, 1)))
    return {"what": what, "start": start, "end": end, "n": n, "low": end - start - Z_95 * error}


def paired_gain(what: str, start: Floats, end: Floats) -> dict[str, Any]:
    """The gain of the share of right cases over the start. start, end (n,): whether each case is right, 1, 0 or .5.
    low: the lower end of the 95% interval of the gain, paired by case."""
    gain, n = end - start, len(end)
    low = float(gain.mean() - Z_95 * gain.std(ddof=1) / np.sqrt(n))
    return {"what": what, "start": float(start.mean()), "end": float(end.mean()), "n": n, "low": low}


def too_small(runs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the runs show no gain of what was learned over its start beyond noise.

    True if there are gains and the lower end of the 95% interval of every one is 0 or less. For a row that learned
    from human scores, only the gains in Spearman with other human scores count. A row that learned nothing, or was not
    trained here, has no gains.
    """
    every = [gain for run in runs for gain in run.get("gains", [])]
    gains = [gain for gain in every if gain["what"].startswith("Spearman")] or every
    return bool(gains) and all(gain["low"] <= 0 for gain in gains)
