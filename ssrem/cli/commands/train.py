"""`ssrem train`: train evaluators, or show what would be trained."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from ssrem.cli import arguments, output
from ssrem.cli.names import LANGUAGE_MODELS
from ssrem.cli.start import flow
from ssrem.errors import SsremError, say
from ssrem.evaluators import DEFAULT_EVALUATORS
from ssrem.files import read_json
from ssrem.registry import registered
from ssrem.tasks.training.versions import version_status
from ssrem.tasks.warehouse.corpora import landed_corpora
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    from ssrem.flows.orchestration.options import TrainingOptions


def train(options: argparse.Namespace, home: Warehouse) -> None:
    """Train evaluators, score their test splits, and promote those that are not worse; or train a language model."""
    if any(name in LANGUAGE_MODELS for name in options.evaluator):
        _language_model(options, home)
        return
    names = options.evaluator or list(DEFAULT_EVALUATORS)
    training = arguments.training(options, home, names)
    if options.dry_run:
        _show_plan(options, home, names, training)
        return
    runner, margins = arguments.runner(options), arguments.margins(options)
    trained = flow("train")(
        str(home.root),
        options.evaluator or None,
        options.corpus,
        training,
        margins,
        arguments.resources(options),
        runner,
    )
    outcomes = {
        name: f"{'trained' if new else 'nothing new to train'}; {version_status(home, name, version)}"
        for name, (version, new) in trained.items()
    }
    output.outcome(options, home, ["evaluators", "identification"], outcomes)
    for name, (version, _) in trained.items():
        if options.labels:
            say(_held_out(home, name, version))


def _language_model(options: argparse.Namespace, home: Warehouse) -> None:
    """Fine-tune a language model, or resume its training; print where it is and how to use it."""
    from ssrem.tables.candidates import load_candidates  # imports NumPy
    from ssrem.tasks.speaker_tables.build import without_tables
    from ssrem.tasks.speaker_tables.language_models import MODULES, language_model_for, settings_of
    from ssrem.tasks.warehouse.corpora import landed_corpus

    name, *others = options.evaluator
    if others or options.dry_run or options.labels or options.negatives:
        raise SsremError(
            f"{' and '.join(LANGUAGE_MODELS)} are no evaluators: train one alone, with --corpus, --init, --seed, "
            "--device or --set"
        )
    config = {"seed": options.seed, **arguments.pairs_of(options.set, "--set", "steps=5000")}
    from_options = {"model" if name == "lm" else "encoder": options.init, "device": options.device}
    settings = settings_of(
        name, config | {key: value for key, value in from_options.items() if value is not None}
    )
    corpora = options.corpus or landed_corpora(str(home.root))
    if missing := without_tables(str(home.root), corpora):
        raise SsremError(f"{', '.join(missing)}: no speaker tables; run ssrem tables first")
    with home.reader() as connection:
        candidates = load_candidates(connection, corpora)
    digests = {corpus: landed_corpus(home, corpus)[0] for corpus in corpora}
    folder = language_model_for(home, name, candidates, digests, settings)
    card = read_json(folder / registered(f"{MODULES[name]}:CARD"), ("settings",))
    uses = {
        "masked-lm": f"ssrem negatives mask-and-fill --model {folder}",
        "lm": f"ssrem train lm-pmi --set model={folder}",
    }
    say(
        f"{name}: {folder}, {settings.steps:,} steps; -log p of a token {card.get('before', math.nan):.2f} before, "
        f"{card.get('after', math.nan):.2f} after; {uses[name]} uses it"
    )


def _held_out(home: Warehouse, name: str, version: int) -> str:
    """How an evaluator that learned human scores agrees with scores that it did not learn from, if that is known."""
    card = read_json(home.models / name / str(version) / "card.json", ("figures", "human_scores"))
    figures, sets = card["figures"], [*card["human_scores"], "mean"]
    if "out_of_fold" in figures:
        return (
            f"{name}: Spearman on {sets[0]}, each context scored by weights learned from the other ones: "
            f"{figures['out_of_fold']:.2f} (before learning {figures['unlearned']:.2f})"
        )
    if len(sets) == 2:
        return f"{name} learned from {sets[0]}, so its agreement with this set shows nothing; use another one"
    listed = ", ".join(
        f"{one} {figures[f'left_out {one}']:.2f} ({figures[f'unlearned {one}']:.2f})" for one in sets
    )
    return f"{name}: Spearman on each set, learned from the others (before learning from any): {listed}"


def _show_plan(
    options: argparse.Namespace, home: Warehouse, names: list[str], training: TrainingOptions
) -> None:
    from ssrem.tasks.speaker_tables.build import without_tables  # imports NumPy
    from ssrem.tasks.training.dry_run import dry_run, too_small  # imports Pydantic

    rows = dry_run(
        home,
        names,
        options.corpus,
        training.config,
        training.encoder,
        ", ".join(options.labels) or None,
        labels_alone=options.labels_only,
    )
    if options.json:
        output.as_json(rows)
        return
    short = [{key: value for key, value in row.items() if key != "settings"} for row in rows]
    output.tables({"what would be trained, on what": short})
    sources = sorted({corpus for row in rows for corpus in (row["corpora"] or "").split(", ") if corpus})
    if sources and not without_tables(str(home.root), sources) and (warning := too_small(home, sources)):
        say(warning)
    for row in rows:
        settings = " ".join(f"{key}={value}" for key, value in row["settings"].items())
        print(f"{row['evaluator']}: {settings or 'no settings'}")
