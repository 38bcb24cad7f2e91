"""Stage `correlate`: lands and scores an annotated set, and publishes every figure of agreement with its human
scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import comb
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ssrem.agreement.compare import PERMUTATIONS, paired_bootstrap, perm_both, ranking
from ssrem.agreement.correlate import MIN_SYSTEMS, Floats, View, columns
from ssrem.agreement.figures import LEVELS, RESAMPLES, SEED, figures
from ssrem.agreement.raters import rater_figures, reliability_figures, without_outliers
from ssrem.errors import AnnotationError, EvaluatorError, GateError, say
from ssrem.evaluators import PARTS, evaluator_class, load_evaluator, overall_part
from ssrem.evaluators.base import EMPTY_CONTEXT, EMPTY_RESPONSE, NO_REFERENCE
from ssrem.evaluators.judge.endpoint import Client
from ssrem.evaluators.judge.judge import judgments
from ssrem.tasks.annotated import (
    AnnotatedFile,
    LandedSet,
    annotated_file,
    landed_contexts,
    landed_set,
    landed_sets,
)
from ssrem.tasks.endpoints import asks, connected
from ssrem.tasks.score import corpora_of, figure_row, score_samples, weights_of
from ssrem.tasks.settings import AgreementSettings, AnnotatedSets, Resources
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import Built, Output, Recipe, Stage, already_done, last_parameters, run_stage
from ssrem.tasks.versions import Version, learned_from, version_outputs
from ssrem.tasks.warehouse.catalog import Address, PartitionKey
from ssrem.tasks.warehouse.home import Warehouse

SET_TABLES = ("comparisons", "rankings", "rater_agreement")
"""Tables whose partition covers all evaluators of an annotated set."""

DRAWS_A_PAIR = 50
"""Draws for each pair of evaluators: with Holm's correction over m pairs, the smallest p, 2 / (draws + 1), can be below
.05 from 40 draws for each pair."""

AT_FIRST = {
    "keep_ground_truth": False,
    "force_systems": False,
    "test": "paired-bootstrap",
}
"""Default options of a set's first run, by field of `AgreementSettings`; later runs default to the last run's."""

Rows = list[dict[str, Any]]

LANDED_TABLES = ("rated_responses", "ratings", "human_scores")
SET_ERRORS = (AnnotationError, EvaluatorError, GateError)
"""Errors about one annotated set whose figures cannot be computed or published; other sets do not depend on it."""


def correlate(
    file: str,
    versions: Sequence[Version],
    home: str,
    sets: AnnotatedSets = AnnotatedSets(),
    settings: AgreementSettings = AgreementSettings(),
    *,
    client: Client | None = None,
    resources: Resources = Resources(),
) -> tuple[str, bool]:
    """Land the annotated set, score it with the evaluator versions and publish their agreement with people; returns its
    name and whether anything was new.

    file: a file, or the name of a pulled set. client: HTTP client through which judges query their endpoints. Versions
    that learned from the set's human scores are left out. Ground truth is scored even where it is not correlated.
    Raises AnnotationError if the set cannot be read, or if other content of that name has landed and `sets.replace` is
    not set; EvaluatorError if all versions are left out.
    """
    warehouse = Warehouse.at(home)
    source = annotated_file(warehouse, file, sets.layout, sets.map)
    dataset = source.name
    warehouse = warehouse.anew(dataset=dataset)
    seen = learned_from(warehouse, source.contexts)
    left = [one for one in versions if one in seen]
    job = _Job(warehouse, dataset, versions, source, sets.replace, settings, client)
    job.landed()  # raises its error before how the set was read is printed
    source.say_how_read()
    for name, number in left:
        say(f"{name} is left out: version {number} learned human scores of the contexts of {dataset}")
    if left and len(left) == len(versions):
        raise EvaluatorError(
            f"{dataset}: every evaluator has learned from its human scores; name another one"
        )
    return dataset, job.run(resources)


def correlate_files(
    files: Sequence[str],
    versions: Sequence[Version],
    home: str,
    sets: AnnotatedSets = AnnotatedSets(),
    settings: AgreementSettings = AgreementSettings(),
    *,
    client: Client | None = None,
    resources: Resources = Resources(),
    correlate: Callable[..., tuple[str, bool]] = correlate,
) -> dict[str, bool]:
    """Correlate annotated sets one by one; returns for each whether anything was new.

    correlate: the function that is called for each set, such as a task of a flow. Every set is tried; failures are
    printed, one line each, except for the last one, which is raised.
    """
    new: dict[str, bool] = {}
    failed: list[Exception] = []
    for file in files:
        try:
            new.update([correlate(file, versions, home, sets, settings, client=client, resources=resources)])
        except SET_ERRORS as error:
            failed.append(error)
    for one in failed[:-1]:
        say(str(one))
    if failed:
        raise failed[-1]
    return new


def correlate_landed(
    dataset: str, versions: Sequence[Version], home: str, *, resources: Resources = Resources()
) -> bool:
    """Update a landed set without its file; returns whether anything was new. Missing scores of the given versions
    are added; the figures of all versions that scored the set are recomputed with the options of its last run."""
    return _Job(Warehouse.at(home).anew(dataset=dataset), dataset, versions).run(resources)


def correlate_all(home: str, *, resources: Resources = Resources()) -> list[str]:
    """Update the scores and figures of every annotated set; returns the names of the sets that were out of date. Each
    set is scored by the versions in use of evaluators that scored it before, except those that query an endpoint."""
    outdated, warehouse = [], Warehouse.at(home)
    in_use = warehouse.in_use()
    for dataset in landed_sets(warehouse):
        known = {name for name, _ in _intact(warehouse, "scores", dataset)}
        versions = [one for one in in_use if one[0] in known and not asks(warehouse, *one)]
        with left_out(dataset):
            if correlate_landed(dataset, versions, home, resources=resources):
                outdated.append(dataset)
    return outdated


@contextmanager
def left_out(dataset: str) -> Iterator[None]:
    """Print SET_ERRORS of a block about one annotated set instead of raising them, so that other sets go on."""
    try:
        yield
    except SET_ERRORS as error:
        say(f"{dataset} is left out: {error}")


@dataclass(frozen=True)
class _Job:
    """The job to land an annotated set, unless it has landed, and to bring its scores and figures up to date.

    versions: evaluators to score it with, besides those that have scored it. source: the set as it was read, None for a
    landed set. replace: whether it may take the place of other content of that name. settings: None keeps those of the
    last run. client: HTTP client through which judges query their endpoints.
    """

    home: Warehouse
    dataset: str
    versions: Sequence[Version]
    source: AnnotatedFile | None = None
    replace: bool = False
    settings: AgreementSettings | None = None
    client: Client | None = None

    def run(self, resources: Resources) -> bool:
        """Run the stage; returns whether anything was new."""
        return run_stage(self.home, "correlate", self.recipe, self.build, done=self.done, resources=resources)

    def recipe(self) -> Recipe:
        """What determines the figures: the set's content, the versions and the options, as chosen or as before."""
        source, landed = self.source, self.landed()
        last = last_parameters(self.home, self.dataset, "correlate")
        chosen = self.settings.model_dump(exclude_none=True) if self.settings else {}
        scored = {*_intact(self.home, "scores", self.dataset), *self.versions}
        contexts = source.contexts if source else landed_contexts(self.home, self.dataset)
        versions = scored - learned_from(self.home, contexts)
        in_use = self.home.in_use()
        parameters = {
            "dataset": self.dataset,
            "evaluators": sorted(versions),
            "in_use": [version for version in in_use if version in versions],
            **{name: chosen.get(name, last.get(name, first)) for name, first in AT_FIRST.items()},
            "resamples": RESAMPLES,
            "seed": SEED,
        }
        # The path is left out, since a copy elsewhere is the same set.
        return Recipe(parameters, {self.dataset: source.digest if source else landed})

    def landed(self) -> str | None:
        """Digest of the content that has landed under the name; None if there is none, or some of it is damaged.

        Raises AnnotationError if the source has other content and `replace` is not set.
        """
        landed = landed_sets(self.home).get(self.dataset)
        if self.source and landed not in (None, self.source.digest) and not self.replace:
            raise AnnotationError(
                f"{self.source.path}: another annotated set named {self.dataset!r} is in {self.home.root}; replace it "
                "with --replace, or rename the file to keep both"
            )
        tables = {p.table for p in self.home.partitions() if p.key == PartitionKey(dataset=self.dataset)}
        return landed if tables.issuperset(LANDED_TABLES) else None

    def done(self, recipe: Recipe) -> bool | None:
        """False if scores and figures of the recipe are published, else None; AnnotationError if the set has not
        landed."""
        if recipe.inputs[self.dataset] is None:
            raise AnnotationError(f"no annotated set {self.dataset!r} has landed in {self.home.root}")
        return None if self.outdated(recipe) or not already_done(self.home, "correlate", recipe) else False

    def outdated(self, recipe: Recipe) -> list[Version]:
        """Versions of the recipe whose scores or figures are missing, or whose figures are older than their scores; all
        versions if the set is new or replaced, or if options or draws have changed."""
        wanted, last = recipe.parameters, last_parameters(self.home, self.dataset, "correlate")
        of_set = ("keep_ground_truth", "force_systems", "resamples", "seed")
        same = all(wanted[name] == last.get(name) for name in of_set)
        if not same or self.landed() != recipe.inputs[self.dataset]:
            return list(wanted["evaluators"])
        scored, measured = (_intact(self.home, table, self.dataset) for table in ("scores", "agreement"))
        return [
            version
            for version in wanted["evaluators"]
            if version not in scored or measured.get(version, "") < scored[version]
        ]

    def build(self, stage: Stage) -> Built[bool]:
        """Stage the set, unless it has landed, with the missing scores and the outdated figures."""
        dataset, source = self.dataset, self.source
        landed, outdated = self.landed(), self.outdated(stage.recipe)
        outputs: list[Output] = []
        retired: list[Address] = []
        scored = _intact(self.home, "scores", dataset)
        if source and source.digest != landed:
            outputs = _stage_set(stage, source, dataset)
            if landed:  # the set is replaced, and nothing of it stays
                scored, retired = {}, [p.address for p in stage.partitions if p.key.dataset == dataset]
        data = landed_set(stage.connection, dataset)
        unscored = [version for version in outdated if version not in scored]
        outputs += _stage_scores(stage, data, unscored, self.client)
        with progress(f"measuring agreement on {dataset}"), threadpool_limits(1, "blas"):
            outputs += _stage_figures(stage, data, outdated, unscored)
        return Built(True, outputs, retired=retired)


def _intact(home: Warehouse, table: str, dataset: str) -> dict[Version, str]:
    """Version → the run that published its partition of the table for the set, if the partition is intact.

    home: that of the job, `home.anew(dataset=dataset)`, which leaves out the damaged partitions of the set.
    """
    return {
        (p.key.evaluator, p.key.version): p.run
        for p in home.partitions()
        if p.table == table and p.key.dataset == dataset
        if p.key.evaluator is not None and p.key.version is not None
    }


def _stage_set(stage: Stage, source: AnnotatedFile, dataset: str) -> list[Output]:
    """Stage the responses, their ratings, and the human scores that these add up to."""
    responses, ratings = Rows(), Rows()
    for number, row in enumerate(source.read.rows):
        about = {"dataset": dataset, "response_id": str(number)}
        own = {"context": list(row.context), "ground_truth": row.ground_truth, "sha256": source.digest}
        responses.append({**vars(row), **own, **about})
        ratings += [
            {**about, "criterion": criterion, "rater": rater, "score": score}
            for criterion, scores in row.ratings.items()
            for rater, score in enumerate(scores)
            if score is not None
        ]
    stage.create_from_rows("rated_responses", responses)
    stage.create_from_rows("ratings", ratings)
    stage.create("human_scores", "3_agreement/human_scores", dataset=dataset)
    return [Output(table, PartitionKey(dataset=dataset)) for table in LANDED_TABLES]


def _stage_scores(
    stage: Stage, data: LandedSet, versions: Sequence[Version], client: Client | None
) -> list[Output]:
    """Score the set with the versions, and stage `scores` and, for versions that ask an endpoint, `judgments`."""
    if not versions:
        return []
    import pyarrow as pa

    dataset, answers = data.dataset, Rows()
    scores = score_samples(stage.home, versions, data.samples, dataset, client)
    asked = [version for version in versions if asks(stage.home, *version)]
    referenced = np.array([bool((sample.reference or "").strip()) for sample in data.samples])
    stage.create("scores")
    for (name, number), of_version in zip(versions, scores, strict=True):
        texts = (EMPTY_RESPONSE, EMPTY_CONTEXT, NO_REFERENCE, "")  # faults of the set, not of the evaluator
        counts = Counter(why.partition(":")[0] for why in of_version.reasons.tolist() if why not in texts)
        if counts:
            listed = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
            of = f"{len(data.samples):,} responses of {dataset}"
            say(f"{name}: {counts.total():,} of {of} have no score: {listed}")
        # A part that a response cannot have is null; NaN where there should be a number stays, and the gate refuses it.
        own, scored = evaluator_class(name).parts, of_version.reasons == ""
        has = {part: scored & (part in own) & (referenced | (part == "f")) for part in PARTS}
        has |= {f"{part}_unit": has[part] & ("h" in own) for part in ("f", "g")}  # scaled, to be mixed into h
        about = {"evaluator": name, "version": number, "dataset": dataset}
        about["learned_from"] = corpora_of(stage.connection, (name, number))
        constants = {**about, "kind": "response", "k": 0}
        rows = {column: pa.repeat(value, len(scored)) for column, value in constants.items()}
        rows |= {part: pa.array(getattr(of_version, part), mask=~there) for part, there in has.items()}
        ids = list(map(str, range(len(scored))))
        stage.insert("scores", pa.table({**rows, "response_id": ids, "truncated": of_version.truncated}))
        if (name, number) in asked:
            folder = stage.home.models / name / str(number)
            evaluator = connected(load_evaluator(folder), stage.home)
            given = judgments(evaluator, data.samples)
            answers += [{**about, **row, "response_id": str(row["row"])} for row in given]
    if asked:
        stage.create_from_rows("judgments", answers)
    return [
        *version_outputs("scores", versions, dataset=dataset),
        *version_outputs("judgments", asked, dataset=dataset),
    ]


def _stage_figures(
    stage: Stage, data: LandedSet, outdated: Sequence[Version], staged: Collection[Version]
) -> list[Output]:
    """Stage the figures of the outdated versions and the tables of the whole set. staged: the versions whose scores are
    staged; the scores of the others are read from the published tables."""
    options = stage.recipe.parameters

    def scores(version: Version) -> dict[str, Floats]:
        return data.scores(version, "main.scores" if version in staged else "published.scores")

    rows = Rows()
    for version in outdated:
        rows += _figure_rows(data, version, scores(version), options)
    stage.create_from_rows("agreement", rows)
    in_use = {version: scores(version) for version in options["in_use"]}
    compared, ranked = _comparison_rows(data, in_use, kept=options["keep_ground_truth"], test=options["test"])
    stage.create_from_rows("comparisons", compared)
    stage.create_from_rows("rankings", ranked)
    stage.create_from_rows("rater_agreement", list(_rater_rows(data, options["keep_ground_truth"])))
    of_set = [Output(table, PartitionKey(dataset=data.dataset)) for table in SET_TABLES]
    return version_outputs("agreement", outdated, dataset=data.dataset) + of_set


def _figure_rows(
    data: LandedSet, version: Version, scores: Mapping[str, Floats], options: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Rows of `agreement` for a version: how each part of its score agrees with each kind of human score."""
    kept, forced = options["keep_ground_truth"], options["force_systems"]
    weights = weights_of(data.connection, version)
    about = {"dataset": data.dataset, "ground_truth_kept": kept}
    # Scores are the outer loop, since the cached pairs of one score are compared with all human scores.
    for (score, values), (of, human) in product(scores.items(), data.human_scores().items()):
        own = {**about, "criterion": of[0], "aggregation": of[1], "score": score}
        responses = data.responses(values, human, ground_truth_kept=kept)
        for figure in figures(responses, force=forced, slow=of[1] == "mean"):
            yield figure_row(version, figure, weights, data.sha256, own, "ground-truth")


def _rater_rows(data: LandedSet, ground_truth_kept: bool) -> Iterator[dict[str, Any]]:
    """Rows of `rater_agreement`, for the responses that evaluators are compared on and for all responses, each before
    and after the removal of outliers."""
    for criterion, table in data.ratings().items():
        compared = table if ground_truth_kept else np.where(data.truth, np.nan, table)
        for responses, rated in (("compared", compared), ("all", table)):
            for outliers, left in (("kept", rated), ("removed", without_outliers(rated))):
                every = responses == "compared" and outliers == "kept"
                counted = int((~np.isnan(left)).sum())
                about = {"dataset": data.dataset, "criterion": criterion, "ratings": counted}
                about |= {"responses": responses, "outliers": outliers}
                about["removed"] = int((~np.isnan(rated)).sum()) - counted
                for figure in rater_figures(left, seed=SEED) if every else reliability_figures(left):
                    yield {**about, **vars(figure), "reason": figure.reason or None}


def _comparison_rows(
    data: LandedSet, scores: Mapping[Version, Mapping[str, Floats]], *, kept: bool, test: str
) -> tuple[Rows, Rows]:
    """Rows of `comparisons` and of `rankings`, for every criterion at segment and system level.

    Evaluators are compared by Spearman's ρ of the mean human score and their overall score, as `ssrem score` gives it,
    on the responses that all of them scored. scores: version → part → values (n,); versions without scores are left
    out, and so is the system level if there are too few systems. kept: whether ground truth is compared, too.
    """
    chosen: dict[str, tuple[str, int, str]] = {}
    values: dict[str, Floats] = {}
    counted = ~data.truth | kept
    for version, parts in scores.items():
        if parts:
            part = overall_part({part: int((~np.isnan(own[counted])).sum()) for part, own in parts.items()})
            who = "@".join(map(str, version))
            chosen[who], values[who] = (*version, part), parts[part]
    compared, ranked = Rows(), Rows()
    draws = DRAWS_A_PAIR * comb(len(values), 2)
    means = [(of, human) for of, human in data.human_scores().items() if of[1] == "mean" and chosen]
    for ((criterion, aggregation), human), level in product(means, LEVELS):
        sets = {who: data.responses(own, human, ground_truth_kept=kept) for who, own in values.items()}
        if level == "system":
            sets = {who: one.of_systems for who, one in sets.items()}
        any_set = next(iter(sets.values()))
        if level == "system" and len(set(any_set.systems or ())) < MIN_SYSTEMS:
            continue
        bound: dict[str, Any] = {"human": any_set.human, "seed": SEED}
        bound["systems"] = any_set.systems if level == "system" else None
        if test == "perm-both":
            tested = partial(perm_both, **bound, level=level, permutations=max(PERMUTATIONS, draws))
        else:
            bound |= {"contexts": any_set.units, "view": View("spearman", level), "known": {}}
            tested = partial(paired_bootstrap, **bound, resamples=max(RESAMPLES, draws))
        of_all = {who: one.scores for who, one in sets.items()}
        result = ranking(of_all, tested)
        about = {"dataset": data.dataset, "criterion": criterion, "aggregation": aggregation}
        about |= {"level": level, "test": test, "measure": "spearman"}
        for pair in result.compared:  # keys that are not columns of the table are ignored
            found = pair.difference
            row = {**about, **vars(found), "p_holm": pair.corrected, "reason": found.reason or None}
            row |= {"first_statistic": found.first, "second_statistic": found.second}
            for side, who in (("first", pair.better), ("second", pair.worse)):
                row |= zip((side, f"{side}_version", f"{side}_score"), chosen[who], strict=True)
            compared.append(row)
        placed = [of.evaluator for of in result.ranked if of.statistic is not None]
        shared = len(columns(*(of_all[one] for one in placed or of_all))[0])
        for place, of in enumerate(result.ranked, 1):
            row = {**about, **vars(of), "n": shared, "reason": of.reason or None}
            row |= zip(("evaluator", "version", "score"), chosen[of.evaluator], strict=True)
            ranked.append(row | {"place": None if of.statistic is None else place})
    return compared, ranked
