"""Trains and scores one row; finished rows are stored as JSON and not computed again."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.agreement.plan import FOLDS, Entry
from ssrem import __version__
from ssrem.agreement.annotated import Labels
from ssrem.agreement.correlation import pearson, spearman
from ssrem.agreement.cross_validation import Labelled, folds_by_context, out_of_fold
from ssrem.encoders import DEFAULT_ENCODER, load_encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class
from ssrem.evaluators.base import Evaluator
from ssrem.samples import TRAIN, Candidates, Floats

Say = Callable[[str], None]


@dataclass(frozen=True)
class Bench:
    """What rows have in common. candidates: of the corpus, whose content hash is `digest`. sets: by name."""

    candidates: Candidates
    digest: str
    sets: Mapping[str, Labels]
    rows: Path
    say: Say
    untrained: list[Evaluator] = field(default_factory=list)
    """Kept, so that those with one language model share it, and what it has scored already."""
    fitted: dict[str, tuple[Any, float]] = field(default_factory=dict)
    """What was learned from the corpus and in how many seconds, for rows that only differ in what comes after."""

    def kept(self, entry: Entry, seed: int) -> dict[str, Any] | None:
        """The row, if it was computed before with the same version, corpus and annotated sets."""
        file = self._file(entry, seed)
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    def keep(self, entry: Entry, seed: int, row: Mapping[str, Any]) -> None:
        """Write the row, completely or not at all."""
        file = self._file(entry, seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(row, indent=1), encoding="utf-8")
        part.replace(file)

    def _file(self, entry: Entry, seed: int) -> Path:
        sets = {name: [len(labels.pairs), float(labels.human.sum())] for name, labels in self.sets.items()}
        content = json.dumps([__version__, self.digest, sets, entry.key, seed], sort_keys=True)
        return self.rows / f"{hashlib.sha256(content.encode()).hexdigest()[:20]}.json"


def row_of(entry: Entry, seed: int, bench: Bench) -> dict[str, Any]:
    """Figures of an entry on every annotated set that it is tested on, its signature, and its time."""
    evaluator, fitted = _fitted(entry, seed, bench)
    training = evaluator.training if entry.learn in ("corpus", "both") else None
    notes: dict[str, Any] = {}
    if training is not None:
        notes = {
            "rows": dict(training.rows),
            "epochs": len(training.history),
            "figures": dict(training.figures),
        }
    results, scored, seconds = {}, 0, 0.0
    for name in [entry.target] if entry.target else list(bench.sets):
        labels = bench.sets[name]
        if "reference" in evaluator.needs and any(sample.reference is None for sample in labels.samples):
            continue  # the set has no references
        start = time.perf_counter()
        scores = _scores(entry, evaluator, name, seed, bench)
        seconds, scored = seconds + time.perf_counter() - start, scored + len(scores)
        results[name] = _figures(scores, labels)
    known = entry.learn in ("nothing", "corpus")
    return {
        "signature": evaluator.signature if known else None,
        "results": results,
        "training": notes,
        "fit_seconds": round(fitted, 1),
        "seconds_per_1000": round(1000 * seconds / max(scored, 1), 3),
        "weights": getattr(evaluator, "weights", None) if known else None,
    }


def _fitted(entry: Entry, seed: int, bench: Bench) -> tuple[Any, float]:
    """The evaluator, trained on the corpus if the entry says so, and the seconds that this took."""
    if entry.learn not in ("corpus", "both"):
        return _made(entry, seed, bench), 0.0
    about = json.dumps([entry.evaluator, dict(entry.settings), entry.encoder, seed], sort_keys=True)
    if about not in bench.fitted:
        began = time.perf_counter()
        evaluator = _made(entry, seed, bench)
        evaluator.fit(bench.candidates, progress=_progress(bench.say))
        bench.fitted.clear()  # rows that share one stand side by side
        bench.fitted[about] = evaluator, time.perf_counter() - began
    return bench.fitted[about]


def _made(entry: Entry, seed: int, bench: Bench) -> Any:
    kind: Any = evaluator_class(entry.evaluator)
    if not kind.learns_from:
        metric = kind(**entry.settings)
        _ = metric.signature  # raises if a package or model is missing
        bench.untrained.append(metric)
        return metric
    known = kind.config_class.names()
    settings = {key: value for key, value in {**entry.settings, "seed": seed}.items() if key in known}
    encoder = None
    if kind.encoder_spec(DEFAULT_ENCODER):
        texts = _training_texts(bench.candidates) if entry.encoder and "word2vec" in entry.encoder else None
        encoder = load_encoder(entry.encoder or "", train_texts=texts, seed=seed)
    return kind(encoder, kind.config_class.of(settings))


def _training_texts(candidates: Candidates) -> list[str]:
    rows = candidates.rows(TRAIN)
    is_context = np.zeros(len(candidates.texts), dtype=bool)
    is_context[candidates.response[rows]] = True
    for start, stop in zip(candidates.context_start[rows], candidates.context_stop[rows], strict=True):
        is_context[start:stop] = True
    return [text for text, wanted in zip(candidates.texts, is_context.tolist(), strict=True) if wanted]


def _scores(entry: Entry, evaluator: Any, name: str, seed: int, bench: Bench) -> Floats:
    labels = bench.sets[name]
    if entry.learn in ("nothing", "corpus"):
        return _only(evaluator, labels)
    if entry.source:
        learned = bench.sets[entry.source]
        tuned = evaluator.fine_tuned(learned.pairs, scale=learned.scale)
        return _only(tuned, labels)

    def make(pairs: Labelled) -> Any:
        some = _share(pairs, entry.share, seed)
        return evaluator.fine_tuned(some, scale=labels.scale)

    return out_of_fold(make, labels.pairs, FOLDS, seed)


def _share(pairs: Labelled, share: float, seed: int) -> Labelled:
    """The responses to a share of the contexts."""
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


def _progress(say: Say) -> Callable[[int, int], None]:
    last = [0.0]

    def tell(done: int, total: int) -> None:
        if time.perf_counter() - last[0] > 10 or done == total:
            last[0] = time.perf_counter()
            say(f"{done}/{total}")

    return tell


def figures_of(rows: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """One set's figures, a seed each; empty where the rows do not have the set."""
    return [row["results"][name] for row in rows if name in row["results"]]
