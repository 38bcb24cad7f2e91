"""Trains and scores one row."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.agreement.plan import (
    FOLDS,
    LANGUAGE,
    LANGUAGE_SETTINGS,
    MASKED,
    MASKED_SETTINGS,
    RESPONSES,
    Entry,
)
from benchmarks.agreement.responses import responses_of, true_above_false
from benchmarks.agreement.rows import gain_of_share, paired_gain
from ssrem.agreement.compare import paired_bootstrap
from ssrem.agreement.correlate import View, pearson, spearman
from ssrem.encoders import load_encoder
from ssrem.encoders.hub import BF16
from ssrem.errors import EvaluatorError, SsremError
from ssrem.evaluators import evaluator_class, load_evaluator, packaged
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.blend import Blend
from ssrem.evaluators.language_model.fine_tune import LmObjective
from ssrem.negatives.tied_head import TiedHead
from ssrem.samples import Candidates, Floats, Labelled, Labels, folds_by_context, out_of_fold
from ssrem.training.fine_tuning import CARD, fine_tune


class PieceEndedError(SsremError):
    """Raised if a training takes longer than --minutes; computing the row again goes on from its checkpoint."""


@dataclass(frozen=True)
class Bench:
    """What the computations of all rows share.

    corpus: reads the candidates of the home folder's corpus. responses: the folder of DailyDialog++, if there is one.
    sets: annotated sets by name. unfinished: the folder of checkpoints. masked_model: name or folder of the model of
    mask-and-fill; None: one that learns from the responses. seconds: after which a training is interrupted.
    say: prints a line of progress.
    """

    corpus: Callable[[], Candidates]
    responses: Path | None
    sets: Mapping[str, Labels]
    unfinished: Path
    masked_model: str | None
    seconds: float
    say: Callable[[str], None]
    fitted: dict[str, tuple[Any, float]] = field(default_factory=dict)
    """The evaluator last trained on a corpus, and the seconds it took, by its settings, for rows that share it."""
    known: dict[Any, Any] = field(default_factory=dict)
    """Scores that the parts of blends gave to samples, by these parts."""
    held: list[Any] = field(default_factory=list)
    """The evaluator of the last row: while it lives, the next row shares its models and their likelihoods."""

    read: dict[str, Candidates] = field(default_factory=dict)
    """The candidates that were needed so far, by the name in `Entry.learns_from`."""

    def candidates(self, source: str) -> Candidates:
        """The candidates of that name; EvaluatorError if they need the folder of DailyDialog++ and there is none."""
        if source == RESPONSES and self.responses is None:
            raise EvaluatorError("this row learns from DailyDialog++; name its folder with --responses")
        if source not in self.read:
            self.read[source] = responses_of(self.responses) if source == RESPONSES else self.corpus()
        return self.read[source]


def run_of(entry: Entry, seed: int, bench: Bench) -> dict[str, Any]:
    """Figures of an entry on every annotated set that it is tested on, its signature, its gains and its time."""
    evaluator, fitted = _fitted(entry, seed, bench)
    _remember(evaluator, bench)
    training = evaluator.training if entry.learn in ("corpus", "both") else None
    run: dict[str, Any] = {"seed": seed, "fit_seconds": round(fitted, 1), "gains": []}
    if training is not None:
        run["training"] = {
            "rows": dict(training.rows),
            "epochs": training.history[-1]["epoch"],
            "figures": dict(training.figures),
        }
        run["gains"] += _gain_of_fit(training)
        if entry.learns_from == RESPONSES and bench.responses is not None:
            above = true_above_false(evaluator, bench.responses)
            run["dailydialog_plusplus"] = {kind: float(wins.mean()) for kind, wins in above.items()}
            if evaluator.settings.prior == "cosine":
                run["gains"] += _gains_over_prior(above, evaluator.base.cosine, bench.responses)
    results, kept_scores, scored, seconds = {}, {}, 0, 0.0
    for name in [entry.target] if entry.target else list(bench.sets):
        labels = bench.sets[name]
        if "reference" in evaluator.needs and any(sample.reference is None for sample in labels.samples):
            continue  # the set has no references
        began = time.perf_counter()
        scores = _scores(entry, evaluator, name, seed, bench)
        seconds, scored = seconds + time.perf_counter() - began, scored + len(scores)
        results[name] = _figures(scores, labels)
        if entry.learn in ("labels", "both"):
            run["gains"].append(_gain_of_labels(entry, evaluator, scores, labels, bench))
        kept_scores[name] = [float(f"{score:.5g}") for score in scores]
    bench.held[:] = [evaluator]  # not before scoring, which loads models that the last evaluator may share
    known = entry.learn not in ("labels", "both")
    if entry.section == "negatives":
        run["scores"] = kept_scores
    return run | {
        "signature": evaluator.signature if known else entry.tuned(seed),
        "results": results,
        "seconds_per_1000": round(1000 * seconds / max(scored, 1), 3),
        "weights": getattr(evaluator, "weights", None) if known else None,
    }


def difference(one: Floats, other: Floats, labels: Labels) -> dict[str, Any]:
    """Spearman of `one` less that of `other` with the human scores, its 95% interval and p, by resampled contexts."""
    contexts = [" ".join(sample.context) for sample in labels.samples]
    compared = paired_bootstrap(one, other, labels.human, contexts, view=View(), seed=0)
    return {name: getattr(compared, name) for name in ("first", "second", "difference", "low", "high", "p")}


def _remember(evaluator: Evaluator, bench: Bench) -> None:
    """Let a blend use, and add to, the scores that blends with the same parts computed for other rows."""
    if isinstance(evaluator, Blend):
        parts = evaluator.settings.products, *(member.signature for member in evaluator.members.values())
        evaluator.known = bench.known.setdefault(parts, evaluator.known)


def _gain_of_fit(training: Any) -> list[dict[str, Any]]:
    """The gain in the share of validation negatives below the true response, over that before training, or over chance
    if that was not measured; empty for a training without gradient steps."""
    end, first = training.figures.get("valid_gt_above"), training.history[0]
    if end is None or "l2" in first:
        return []
    start = first.get("valid_gt_above", 0.5) if first["epoch"] == 0 else 0.5
    return [gain_of_share("true responses above negatives, validation", start, end, training.rows["valid"])]


def _gains_over_prior(above: Mapping[str, Floats], prior: Evaluator, responses: Path) -> list[dict[str, Any]]:
    """Gains in the share of false responses below the true one, over `cosine`, the prior, which is the start."""
    start = true_above_false(prior, responses)
    return [
        paired_gain(f"true responses above {kind} ones, DailyDialog++ dev", start[kind], end)
        for kind, end in above.items()
    ]


def _gain_of_labels(
    entry: Entry, evaluator: Any, scores: Floats, labels: Labels, bench: Bench
) -> dict[str, Any]:
    """The gain in Spearman with human scores that were not learned from, over the evaluator before it learned from any.

    That is the version fitted on the corpus, or the packaged one; without either the gain is over a Spearman of 0.
    """
    before = evaluator if entry.learn == "both" or (entry.sources == "*" and not entry.settings) else None
    if before is None and entry.evaluator in packaged() and not entry.settings:
        before = load_evaluator(entry.evaluator)
        _remember(before, bench)
    what = f"Spearman, {labels.criterion}, out of fold"
    if before is None:
        rank = spearman(scores, labels.human)
        return {"what": what, "start": 0.0, "end": rank.statistic, "n": len(scores), "low": rank.low or 0.0}
    compared = difference(scores, before.score(labels.samples), labels)
    return {
        "what": what,
        "start": compared["second"],
        "end": compared["first"],
        "n": len(scores),
        "low": compared["low"] or 0.0,
    }


def _fitted(entry: Entry, seed: int, bench: Bench) -> tuple[Any, float]:
    """The evaluator, trained on the corpus if the entry says so, and the seconds that this took."""
    if entry.learn == "packaged" or (
        entry.sources == "*" and not entry.settings and entry.evaluator in packaged()
    ):
        return load_evaluator(entry.evaluator), 0.0
    if entry.learn not in ("corpus", "both"):
        return _untrained(entry, seed, bench), 0.0
    about = json.dumps(
        [entry.evaluator, dict(entry.settings), entry.encoder, entry.learns_from, seed], sort_keys=True
    )
    if about not in bench.fitted:
        evaluator = _untrained(entry, seed, bench)
        unfinished = bench.unfinished / f"{entry.name}-{seed}"
        training = evaluator.fit(
            bench.candidates(entry.learns_from), progress=_progress(bench), checkpoint=unfinished
        )
        bench.fitted.clear()  # rows that share an evaluator follow each other
        bench.fitted[about] = evaluator, training.seconds
    return bench.fitted[about]


def _untrained(entry: Entry, seed: int, bench: Bench) -> Any:
    kind: Any = evaluator_class(entry.evaluator)
    settings = {name: _with_model(value, bench) for name, value in entry.settings.items()}
    if not kind.learns_from:
        metric = kind(**settings)
        _ = metric.signature  # raises if a package or model is missing
        return metric
    settings = {**settings, "seed": seed}
    provider = SimpleNamespace(
        encoder=lambda: load_encoder(entry.encoder or "", seed=seed), evaluator=load_evaluator
    )
    return kind.create(settings, provider)


def _with_model(value: Any, bench: Bench) -> Any:
    """The setting, or the model that it stands for if it is MASKED or LANGUAGE.

    That model learns from RESPONSES when it is first needed, and is read in bfloat16. A masked language model that the
    command line names is taken instead, as it is.
    """
    if value not in (MASKED, LANGUAGE):
        return value
    if value == MASKED and bench.masked_model:
        return bench.masked_model
    folder = bench.unfinished / value
    if not (folder / CARD).is_file():
        bench.say(value)
        candidates, unfinished = bench.candidates(RESPONSES), bench.unfinished / f"{value}-0"
        learned = (
            TiedHead(candidates, MASKED_SETTINGS)
            if value == MASKED
            else LmObjective(candidates, LANGUAGE_SETTINGS)
        )
        fine_tune(learned, folder, progress=_progress(bench), checkpoint=unfinished)
    return f"{folder}{BF16}"


def _scores(entry: Entry, evaluator: Any, name: str, seed: int, bench: Bench) -> Floats:
    labels = bench.sets[name]
    if entry.learn not in ("labels", "both"):
        return _only(evaluator, labels)
    if entry.sources == "*":
        others = {other: scored for other, scored in bench.sets.items() if other != name}
        return _only(evaluator.tuned_on(others), labels)
    if entry.sources:
        learned = bench.sets[entry.sources]
        return _only(evaluator.tuned_on({entry.sources: learned}), labels)

    def make(pairs: Labelled) -> Any:
        some = _share(pairs, entry.share, seed)
        return evaluator.tuned_on({name: replace(labels, pairs=tuple(some))})

    return out_of_fold(make, labels.pairs, FOLDS, seed)


def _share(pairs: Labelled, share: float, seed: int) -> Labelled:
    """The responses to a share of the contexts, drawn by the seed."""
    if share >= 1:
        return pairs
    fold = folds_by_context([sample for sample, _ in pairs], round(1 / share), seed)
    return [pair for pair, at in zip(pairs, fold, strict=True) if at == 0]


def _only(evaluator: Evaluator, labels: Labels) -> Floats:
    scores = evaluator.score(labels.samples)
    if not np.isfinite(scores).all():
        raise EvaluatorError(f"{evaluator.name}: {int((~np.isfinite(scores)).sum())} scores are not numbers")
    return scores


def _figures(scores: Floats, labels: Labels) -> dict[str, Any]:
    human = labels.human
    lengths = np.array([len(sample.response.split()) for sample in labels.samples], dtype=np.float64)
    rank, linear, length = spearman(scores, human), pearson(scores, human), spearman(scores, lengths)
    return {
        "n": len(scores),
        "excluded": labels.excluded,
        "spearman": [rank.statistic, rank.low, rank.high, rank.p],
        "pearson": [linear.statistic, linear.low, linear.high, linear.p],
        "length": length.statistic,
    }


def _progress(bench: Bench) -> Callable[[int, int], None]:
    began = last = time.perf_counter()

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last > 30 or done == total:
            last = now
            bench.say(f"{done}/{total}")
        if now - began > bench.seconds and done < total:
            raise PieceEndedError(f"{done} of {total} steps; the same command goes on with them")

    return tell


def figures_of(runs: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """Figures on one annotated set, one per seed; empty if the runs do not have the set."""
    return [run["results"][name] for run in runs if name in run["results"]]
