"""Study: what an evaluator's scores hang on besides quality, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prefect import task

from ssrem.errors import AnnotationError, EvaluatorError
from ssrem.evaluators import evaluator_class
from ssrem.report.data import Rows
from ssrem.report.study import figure, markdown, said
from ssrem.studies.learned import TRANSFER
from ssrem.studies.scored import IDENTIFIED, SCORED
from tasks.maintenance.repair import mended
from tasks.speaker_tables.build import landed_corpus
from tasks.stage.ledger import already_done, made_by
from tasks.stage.stage import Output, Resources, Stage, open_stage
from tasks.studies.from_labels import LEARNING, learned, learners
from tasks.studies.from_scores import Found, attacked, of_annotated, of_corpus
from tasks.warehouse.error_translation import out_of_room
from tasks.warehouse.home import Warehouse, landed_corpora

ATTACKS = "attacks"
OF_CORPORA = (ATTACKS, IDENTIFIED)
STUDIES = (*OF_CORPORA, *SCORED, *LEARNING)
"""The first take a corpus's true responses; the others take an annotated set that ssrem agree has landed."""


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
    """What the study can be of: landed corpora, or annotated sets; an error where none is."""
    if study in OF_CORPORA:
        return landed_corpora(home)
    with Warehouse.at(home).reader() as connection:
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
        found = _find(stage, dataset, fit, settings, inputs)
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


def _find(
    stage: Stage,
    dataset: str,
    evaluators: Sequence[tuple[str, int]],
    settings: StudySettings,
    inputs: Mapping[str, Any],
) -> Found:
    name = settings.study
    if name == ATTACKS:
        return attacked(stage, dataset, evaluators, settings.responses, settings.seed)
    if name == IDENTIFIED:
        return of_corpus(stage, dataset, evaluators)
    if name in LEARNING:
        return learned(stage, name, inputs, evaluators, settings.seed)
    return of_annotated(stage, dataset, evaluators, name)


def _fit(study: str, evaluators: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Those of the evaluators that give what the study needs; EvaluatorError where none does."""
    if study in LEARNING:
        return learners(study, evaluators)
    fit = [one for one in evaluators if study not in OF_CORPORA or "f" in evaluator_class(one[0]).parts]
    if not fit:
        names = ", ".join(name for name, _ in evaluators)
        raise EvaluatorError(
            f"{names}: scores by the true response, which {study} keeps back; name others with --evaluator"
        )
    return fit


def _inputs(home: Warehouse, dataset: str, study: str) -> dict[str, Any]:
    """What the study is made from: the dataset first, and for transfer every other set."""
    if study in OF_CORPORA:
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


def read_study(home: Warehouse, name: str, dataset: str) -> tuple[Rows, dict[str, tuple[str, str]]]:
    """The published rows of a study, of evaluators in use, and what they say of each in two sentences."""
    with home.reader() as connection:
        cursor = connection.execute(PUBLISHED, [name, dataset])
        names = [d[0] for d in cursor.description or []]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return rows, said(rows)


def write_study(home: str, name: str, dataset: str) -> Path:
    """Write the published study into the home folder's reports, as Markdown and SVG; the page's path."""
    place = Warehouse.at(home)
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
