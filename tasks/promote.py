"""Promotion: a challenger replaces the champion only if it is shown to be non-inferior."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import duckdb
import numpy as np

from ssrem.agreement.compare import Comparison, compare_with_champion
from ssrem.errors import EvaluatorError, say
from ssrem.evaluators import evaluator_class
from ssrem.samples import dialogue_units
from ssrem.sql import statement
from ssrem.tasks.annotated import landed_contexts, landed_sets
from ssrem.tasks.correlate import correlate_all, correlate_landed, left_out
from ssrem.tasks.score import score_test_splits
from ssrem.tasks.settings import Margins, Resources
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import Built, Output, Recipe, Stage, run_stage
from ssrem.tasks.tables import without_tables
from ssrem.tasks.versions import known_version, learned_from, of_versions, stage_rows, versions
from ssrem.tasks.warehouse.files import model_damage
from ssrem.tasks.warehouse.home import Warehouse

SERIES = 3
"""Refusals in a row from which the user is told of them: data, settings or margins may need a person's decision."""


@dataclass(frozen=True)
class Challenge:
    """A version that waits for a decision: `version` of `evaluator` against `champion`, the version in use.

    corpora: those that the version learned from and that have not changed since or, if it learned from human scores
    alone, all that have speaker tables. datasets: the annotated sets that neither version learned from; `decide_all`
    leaves out those whose figures cannot be computed.
    """

    evaluator: str
    version: int
    champion: int
    corpora: tuple[str, ...]
    datasets: tuple[str, ...] = field(compare=False)


def challenges(home: Warehouse, names: Sequence[str] = ()) -> list[Challenge]:
    """The versions that wait for a decision, of the evaluators named or of all, oldest first."""
    landed = dict(home.query("SELECT corpus, sha256 FROM corpora"))
    rows = home.query(
        "SELECT a.evaluator, a.version, b.version, a.corpora, a.labels FROM evaluators AS a "
        "INNER JOIN evaluators AS b ON a.evaluator = b.evaluator AND b.promoted "
        "WHERE NOT a.promoted AND a.decided_at IS NULL ORDER BY a.trained_at, a.evaluator, a.version"
    )
    sets = landed_sets(home) if rows else ()
    learners = {dataset: learned_from(home, landed_contexts(home, dataset)) for dataset in sets}
    unbuilt = without_tables(str(home.root), list(landed)) if rows else []
    built = {corpus: digest for corpus, digest in sorted(landed.items()) if corpus not in unbuilt}
    found = []
    for name, version, champion, corpora, labels in rows:
        own = json.loads(corpora) or (built if labels else {})
        unchanged = (corpus for corpus, digest in own.items() if landed.get(corpus) == digest)
        both = {(name, version), (name, champion)}
        unseen = (dataset for dataset, by in learners.items() if both.isdisjoint(by))
        if not names or name in names:
            found.append(Challenge(name, version, champion, tuple(unchanged), tuple(unseen)))
    return found


def decide_all(
    home: str,
    evaluators: Sequence[str] | None = None,
    margins: Margins = Margins(),
    *,
    resources: Resources = Resources(),
) -> dict[str, str]:
    """Decide on every version that waits, of the evaluators named or of all; returns `NAME VERSION` → the decision and
    its reason.

    Both versions first score the test splits of the newer one's corpora and all annotated sets.
    """
    decided = {}
    while waiting := challenges(Warehouse.at(home), evaluators or ()):
        challenge = waiting[0]  # one at a time: its decision may change what the next one is compared with
        name, both = challenge.evaluator, (challenge.champion, challenge.version)
        for version in both if "f" in evaluator_class(name).parts else ():
            score_test_splits(name, version, challenge.corpora, home, resources=resources)
        scored = []  # the annotated sets whose figures can be published
        for dataset in challenge.datasets:
            with left_out(dataset):
                correlate_landed(dataset, [(name, version) for version in both], home, resources=resources)
                scored.append(dataset)
        done, why = decide(replace(challenge, datasets=tuple(scored)), home, margins, resources=resources)
        decided[f"{name} {challenge.version}"] = f"{'promoted' if done else 'not promoted'}: {why}"
        if not done and (series := refused_in_a_row(Warehouse.at(home), [name])):
            say(
                f"{name}: the last {series[0][1]} versions were refused ({why}); ssrem evaluators promote {name} "
                f"{challenge.version} overrules, --margin changes the margins"
            )
    correlate_all(home, resources=resources)  # also for versions that came into use without a decision
    return decided


def refused_in_a_row(home: Warehouse, names: Sequence[str] = ()) -> list[tuple[str, int, str]]:
    """(evaluator, number of refusals, reason of the last one) of each evaluator, of those named or of all, of which
    SERIES or more versions were compared with the version in use and refused."""
    rows = home.query(
        "SELECT b.evaluator, count(*), arg_max(b.why, b.version) FROM evaluators AS a INNER JOIN evaluators AS b "
        "ON a.evaluator = b.evaluator AND a.version = b.compared_with WHERE a.promoted AND b.promoted_at IS NULL "
        "GROUP BY b.evaluator HAVING count(*) >= ? ORDER BY ALL",
        [SERIES],
    )
    return [row for row in rows if not names or row[0] in names]


def decide(
    challenge: Challenge, home: str, margins: Margins = Margins(), *, resources: Resources = Resources()
) -> tuple[bool, str]:
    """Compare the challenger with the champion by their published scores, and promote it if it is non-inferior on the
    pooled test splits and on every annotated set of the challenge, which both must have scored.

    Returns whether it was promoted, and why.
    """
    warehouse = Warehouse.at(home)
    name, version = challenge.evaluator, challenge.version
    about = {"decide": name, "version": version, "champion": challenge.champion}
    recipe = Recipe({**about, "margins": margins.model_dump()}, {})

    def decided_already(_: Recipe) -> tuple[bool, str] | None:  # or what it is compared on has changed
        waits = challenge in challenges(warehouse, [name])
        return None if waits else (False, "no longer waits for this decision")

    def build(stage: Stage) -> Built[tuple[bool, str]]:
        with progress(f"comparing {name} version {version} with version {challenge.champion}"):
            comparisons = list(_comparisons(stage.connection, challenge, margins))
        done, why = _verdict(comparisons, challenge.champion)
        compared = json.dumps([asdict(comparison) for comparison in comparisons])
        decision = {"compared_with": challenge.champion, "comparison": compared, "why": why}
        return Built((done, why), _decided(stage, name, version, decision, done))

    return run_stage(warehouse, "train", lambda: recipe, build, done=decided_already, resources=resources)


def promote(
    name: str, version: int | None, home: str, *, resources: Resources = Resources()
) -> tuple[int, int | None]:
    """Promote a version by hand; returns the version and the one that it replaces, None if it was in use already.

    version: None for the one that was in use before. The figures and rankings of annotated sets are updated even if the
    version was in use already. Raises EvaluatorError if the version does not exist or its model is damaged.
    """
    warehouse = Warehouse.at(home)
    rows = versions(warehouse, name)
    used = next((row["version"] for row in rows if row["promoted"]), None)
    if version is not None:
        chosen, why = known_version(warehouse, name, version), f"promoted by hand over version {used}"
    elif before := [row for row in rows if row["promoted_at"] is not None and not row["promoted"]]:
        chosen = max(before, key=lambda row: row["promoted_at"])["version"]
        why = f"rolled back from version {used} by hand"
    else:
        raise EvaluatorError(f"no other version of {name} in {home} was in use; nothing to roll back to")

    if damage := model_damage(warehouse.models, name, chosen):
        raise EvaluatorError(f"{name} version {chosen}: {damage}")

    def build(stage: Stage) -> Built[tuple[int, int | None]]:
        return Built((chosen, used), _decided(stage, name, chosen, {"why": why}, True))

    recipe = Recipe({"promote": name, "version": version}, {})
    done = (chosen, None) if chosen == used else None
    answer = run_stage(warehouse, "train", lambda: recipe, build, done=lambda _: done, resources=resources)
    correlate_all(home, resources=resources)  # the versions that are compared have changed
    return answer


def retire(home: str, keep: int, *, resources: Resources = Resources()) -> int:
    """Delete old versions with their scores and figures; returns how many. `prune` deletes their models.

    Of each evaluator stay the version in use, the one that was in use before it, those that wait for a decision, and
    the newest `keep` (at least one, so that `retrain` sees what was tried) of the others.
    """
    warehouse = Warehouse.at(home)

    def old() -> list[tuple[str, int]]:
        return warehouse.query(
            "WITH others AS (FROM evaluators WHERE NOT promoted AND decided_at IS NOT NULL "
            "QUALIFY coalesce(promoted_at < max(promoted_at) OVER (PARTITION BY evaluator), true)) "
            "SELECT evaluator, version FROM others "
            "QUALIFY row_number() OVER (PARTITION BY evaluator ORDER BY version DESC) > ?",
            [keep],
        )

    def build(_: Stage) -> Built[int]:
        gone = old()
        return Built(len(gone), retired=of_versions(warehouse, gone))

    def nothing_old(_: Recipe) -> int | None:
        return None if old() else 0

    recipe = Recipe({"retire": keep}, {})
    return run_stage(warehouse, "train", lambda: recipe, build, done=nothing_old, resources=resources)


def _decided(
    stage: Stage, name: str, version: int, decision: Mapping[str, Any], promoted: bool
) -> list[Output]:
    """Stage the decision about a version; returns the partitions to publish."""
    rows, now = versions(stage.home, name), stage.now()
    row = next(row for row in rows if row["version"] == version)
    row |= {**decision, "decided_at": now, **({"promoted": True, "promoted_at": now} if promoted else {})}
    return stage_rows(stage, rows, row)


def _verdict(comparisons: Sequence[Comparison], champion: int) -> tuple[bool, str]:
    """Whether to promote, and why, in one line."""
    decisive = [c for c in comparisons if c.not_worse is not None]
    if not decisive:
        return True, f"newest; nothing to compare it with version {champion} on"
    worse = [c for c in decisive if not c.not_worse]
    verdict = "may be worse than" if worse else "not worse than"
    return not worse, f"{verdict} version {champion} on {'; '.join(map(_figures, worse or decisive))}"


def _figures(c: Comparison) -> str:
    if c.difference is None or c.low is None:
        return f"{c.dataset} ({c.outcome})"
    return (
        f"{c.dataset} ({c.measure} {c.champion:.3f} to {c.challenger:.3f}, difference {c.difference:+.3f}, at least "
        f"{c.low:+.3f}, margin {c.margin:g})"
    )


def _comparisons(
    connection: duckdb.DuckDBPyConnection, challenge: Challenge, margins: Margins
) -> Iterator[Comparison]:
    name, champion = challenge.evaluator, challenge.champion
    who = {"evaluator": name, "champion": champion, "challenger": challenge.version}

    def columns(query: str, *names: str, **values: Any) -> list[Any]:
        found = connection.execute(statement(f"4_promotion/{query}"), {**who, **values}).fetchnumpy()
        scores = (found[column] for column in ("champion", "challenger", *names[1:]))
        floats = (np.ma.filled(np.ma.asarray(one, dtype=np.float64), np.nan) for one in scores)
        return [*floats, found[names[0]]]

    # Corpora are pooled, since a small corpus alone can never show that a challenger is not worse.
    splits = []
    for corpus in challenge.corpora:
        *shares, units = columns("shares_above", "unit", dataset=corpus)
        if len(units):
            splits.append((corpus, [*shares, np.char.add(f"{corpus}/", units.astype(str))]))
    if splits:
        pool = [np.concatenate(column) for column in zip(*(split for _, split in splits), strict=True)]
        dataset = splits[0][0] if len(splits) == 1 else f"{len(splits)} corpora"
        yield compare_with_champion(dataset, *pool, margin=margins.identification)
    for dataset in challenge.datasets:
        old, new, human, contexts = columns("agreement_pairs", "context", "human", dataset=dataset)
        if len(human):
            groups = np.array(dialogue_units(contexts))
            yield compare_with_champion(dataset, old, new, groups, human=human, margin=margins.agreement)
