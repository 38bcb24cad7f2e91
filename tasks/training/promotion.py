"""Promotion: a challenger replaces the champion only if it is shown to be non-inferior."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import duckdb
import numpy as np

from ssrem.agreement.paired_bootstrap import Comparison, compare_agreement, compare_share
from ssrem.errors import EvaluatorError
from ssrem.sql import statement
from ssrem.tasks.agreement.landed_set import overall_part_of
from ssrem.tasks.stage.ledger import Recipe
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.protocol import Built, run_stage
from ssrem.tasks.stage.stage import Output, Resources, Stage
from ssrem.tasks.stage.steps import step
from ssrem.tasks.training.settings import Margins
from ssrem.tasks.training.versions import (
    known_version,
    published_keys,
    replace_promoted,
    stage_rows,
    versions,
)
from ssrem.tasks.warehouse.home import Warehouse


@dataclass(frozen=True)
class Challenge:
    """A version that waits for a decision: `version` of `evaluator` against `champion`, the version in use.

    corpora: those it learned from that have not changed since. datasets: the annotated sets that neither version
    learned from; some of them may be left out of the decision.
    """

    evaluator: str
    version: int
    champion: int
    corpora: tuple[str, ...]
    datasets: tuple[str, ...] = field(compare=False)


def challenges(home: Warehouse, names: Sequence[str] = ()) -> list[Challenge]:
    """The versions that wait for a decision, of the evaluators named or of all, oldest first."""
    with home.reader() as connection:
        landed = dict(connection.execute("SELECT corpus, sha256 FROM corpora").fetchall())
        annotated = connection.execute(
            "SELECT DISTINCT dataset, sha256 FROM rated_responses ORDER BY ALL"
        ).fetchall()
        # labels: the digests of all annotated sets that a version learned from, joined by +
        rows = connection.execute(
            "SELECT a.evaluator, a.version, b.version, a.corpora, "
            "split(concat_ws('+', a.labels, b.labels), '+') FROM evaluators AS a "
            "INNER JOIN evaluators AS b ON a.evaluator = b.evaluator AND b.promoted "
            "WHERE NOT a.promoted AND a.decided_at IS NULL ORDER BY a.trained_at, a.evaluator, a.version"
        ).fetchall()
    return [
        Challenge(
            name,
            version,
            champion,
            tuple(corpus for corpus, digest in json.loads(corpora).items() if landed.get(corpus) == digest),
            tuple(dataset for dataset, digest in annotated if digest not in learned),
        )
        for name, version, champion, corpora, learned in rows
        if not names or name in names
    ]


@step("decide")
def decide(
    challenge: Challenge, home: str, *, margins: Margins | None = None, resources: Resources | None = None
) -> tuple[bool, str]:
    """Compare the challenger with the champion by their published scores, and promote it if it is non-inferior on every
    test split and annotated set of the challenge. Both must have scored all of them; the caller leaves out sets whose
    figures cannot be published. Returns whether it was promoted, and why.
    """
    warehouse, margins = Warehouse.at(home), margins or Margins()
    name, version = challenge.evaluator, challenge.version
    parameters = {"decide": name, "version": version, "champion": challenge.champion}
    parameters["margins"] = asdict(margins)

    def decided_already(_: Recipe) -> tuple[bool, str] | None:
        """The answer if another run has decided meanwhile, or has changed the data of the comparison."""
        waits = challenge in challenges(warehouse, [name])
        return None if waits else (False, "no longer waits for this decision")

    def build(stage: Stage) -> Built[tuple[bool, str]]:
        with progress(f"comparing {name} version {version} with version {challenge.champion}"):
            comparisons = list(_comparisons(stage.connection, challenge, margins))
        promoted, why = verdict(comparisons, challenge.champion)
        decision = {
            "compared_with": challenge.champion,
            "comparison": json.dumps([asdict(comparison) for comparison in comparisons]),
            "decided_at": stage.now(),
            "why": why,
        }
        return Built((promoted, why), _outputs(stage, name, version, decision, promoted))

    return run_stage(
        warehouse, "train", lambda: Recipe(parameters, {}), build, done=decided_already, resources=resources
    )


@step("promote")
def promote(
    name: str, version: int | None, home: str, *, resources: Resources | None = None
) -> tuple[int, int | None]:
    """Promote a version by hand: `version` or, for None, the one that was in use before.

    Returns the version and the one that it replaces; None for the latter if it was in use already, for example by a
    rollback that was killed before it updated the rankings. Raises EvaluatorError if it does not exist.
    """
    warehouse = Warehouse.at(home)

    def choice() -> tuple[int, int | None]:
        """The version to promote, and the one in use."""
        rows = versions(warehouse, name)
        used = next((row["version"] for row in rows if row["promoted"]), None)
        if version is None and used is not None and _halfway_rolled_back(warehouse, name, used):
            return used, used
        chosen = _before(name, rows, warehouse) if version is None else version
        return known_version(warehouse, name, chosen), used

    def in_use_already(_: Recipe) -> tuple[int, int | None] | None:
        chosen, used = choice()
        return (chosen, None) if chosen == used else None

    def build(stage: Stage) -> Built[tuple[int, int | None]]:
        chosen, used = choice()
        how = "rolled back from" if version is None else "promoted by hand over"
        why = f"{how} version {used}{' by hand' if version is None else ''}"
        decision = {"why": why, "decided_at": stage.now()}
        return Built((chosen, used), _outputs(stage, name, chosen, decision, True))

    return run_stage(
        warehouse,
        "train",
        lambda: Recipe({"promote": name, "version": version}, {}),
        build,
        done=in_use_already,
        resources=resources,
    )


def verdict(comparisons: Sequence[Comparison], champion: int) -> tuple[bool, str]:
    """Whether to promote, and why, in one line."""
    decisive = [c for c in comparisons if c.not_worse is not None]
    worse = [c for c in decisive if not c.not_worse]
    if worse:
        return False, f"may be worse than version {champion} on {'; '.join(map(_figures, worse))}"
    if not decisive:
        return True, f"newest; nothing to compare it with version {champion} on"
    return True, f"not worse than version {champion} on {'; '.join(map(_figures, decisive))}"


def _figures(c: Comparison) -> str:
    if c.difference is None or c.low is None:
        return f"{c.dataset} ({c.outcome})"
    return (
        f"{c.dataset} ({c.measure} {c.champion:.3f} to {c.challenger:.3f}, difference {c.difference:+.3f}, at least "
        f"{c.low:+.3f}, margin {c.margin:g})"
    )


def _outputs(
    stage: Stage, name: str, version: int, decision: Mapping[str, Any], promoted: bool
) -> list[Output]:
    """Stage the decision about a version; returns the partitions to publish."""
    rows = versions(stage.home, name)
    row = next(r for r in rows if r["version"] == version)
    row |= decision
    if not promoted:
        return stage_rows(stage, rows, [row])
    row |= {"promoted": True, "promoted_at": decision["decided_at"]}
    return replace_promoted(stage, rows, row)


def _before(name: str, rows: Sequence[Mapping[str, Any]], home: Warehouse) -> int:
    used = [row for row in rows if row["promoted_at"] is not None and not row["promoted"]]
    if not used:
        raise EvaluatorError(
            f"no other version of {name} in {home.root} was in use before; there is nothing to roll back to"
        )
    return int(max(used, key=lambda row: row["promoted_at"])["version"])


def _halfway_rolled_back(home: Warehouse, name: str, used: int) -> bool:
    """Whether a rollback put the version into use, but the rankings of some annotated set are not updated yet."""
    runs = home.query("SELECT outputs, parameters FROM runs WHERE stage = 'train' ORDER BY started")
    changes = [how for key, how in published_keys(runs, "evaluators") if key.evaluator == name]
    rolled_back = [json.loads(how) for how in changes[-1:]] == [{"promote": name, "version": None}]
    stale = (
        "SELECT dataset FROM agreement WHERE evaluator = $name AND version = $used AND level <> 'conversation' "
        "EXCEPT SELECT dataset FROM rankings WHERE evaluator = $name AND version = $used "
        "UNION SELECT dataset FROM rankings WHERE evaluator = $name AND version <> $used"
    )
    return rolled_back and bool(home.query(stale, {"name": name, "used": used}))


def _comparisons(
    connection: duckdb.DuckDBPyConnection, challenge: Challenge, margins: Margins
) -> Iterator[Comparison]:
    name, champion = challenge.evaluator, challenge.champion
    who = {"evaluator": name, "champion": champion, "challenger": challenge.version}
    for corpus in challenge.corpora:
        query, values = statement("4_promotion/shares_above"), {**who, "dataset": corpus}
        rows = connection.execute(query, values).fetchnumpy()
        if len(rows["champion"]):
            shares = _floats(rows["champion"]), _floats(rows["challenger"])
            groups = rows["conversation_id"].astype(str)
            yield compare_share(corpus, *shares, groups, margin=margins.identification)
    for dataset in challenge.datasets:
        part = overall_part_of(connection, (name, champion), dataset)
        query, values = statement("4_promotion/agreement_pairs"), {**who, "dataset": dataset, "part": part}
        rows = connection.execute(query, values).fetchnumpy()
        if len(rows["champion"]):
            scores = _floats(rows["champion"]), _floats(rows["challenger"]), _floats(rows["human"])
            groups = rows["context"].astype(str)
            yield compare_agreement(dataset, *scores, groups, margin=margins.agreement)


def _floats(column: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan)
