"""Stage `score`: evaluators score the test splits of corpora. Also scores any candidates and samples, in shards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import duckdb
import numpy as np

from ssrem import __version__
from ssrem.agreement.correlate import Figure
from ssrem.agreement.figures import Signature, conversation_figures, digest
from ssrem.agreement.figures import versions as program_versions
from ssrem.agreement.identify import identification
from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class, load_evaluator, usable_baselines
from ssrem.evaluators.base import Evaluator, Scores
from ssrem.evaluators.judge.endpoint import Client
from ssrem.samples import CONTEXT_ATTACK, TEST, Candidates, Floats, Sample
from ssrem.sql import statement
from ssrem.tables.builder import quoted
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.caches import cached_vectors
from ssrem.tasks.endpoints import asks, connected
from ssrem.tasks.settings import Resources
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import (
    Built,
    Output,
    Recipe,
    Stage,
    candidate_sources,
    intact,
    read_outputs,
    run_stage,
)
from ssrem.tasks.tables import build_missing
from ssrem.tasks.versions import SLOW, Version, registered, test_sample
from ssrem.tasks.warehouse.catalog import PartitionKey
from ssrem.tasks.warehouse.home import Warehouse, landed_corpora, landed_corpus

SHARD = 5_000
"""Responses of a test split, each with all of its candidates, that are scored at a time."""

UNTOUCHED_RATING = {"chitchat": 5}
"""Format → initial position of its rating sliders; a rating of that value may be an untouched one, and is excluded."""


def score_test_splits(
    name: str, version: int, corpora: Sequence[str], home: str, *, resources: Resources = Resources()
) -> list[str]:
    """Score every candidate of the corpora's test splits, and the last turn of each context, copied as a response.

    Returns the corpora whose scores are new: not those whose scores are published already, and none if the evaluator
    asks an endpoint, which would cost a request for each candidate.
    """
    warehouse = Warehouse.at(home)
    if asks(warehouse, name, version):
        return []
    sizes = dict(
        warehouse.query("SELECT corpus, count(*) FROM responses WHERE split = 'test' GROUP BY corpus")
    )
    # Small ones are scored together, as each stage has a fixed cost and a home folder may get a new corpus every day.
    batch = np.cumsum([sizes.get(corpus, 0) for corpus in corpora]) // SHARD
    new = []
    for number in np.unique(batch):
        together = [corpus for corpus, own in zip(corpora, batch, strict=True) if own == number]
        new += _score_together((name, version), together, warehouse, resources)
    return new


def _score_together(
    version: Version, corpora: Sequence[str], home: Warehouse, resources: Resources
) -> list[str]:
    """Score test splits in one stage; returns the corpora whose scores are new."""
    name, number = version
    who = {"evaluator": name, "version": number}

    def recipe() -> Recipe:
        content = {corpus: landed_corpus(home, corpus)[0] for corpus in corpora}
        sources = candidate_sources(home, corpora)
        inputs = {c: [content[c], [row for row in sources if row["corpus"] == c]] for c in corpora}
        scored = _published_inputs(home, version)
        return Recipe(who, {c: own for c, own in inputs.items() if scored.get(c) != own})

    def build(stage: Stage) -> Built[list[str]]:
        new = list(stage.recipe.inputs)
        evaluator = load_evaluator(home.models / name / str(number))
        origin = {**who, "learned_from": corpora_of(stage.connection, version)}
        stage.create("scores")
        shares, agreement = [], []
        for corpus in new:
            with progress(f"scoring the test split of {corpus} with {name}"):
                candidates = load_candidates(stage.connection, [corpus]).sampled(TEST, test_sample(evaluator))
                f = score_candidates(home, evaluator, candidates)
            _insert_scores(stage, evaluator, candidates, f, {**origin, "dataset": corpus})
            found = ({**vars(share), "gt_above": share.above} for share in identification(f))
            shares += [{**origin, "corpus": corpus, **row} for row in found]
            agreement += conversation_rows(stage.connection, version, corpus)
        stage.create_from_rows("identification", shares)
        stage.create_from_rows("agreement", agreement)
        of = {"scores": "dataset", "identification": "corpus", "agreement": "dataset"}
        return Built(
            new,
            [
                Output(
                    table,
                    PartitionKey(corpus=corpus, evaluator=name, version=number),
                    f"{column} = '{quoted(corpus)}'",
                )
                for corpus in new
                for table, column in of.items()
            ],
        )

    def nothing_new(wanted: Recipe) -> list[str] | None:
        return None if wanted.inputs else []

    return run_stage(home, "score", recipe, build, done=nothing_new, resources=resources)


def _published_inputs(home: Warehouse, version: Version) -> dict[str, Any]:
    """Corpus → the inputs from which the version's scores of it were made, if these are published and intact."""
    own = [p for p in home.partitions() if p.key.corpus and (p.key.evaluator, p.key.version) == version]
    current = intact(home, own)
    who = json.dumps({"evaluator": version[0], "version": version[1]})
    query = """
        SELECT run_id, outputs, inputs FROM runs
        WHERE stage = 'score' AND parameters = ? AND ssrem_version = ? ORDER BY started
    """
    found: dict[str, Any] = {}
    for run, outputs, inputs in home.query(query, [who, __version__]):
        gone = {key.corpus for table, key in read_outputs(outputs) if ((table, key), run) not in current}
        found |= {corpus: made_of for corpus, made_of in json.loads(inputs).items() if corpus not in gone}
    return found


def _insert_scores(
    stage: Stage,
    evaluator: Evaluator,
    candidates: Candidates,
    f: Mapping[str, Floats],
    constants: Mapping[str, Any],
) -> None:
    """Stage f of each candidate that exists. NaN is staged as well, so that the gate refuses it."""
    import pyarrow as pa

    rows = candidates.rows(TEST)
    present = {kind: drawn[rows] >= 0 for kind, drawn in candidates.negatives.items()}
    present |= {"GT": np.ones((len(rows), 1), dtype=bool), CONTEXT_ATTACK: candidates.has_context[rows, None]}
    for kind, values in f.items():
        n, k = values.shape
        at = np.flatnonzero(present[kind])
        same = {**constants, "kind": kind, "truncated": False}
        columns = {
            **{name: pa.repeat(value, len(at)) for name, value in same.items()},
            "response_id": pa.array(np.repeat(candidates.response[rows], k)[at]).cast(pa.string()),
            "k": np.tile(np.arange(k), n)[at],
            "f": values.ravel()[at],
            "f_unit": pa.array(evaluator.f_unit(values.ravel()[at]), from_pandas=True),  # NaN: not scaled
        }
        stage.insert("scores", pa.table(columns))


def score_corpora(
    home: str,
    corpora: Sequence[str] | None = None,
    evaluators: Sequence[str] | None = None,
    *,
    resources: Resources = Resources(),
) -> dict[str, list[str]]:
    """Score the test splits of corpora (default: all) with evaluators (default: all in use), whatever these learned
    from (Bak and Oh 2020, section 7); returns for each corpus the evaluators whose scores of it are new.

    An evaluator that learns nothing or comes with ssrem is registered first, and missing speaker tables are built.
    Raises EvaluatorError for a named evaluator that compares only with a reference, or asks an endpoint.
    """
    for name in evaluators or ():
        if "f" not in evaluator_class(name).parts:
            raise EvaluatorError(f"{name} compares responses with a reference alone; leave it out here")
    landed = landed_corpora(home, corpora)
    used = registered(home, evaluators or (), {}, resources=resources)
    versions = [version for version in used if "f" in evaluator_class(version[0]).parts]
    for version in versions if evaluators else ():
        if asks(Warehouse.at(home), *version):
            raise EvaluatorError(f"{version[0]} would ask an endpoint about every candidate; leave it out")
    build_missing(home, corpora or landed, resources=resources)
    new = {v: score_test_splits(*v, corpora or landed, home, resources=resources) for v in versions}
    return {corpus: [v[0] for v in versions if corpus in new[v]] for corpus in corpora or landed}


def score_baselines(home: str, *, resources: Resources = Resources()) -> dict[str, list[str]]:
    """Score the test splits of all corpora with the untrained baselines whose packages are installed, and return what
    `score_corpora` does. Comparing trained evaluators with them shows what training is worth."""
    return score_corpora(home, None, usable_baselines(), resources=resources)


def conversation_rows(
    connection: duckdb.DuckDBPyConnection, version: Version, corpus: str
) -> list[dict[str, Any]]:
    """Rows of `agreement`: how the version agrees on the corpus's test split with the ratings that participants gave to
    their conversations.

    A conversation's score is the mean f of its true responses. Conversations whose rating stayed at its default are
    left out and counted as excluded.
    """
    values = {"evaluator": version[0], "version": version[1], "corpus": corpus}
    rows = connection.execute(statement("3_agreement/conversation_scores"), values).fetchall()
    about: dict[str, Any] = {"dataset": corpus, "aggregation": "rating", "score": "f"}
    about["ground_truth_kept"] = True
    weights, found = weights_of(connection, version), []
    for criterion, group in groupby(rows, key=itemgetter(0)):
        own = list(group)
        compared = [(f, rating) for _, form, _, f, rating in own if rating != UNTOUCHED_RATING.get(form)]
        scores, ratings = np.array(compared, dtype=np.float64).reshape(-1, 2).T
        about["criterion"] = criterion
        found += [
            figure_row(version, figure, weights, own[0][2], about, "untouched-ratings")
            for figure in conversation_figures(scores, ratings, excluded=len(own) - len(compared))
        ]
    return found


def weights_of(connection: duckdb.DuckDBPyConnection, version: Version) -> str:
    """Digest of the version's signature, which stands for its weights in the signature of a figure."""
    query = "SELECT signature FROM evaluators WHERE evaluator = ? AND version = ?"
    ((signature,),) = connection.execute(query, list(version)).fetchall()  # scores refer to this row
    return digest(signature)


def corpora_of(connection: duckdb.DuckDBPyConnection, version: Version) -> str:
    """The sorted names of the corpora that the version learned from, joined by commas."""
    query = "SELECT corpora FROM evaluators WHERE evaluator = ? AND version = ?"
    ((corpora,),) = connection.execute(query, list(version)).fetchall()
    return ", ".join(sorted(json.loads(corpora)))


def figure_row(
    version: Version, figure: Figure, weights: str, data: str, about: Mapping[str, Any], excluded: str
) -> dict[str, Any]:
    """The row of `agreement` of a figure, with its signature.

    weights: as `weights_of` gives it; data: digest of the dataset; about: the columns that
    say what was compared, and with which options; excluded: what the responses are that were left out, if any were.
    """
    same = {name: about[name] for name in ("dataset", "criterion", "aggregation", "score")}
    same |= {name: getattr(figure, name) for name in ("grouping", "measure", "n", "resamples", "seed")}
    signature = Signature(
        **same | program_versions(),
        evaluator="@".join(map(str, version)),
        weights=weights,
        data=data[:16],
        level="system-forced" if figure.forced else figure.level,  # forced: too few systems
        excluded=(excluded,) if figure.excluded else (),
    )
    own = {"evaluator": version[0], "version": version[1], "reason": figure.reason or None}
    return {**about, **vars(figure), **own, "signature": str(signature)}


# Scores of any candidates and samples


def score_candidates(home: Warehouse, evaluator: Evaluator, candidates: Candidates) -> dict[str, Floats]:
    """f of the test split by kind, (n, k) each, from `evaluator.score_candidates` of some responses at a time."""
    rows = candidates.rows(TEST)
    # With a slow encoder all responses are scored at once, so that no text is encoded twice.
    at_once = evaluator.encoder is not None and evaluator.encoder.slow
    size = max(len(rows), 1) if at_once else SLOW.get(evaluator.name, (0, SHARD))[1]
    pieces = [rows[first : first + size] for first in range(0, max(len(rows), 1), size)]
    with cached_vectors(home, evaluator):
        parts = [evaluator.score_candidates(candidates.part(piece), None) for piece in pieces]
    return {kind: np.concatenate([part[kind] for part in parts]) for kind in parts[0]}


def score_samples(
    home: Warehouse,
    evaluators: Sequence[Version],
    samples: Sequence[Sample],
    what: str,
    client: Client | None = None,
) -> list[Scores]:
    """The scores that each evaluator (name, version) gives to the samples, in order of evaluators. what: the samples'
    name in the progress bar. client: HTTP client through which judges query their endpoints."""
    scores = []
    for name, version in evaluators:
        with progress(f"scoring {what} with {name}") as advance:
            evaluator = connected(load_evaluator(home.models / name / str(version)), home, client, advance)
            with cached_vectors(home, evaluator):
                scores.append(evaluator.components(samples))
    return scores
