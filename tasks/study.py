"""Study: what an evaluator's scores hang on besides quality, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prefect import task

from sql import statement
from ssrem.encoders.sources import packaged_glove
from ssrem.errors import AnnotationError, EvaluatorError
from ssrem.evaluators import evaluator_class
from ssrem.evaluators.base import TEST, Sample
from ssrem.report.data import Rows
from ssrem.report.study import figure, markdown, said
from ssrem.studies.attacks import attacks
from ssrem.studies.finding import Finding
from ssrem.studies.learned import TRANSFER
from ssrem.studies.neighbours import neighbours
from ssrem.studies.scored import SCORED, Scored
from tasks.candidates import load_candidates
from tasks.home import Home, landed_corpora
from tasks.ledger import already_done, made_by
from tasks.repair import mended
from tasks.scoring import score_samples
from tasks.stage import Output, Resources, Stage, open_stage
from tasks.study_learned import LEARNING, learned, learners
from tasks.tables import landed_corpus
from tasks.trouble import out_of_room

ATTACKS = "attacks"
STUDIES = (ATTACKS, *SCORED, *LEARNING)
"""Attacks take a corpus's true responses; the others take an annotated set that ssrem agree has landed."""


@dataclass(frozen=True)
class StudySettings:
    """responses: how many true responses are attacked, drawn by the seed from the test split; 0 for all."""

    study: str
    responses: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if self.study not in STUDIES:
            raise EvaluatorError(f"no study {self.study!r}; one of {', '.join(STUDIES)}")
        if self.responses < 0 or self.seed < 0:
            raise EvaluatorError("responses and seed must not be negative")


def datasets_of(home: str, study: str) -> list[str]:
    """What the study can be of: landed corpora for attacks, annotated sets for the others; an error where none is."""
    if study == ATTACKS:
        return landed_corpora(home)
    with Home.at(home).reader() as connection:
        rows = connection.execute("SELECT DISTINCT dataset FROM annotated ORDER BY dataset").fetchall()
    if not rows:
        raise AnnotationError(
            f"the study {study!r} compares with people, and {home} has no annotated set; "
            "run ssrem agree FILE first"
        )
    return [name for (name,) in rows]


@task(name="study")
def study(
    dataset: str,
    evaluators: Sequence[tuple[str, int]],
    home: str,
    settings: StudySettings,
    *,
    resources: Resources | None = None,
) -> bool:
    """Publish the study of the evaluators (name, version) on the dataset; False where it is there already.

    Raises EvaluatorError where no evaluator gives what the study needs, AnnotationError or HomeError where the
    dataset is not there.
    """
    place = mended(home)
    fit = _fit(settings.study, evaluators)
    parameters = {"dataset": dataset, "evaluators": sorted(fit), **asdict(settings)}
    inputs = _inputs(place, dataset, settings.study)
    if already_done(place, "study", parameters, inputs):
        return False
    with open_stage(place, "study", parameters, inputs, resources) as stage:
        if stage.done():
            return False
        if settings.study in LEARNING:
            found: Found = learned(stage, settings.study, inputs, fit, settings.seed)
        else:
            found = (_attacks if settings.study == ATTACKS else _scored)(stage, dataset, fit, settings)
        rows = [
            {
                **{"study": settings.study, "dataset": dataset, "evaluator": name, "version": version},
                **{"position": position, **asdict(finding)},
            }
            for (name, version), findings in found.items()
            for position, finding in enumerate(findings)
        ]
        stage.create_from_rows("studies", rows)
        stage.gate()
        stage.publish(
            [
                Output(
                    "studies",
                    f"{settings.study}@{dataset}@{name}@{version}",
                    f"evaluator = '{name}' AND version = {version}",
                )
                for name, version in found
            ]
        )
    return True


Found = Mapping[tuple[str, int], list[Finding]]


def _attacks(
    stage: Stage, corpus: str, evaluators: Sequence[tuple[str, int]], settings: StudySettings
) -> Found:
    candidates = load_candidates(stage.connection, [corpus])
    rows = candidates.rows(TEST)
    if settings.responses:
        rows = np.sort(np.random.default_rng(settings.seed).permutation(rows)[: settings.responses])
    if not len(rows):
        raise EvaluatorError(f"{corpus} has no response in its test split; land a larger corpus")
    texts, ids = candidates.texts, candidates.response[rows]
    samples = [
        Sample(tuple(texts[candidates.context_start[row] : candidates.context_stop[row]]), texts[at])
        for row, at in zip(rows, ids, strict=True)
    ]
    more = {"words replaced by near ones": neighbours(packaged_glove())}
    written = _negatives(stage, corpus, ids)
    found = {}
    for who in evaluators:

        def score(asked: Sequence[Sample], who: tuple[str, int] = who) -> Any:
            (scores,) = score_samples(stage.home, [who], asked, corpus, stage.scratch)
            return scores.f

        found[who] = attacks(samples, score, seed=settings.seed, more=more, written=written)
    return found


def _negatives(stage: Stage, corpus: str, ids: NDArray[np.int64]) -> dict[str, list[str | None]]:
    """What landed generators made of the responses (n,), by generator: the first of each, None where there is none."""
    rows = stage.connection.execute(
        "SELECT generator, response_id, text FROM negatives WHERE corpus = ? AND k = 0 ORDER BY ALL", [corpus]
    ).fetchall()
    place = {int(response): at for at, response in enumerate(ids)}
    found: dict[str, list[str | None]] = {}
    for generator, response, text in rows:
        if response in place:
            found.setdefault(f"negative of {generator}", [None] * len(ids))[place[response]] = text
    return found


def _scored(
    stage: Stage, dataset: str, evaluators: Sequence[tuple[str, int]], settings: StudySettings
) -> Found:
    found = {}
    for name, version in evaluators:
        who = {"evaluator": name, "version": version, "dataset": dataset}
        rows = stage.connection.execute(statement("8_study/scored_responses"), who).fetchall()
        if not rows:
            raise AnnotationError(
                f"{dataset} has no scores of {name} version {version}; run ssrem agree FILE --evaluator {name} first"
            )
        *numbers, systems = zip(*rows, strict=True)
        score, human, words, turns, context_words = (np.array(column, dtype=np.float64) for column in numbers)
        features = {
            "words of the response": words,
            "turns of the context": turns,
            "words of the context": context_words,
        }
        data = Scored(score, human, words, systems, features)
        found[name, version] = SCORED[settings.study](data)
    return found


def _fit(study: str, evaluators: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Those of the evaluators that give what the study needs; EvaluatorError where none does."""
    if study in LEARNING:
        return learners(study, evaluators)
    fit = [one for one in evaluators if study != ATTACKS or "f" in evaluator_class(one[0]).parts]
    if not fit:
        names = ", ".join(name for name, _ in evaluators)
        raise EvaluatorError(
            f"{names}: scores by the true response, which {ATTACKS} keep back; name others with --evaluator"
        )
    return fit


def _inputs(home: Home, dataset: str, study: str) -> dict[str, Any]:
    """What the study is made from: the dataset first, and for transfer every other set."""
    if study == ATTACKS:
        written = [p.key for p in home.parts() if p.table == "negatives" and p.key.startswith(f"{dataset}@")]
        return {
            dataset: landed_corpus(home, dataset)[0],
            "tables": made_by(home, "candidates", [dataset]) + made_by(home, "negatives", written),
        }
    with home.reader() as connection:
        known = dict(
            connection.execute(
                "SELECT dataset, any_value(sha256) FROM annotated GROUP BY dataset ORDER BY dataset"
            ).fetchall()
        )
    if dataset not in known:
        raise AnnotationError(f"no annotated set {dataset!r} in {home.root} (there are: {', '.join(known)})")
    others = known if study == TRANSFER else {}
    return {dataset: known[dataset], **others}


def read_study(home: Home, name: str, dataset: str) -> tuple[Rows, dict[str, tuple[str, str]]]:
    """The published rows of a study, of evaluators in use, and what they say of each in two sentences."""
    with home.reader() as connection:
        cursor = connection.execute(PUBLISHED, [name, dataset])
        names = [d[0] for d in cursor.description or []]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return rows, said(rows)


def write_study(home: str, name: str, dataset: str) -> Path:
    """Write the published study into the home folder's reports, as Markdown and SVG; the page's path."""
    place = Home.at(home)
    rows, _ = read_study(place, name, dataset)
    page = place.reports / f"study-{name}-{dataset}.md"
    picture = page.with_suffix(".svg")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        picture.write_text(figure(rows), encoding="utf-8")
        page.write_text(f"{markdown(rows)}\n![{name} of {dataset}](<{picture.name}>)\n", encoding="utf-8")
    except OSError as error:
        raise out_of_room(place, error) or error from None
    return page


PUBLISHED = """
    SELECT s.* FROM studies AS s INNER JOIN evaluators AS e USING (evaluator, version)
    WHERE s.study = ? AND s.dataset = ? AND e.promoted ORDER BY s.evaluator DESC, s.position
"""
