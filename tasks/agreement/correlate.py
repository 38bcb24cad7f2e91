"""Stage `correlate`: lands and scores an annotated set, and publishes every figure of agreement with its human
scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from threadpoolctl import threadpool_limits

from ssrem.agreement.figures import RESAMPLES, SEED
from ssrem.errors import AnnotationError, EvaluatorError, GateError, say
from ssrem.tasks.agreement.annotated_sets import AnnotatedFile, annotated_file
from ssrem.tasks.agreement.landed_set import (
    Options,
    landed_sets,
    published_options,
    published_test,
    rating_rows,
    response_rows,
    scored_set,
)
from ssrem.tasks.agreement.set_figures import stage_figures
from ssrem.tasks.agreement.set_scores import stage_scores
from ssrem.tasks.ingest.dataset_names import checked_name
from ssrem.tasks.scoring.endpoint_requests import why_marked, why_private
from ssrem.tasks.scoring.signatures import Version
from ssrem.tasks.stage.ledger import Recipe, already_done
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.protocol import Built, run_stage
from ssrem.tasks.stage.stage import Output, Resources, Stage
from ssrem.tasks.stage.steps import step
from ssrem.tasks.warehouse.clock import utc_now
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.incidents import log_incident
from ssrem.tasks.warehouse.partition import PartitionKey

LANDED_TABLES = ("rated_responses", "ratings", "human_scores")
SET_ERRORS = (AnnotationError, EvaluatorError, GateError)
"""Errors about one annotated set whose figures cannot be computed or published; other sets do not depend on it."""


@step("correlate")
def correlate(
    file: str,
    evaluators: Sequence[Version],
    home: str,
    *,
    ground_truth_kept: bool = False,
    systems_forced: bool | None = None,
    test: str | None = None,
    permutations: int | None = None,
    layout: str | None = None,
    mapping: Mapping[str, str] | None = None,
    replace: bool = False,
    resources: Resources | None = None,
) -> tuple[str, bool]:
    """Land the annotated set, score it with the evaluators (name, version) and publish their agreement with people;
    returns its name and whether anything was new.

    file: a file, a folder, or the name of a pulled set. ground_truth_kept: compare ground-truth rows too, which are
    scored in any case. systems_forced: compute figures at system level even of too few systems. test: compares the
    evaluators, one of `TESTS` of pairwise. permutations: of the test of no agreement behind p_permuted.
    None for one of these three: as in the set's last run, at first False, DEFAULT_TEST and 0. layout, mapping: as
    `read_set` takes them. replace: a set of that name with other content is replaced, and scored again by all
    evaluators that scored it. Raises AnnotationError if the set cannot be read, or, without `replace`, such a set
    has landed.
    """
    warehouse = Warehouse.at(home)
    source = annotated_file(warehouse, file, layout, mapping)
    dataset = checked_name(source.name, "an annotated set", "rename the file", AnnotationError)
    options = dict.fromkeys(evaluators, ground_truth_kept)
    chosen = {"systems_forced": systems_forced, "test": test, "permutations": permutations}
    job = _Job(warehouse, dataset, options, chosen, source, replace)
    job.check_name()
    source.say_how_read()
    return dataset, job.run(resources)


@step("correlate landed set")
def correlate_landed(
    dataset: str,
    evaluators: Sequence[Version],
    home: str,
    *,
    resources: Resources | None = None,
) -> bool:
    """Update a landed set without its file: missing scores of the evaluators (name, version), and the figures of all
    evaluators that scored it, with the options of their last run. Returns whether anything was new."""
    return _Job(Warehouse.at(home), dataset, dict.fromkeys(evaluators), {}, None).run(resources)


def correlate_all(home: str, *, resources: Resources | None = None) -> list[str]:
    """Update the figures of every annotated set; returns the names of those that were out of date."""
    with Warehouse.at(home).reader() as connection:
        names = list(landed_sets(connection))
    outdated = []
    for dataset in names:
        with left_out(home, dataset):
            if correlate_landed(dataset, [], home, resources=resources):
                outdated.append(dataset)
    return outdated


@contextmanager
def left_out(home: str, dataset: str) -> Iterator[None]:
    """Catch SET_ERRORS of a block about one annotated set: they are printed and logged, and other sets go on."""
    try:
        yield
    except SET_ERRORS as error:
        message = f"{dataset} is left out: {error}"
        log_incident(Warehouse.at(home).root, utc_now(), message)
        say(message)


@dataclass(frozen=True)
class _Job:
    """An annotated set to land, if it has not, and whose scores and figures to bring up to date.

    wanted: version → whether its figures include ground truth; chosen: option → its value; None in either: as in the
    last run. source: None for a landed set. replace: whether it may take the place of other content of that name.
    outdated: the versions to score or measure, filled by `done`.
    """

    home: Warehouse
    dataset: str
    wanted: Mapping[Version, bool | None]
    chosen: Mapping[str, bool | str | int | None]
    source: AnnotatedFile | None
    replace: bool = False
    outdated: list[Version] = field(default_factory=list)

    def run(self, resources: Resources | None) -> bool:
        """Whether anything was new."""
        return run_stage(self.home, "correlate", self.recipe, self.build, done=self.done, resources=resources)

    def recipe(self) -> Recipe:
        """What determines the figures: the set's content, the versions and the options, as wanted or as before."""
        dataset, source = self.dataset, self.source
        self.check_name()
        with self.home.reader() as connection:
            digest = source.digest if source else landed_sets(connection).get(dataset)
            options = published_options(connection, dataset)
            test = published_test(connection, dataset)
            in_use = connection.execute(
                "SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL"
            ).fetchall()
        before = {
            "systems_forced": any(one.systems_forced for one in options.values()),
            "test": test,
            "permutations": max((one.permutations for one in options.values()), default=0),
        }
        versions = {
            version: options.get(version, Options()).ground_truth_kept
            for version in (*_intact(self.home, "scores", dataset), *self.wanted)
        }
        versions |= {version: kept for version, kept in self.wanted.items() if kept is not None}
        parameters = {
            "dataset": dataset,
            "evaluators": [list(version) for version in sorted(versions)],
            "ground_truth_kept": [list(version) for version in sorted(versions) if versions[version]],
            "in_use": [list(version) for version in in_use if version in versions],
            **before,
            **{option: value for option, value in self.chosen.items() if value is not None},
            "resamples": RESAMPLES,
            "seed": SEED,
        }
        if (source and why_marked(source.path, dataset)) or why_private(self.home, dataset):
            parameters["private"] = True
        return Recipe(parameters, {dataset: digest})  # without its path: a copy elsewhere is the same set

    @property
    def landed(self) -> str | None:
        """Digest of the content that has landed under the name."""
        with self.home.reader() as connection:
            return landed_sets(connection).get(self.dataset)

    @property
    def replaces(self) -> bool:
        """Whether other content of that name has landed, which the source replaces."""
        return self.source is not None and self.landed not in (None, self.source.digest)

    def check_name(self) -> None:
        """AnnotationError where other content of that name has landed, and is not to be replaced."""
        if self.source and self.replaces and not self.replace:
            raise AnnotationError(
                f"{self.source.path}: another annotated set named {self.dataset!r} is in {self.home.root}; replace it "
                "with --replace, or rename the file to keep both"
            )

    def done(self, current: Recipe) -> bool | None:
        """False where scores and figures of this recipe are published; AnnotationError if the set has not landed."""
        if current.inputs[self.dataset] is None:
            raise AnnotationError(f"no annotated set {self.dataset!r} has landed in {self.home.root}")
        outdated = current.parameters["evaluators"] if self.replaces else _outdated(self.home, current)
        self.outdated[:] = [(name, number) for name, number in outdated]
        return None if self.outdated or not already_done(self.home, "correlate", current) else False

    def build(self, stage: Stage) -> Built[bool]:
        """Stage the set, unless it has landed, with the missing scores and the outdated figures."""
        dataset, source = self.dataset, self.source
        outputs: list[Output] = []
        replaces, landed = self.replaces, self.landed
        if source is not None and (replaces or landed is None):
            rows = source.read.rows
            stage.create_from_rows("rated_responses", list(response_rows(dataset, source.digest, rows)))
            stage.create_from_rows("ratings", list(rating_rows(dataset, rows)))
            stage.create("human_scores", "3_agreement/human_scores", dataset=dataset)
            outputs += [Output(table, PartitionKey(dataset=dataset)) for table in LANDED_TABLES]
        data = scored_set(stage.connection, dataset)
        assert data is not None  # it has landed, or just been staged
        scored = {} if replaces else _intact(self.home, "scores", dataset)
        outputs += stage_scores(
            stage, dataset, [version for version in self.outdated if version not in scored]
        )
        with progress(f"measuring agreement on {dataset}"), threadpool_limits(1, "blas"):
            outputs += stage_figures(stage, data, self.outdated)
        outdated = [p.address for p in stage.partitions if p.key.dataset == dataset] if replaces else []
        return Built(True, outputs, retired=outdated)


def _intact(home: Warehouse, table: str, dataset: str) -> dict[Version, str]:
    """Version → the run that published its partition of the table for the set, if the partition is intact."""
    damaged = {damage.partition for damage in home.damage()}
    return {
        (p.key.evaluator, p.key.version): p.run
        for p in home.partitions()
        if p.table == table and p.key.dataset == dataset and p not in damaged
        if p.key.evaluator is not None and p.key.version is not None
    }


def _outdated(home: Warehouse, recipe: Recipe) -> list[Version]:
    """Versions of the recipe whose scores or figures are missing, or whose figures were computed before their scores,
    with other options or with other draws."""
    dataset = recipe.parameters["dataset"]
    scored, measured = (_intact(home, table, dataset) for table in ("scores", "agreement"))
    rows = home.query("SELECT run_id, parameters FROM runs WHERE stage = 'correlate'")
    parameters_of = {run: json.loads(parameters) for run, parameters in rows}
    outdated = []
    for name, number in recipe.parameters["evaluators"]:
        version, with_truth = (name, number), [name, number] in recipe.parameters["ground_truth_kept"]
        run = measured.get(version, "")
        before = parameters_of.get(run, {})
        same_options = ([name, number] in before.get("ground_truth_kept", [])) == with_truth and all(
            before.get(option) == recipe.parameters[option]
            for option in ("systems_forced", "permutations", "resamples", "seed")
        )
        if version not in scored or run < scored[version] or not same_options:
            outdated.append(version)
    return outdated
