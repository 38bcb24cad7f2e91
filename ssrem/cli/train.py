"""`ssrem train` and `ssrem evaluators`: train evaluators, choose their versions, and carry them to other homes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ssrem import tasks
from ssrem.cli import UsageError, output
from ssrem.cli.options import Call, Corpora, EvaluatorName, StageCall, Verb
from ssrem.errors import EvaluatorError, say
from ssrem.settings import Count
from ssrem.tasks.settings import Margin, Margins, TrainSettings

Evaluator = Annotated[EvaluatorName, Field(description="trained evaluator")]


@Verb
def train(
    call: StageCall,
    evaluator: tuple[str, ...] = (),
    *,
    corpus: Corpora = (),
    settings: TrainSettings,
    margin: Margin = Margins(),
) -> None:
    """Train evaluators, score their test splits, and promote those that are not worse; or train a language model.

    evaluator: evaluators (default: ssrem rsrem); or a language model: masked-lm, of mask-and-fill, or lm, of lm-*
    """
    models = tasks.caches.LANGUAGE_MODELS
    if models.keys() & evaluator:
        others = settings.labels or settings.labels_from or settings.negatives or settings.encoder
        if len(evaluator) > 1 or others:
            raise UsageError(
                f"{' and '.join(models)} are no evaluators: train one alone, with --corpus, --init, --seed, "
                "--device or --set"
            )
        _language_model(call, evaluator[0], corpus, settings)
        return
    from ssrem.evaluators import DEFAULT_EVALUATORS, evaluator_class

    names = evaluator or DEFAULT_EVALUATORS
    trained = tasks.train.train_all(
        names, corpus or None, call.root, settings, margin, resources=call.resources
    )
    outcomes = {}
    for name, (version, new) in trained.items():
        done = "trained" if evaluator_class(name).learns_from else "registered"
        status = tasks.versions.version_status(call.home, name, version)
        outcomes[name] = f"{done if new else 'nothing new to train'}; {status}"
    output.outcome(call, ["evaluators", "identification"], outcomes)
    for name, (version, _) in trained.items() if settings.labels or settings.labels_from else ():
        say(_held_out(call, name, version))
        if settings.labels_from and not call.json_:
            rows = tasks.distil.judge_and_student(name, version, corpus, call.home, settings)
            output.tables({"judge and student: agreement with people, and what 1,000 responses take": rows})


def _language_model(call: Call, name: str, corpora: tuple[str, ...], settings: TrainSettings) -> None:
    """Fine-tune a language model, or resume its training; print where it is and how to use it."""
    from ssrem.files import read_json
    from ssrem.tables.candidates import load_candidates
    from ssrem.tasks.warehouse.home import landed_corpora, landed_corpus
    from ssrem.training.fine_tuning import CARD

    short = {"model" if name == "lm" else "encoder": settings.init, "device": settings.device}
    given = {key: value for key, value in short.items() if value is not None}
    own = tasks.caches.settings_of(name, {"seed": settings.seed, **settings.set, **given})
    chosen = landed_corpora(call.root, corpora)
    if missing := tasks.tables.without_tables(call.root, chosen):
        raise UsageError(f"{', '.join(missing)}: no speaker tables; run ssrem tables first")
    with call.home.reader() as connection:
        candidates = load_candidates(connection, chosen)
    digests = {corpus: landed_corpus(call.home, corpus)[0] for corpus in chosen}
    with call.home.lock(f"train {name}"):
        folder = tasks.caches.language_model_for(call.home, name, candidates, digests, own)
    card = read_json(folder / CARD, ("settings",))
    use = "negatives mask-and-fill --model " if name == "masked-lm" else "train lm-pmi --set model="
    say(
        f"{name}: {folder}, {own.steps:,} steps; -log p of a token {card.get('before', math.nan):.2f} before, "
        f"{card.get('after', math.nan):.2f} after; ssrem {use}{folder} uses it"
    )


def _held_out(call: Call, name: str, version: int) -> str:
    """A line on how an evaluator that learned human scores agrees with scores that it did not learn from, if known."""
    from ssrem.files import read_json

    card = read_json(call.home.models / name / str(version) / "card.json", ("figures", "human_scores"))
    figures, sets = card["figures"], [*card["human_scores"], "mean"]
    if "out_of_fold" in figures:
        return (
            f"{name}: Spearman on {sets[0]}, each context scored by weights learned from the other ones: "
            f"{figures['out_of_fold']:.2f} (before learning {figures['unlearned']:.2f})"
        )
    if len(sets) == 2:
        return f"{name} learned from {sets[0]}, so its agreement with this set shows nothing; use another one"
    listed = (f"{one} {figures[f'left_out {one}']:.2f} ({figures[f'unlearned {one}']:.2f})" for one in sets)
    return f"{name}: Spearman on each set, learned from the others (before learning from any): {', '.join(listed)}"


@Verb
def list_(call: Call) -> None:
    """List the available evaluators, and the versions trained here."""
    trained, available = tasks.query.summary(call.home, ["evaluators"]), tasks.versions.catalogue()
    if output.answered(call, {"evaluators": available, "versions": trained.get("evaluators", [])}):
        return
    output.tables({"available evaluators": available})
    output.summaries(trained)
    if not trained:
        print(f"none trained in {call.home.root} yet; train one with ssrem train NAME")


@Verb
def promote(call: StageCall, evaluator: Evaluator, version: Count) -> None:
    """Promote a version by hand.

    version: which of its versions
    """
    _promote(call, evaluator, version)


@Verb
def rollback(call: StageCall, evaluator: Evaluator) -> None:
    """Promote the version that was in use before."""
    _promote(call, evaluator, None)


def _promote(call: StageCall, evaluator: str, version: int | None) -> None:
    chosen, replaced = tasks.promote.promote(evaluator, version, call.root, resources=call.resources)
    what = "is in use already" if replaced is None else f"is in use instead of version {replaced}"
    output.outcome(call, ["evaluators"], {evaluator: f"version {chosen} {what}"})


@Verb
def retrain(
    call: StageCall, evaluator: tuple[EvaluatorName, ...] = (), *, margin: Margin = Margins()
) -> None:
    """Retrain the evaluators that have not seen every landed corpus.

    evaluator: evaluators (default: all in use, or, where none was trained, ssrem rsrem)
    """
    outcomes = tasks.train.retrain(call.root, evaluator or None, margin, resources=call.resources)
    outcomes = outcomes or {"nothing to do": "all in use have seen all that landed"}
    output.outcome(call, ["evaluators"], outcomes)


@Verb
def export(
    call: Call, evaluator: Evaluator, *, version: Count | None = None, output_: Path | None = None
) -> None:
    """Write an evaluator into one file.

    version: its version (default: the one in use)
    output_: file to write (default: NAME-VERSION.ssrem, here)
    """
    file = tasks.transfer.export_evaluator(call.home, evaluator, version, output_)
    if not output.answered(call, {"file": str(file)}):
        print(file)


@Verb
def import_(call: StageCall, archive: Path, *, allow: tuple[str, ...] = ()) -> None:
    """Add an evaluator from one file.

    archive: file that ssrem evaluators export wrote
    allow: encoders and models, names or paths, that it may read or download though the file lacks them
    """
    if not archive.is_file():
        what = "is no file" if archive.exists() else "does not exist"
        raise EvaluatorError(f"{archive} {what}; give what ssrem evaluators export wrote")
    name, version, new = tasks.transfer.import_evaluator(
        str(archive), call.root, allowed=allow, resources=call.resources
    )
    tasks.correlate.correlate_all(call.root, resources=call.resources)
    what = "imported" if new else "is there already"
    output.outcome(call, ["evaluators"], {name: f"version {version} {what}"})
