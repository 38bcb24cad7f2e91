"""A small report, written by hand."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ssrem.report.data import ReportData

CORRELATION = [
    *("pearson", "pearson_p", "pearson_low", "pearson_high"),
    *("spearman", "spearman_p", "spearman_low", "spearman_high"),
    *("kendall", "kendall_p", "resampled", "ceiling", "cluster"),
]
CORPUS = [
    *("format", "conversations", "utterances", "quarantined", "speakers", "turns", "responses"),
    *("stated", "reply", "previous_speaker", "speaker_scope"),
]
LISTS = [
    field.name for field in fields(ReportData) if field.name not in ("generated_at", "ssrem_version", "home")
]


def correlation(**changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(CORRELATION, 0.25)
    row |= {"evaluator": "ssrem", "version": "v1", "dataset": "persona", "criterion": "overall"}
    row |= {"aggregation": "mean", "level": "segment", "score": "h"}
    row |= {"n": 812, "excluded": 75, "outcome": "ok"}
    return row | changes


def make_data() -> ReportData:
    kinds = ("GT", "SC", "SP", "SS", "Rand", "Context")
    return ReportData(
        generated_at="2026-11-20 10:00:00",
        ssrem_version="0.1.0",
        home="warehouse",
        corpora=[dict.fromkeys(CORPUS, 4321) | {"corpus": "talk", "source": "talk.jsonl", "landed_at": None}],
        pairs=[
            {"dataset": "votes", "evaluator": "ssrem", "score": "h", "share": 0.71, "low": 0.62, "high": 0.8}
            | {"tie_within": 0.0, "pairs": 40, "alpha": 0.55, "reason": None}
        ],
        quarantine=[{"corpus": "talk", "reason": "no text", "rows": 17}],
        set_similarity=[
            {"corpus": "talk", "kind": kind, "mean": 0.9 - i / 100, "low": 0.8, "high": 0.91}
            | {"speakers": 3, "of_speakers": 5, "sets": 7, "pairs": 9, "encoder": "glove"}
            for i, kind in enumerate(kinds[1:5])
        ],
        identification=[
            {"evaluator": name, "version": "v1", "corpus": "talk", "learned_from": "talk", "kind": kind}
            | {"mean": 0.5 - i / 10, "n": 99}
            | {"low": 0.4 - i / 10, "high": 0.6 - i / 10, "gt_above": 0.6 + i / 100 if i else None}
            for name in ("ssrem", "rsrem")
            for i, kind in enumerate(kinds)
        ],
        correlations=[
            correlation(spearman=0.4321, spearman_p=1e-20),
            correlation(evaluator="rsrem", spearman=0.1234, spearman_p=0.0421),
            correlation(score="g", spearman=None, spearman_p=None, outcome="the score is constant"),
            correlation(aggregation="median", spearman=0.3999),
        ],
        points=[
            {
                **{"evaluator": "ssrem", "version": "v1", "dataset": "persona", "criterion": "overall"},
                **{"response_id": str(at), "human": human, "raters": 3, "part": "h", "score": score},
            }
            for at, (human, score) in enumerate(((1, 0.1), (2, 0.3), (3, 0.5), (4, 0.7), (5, 0.9)))
        ],
        responses=[
            {
                **{"dataset": "persona", "response_id": str(at), "context": ["Hi!", f"Number {at}?"]},
                **{"response": f"Answer {at}.", "reference": None, "system": "bot"},
            }
            for at in range(5)
        ],
        studies=[
            {
                **{"study": "attacks", "dataset": "talk", "evaluator": name, "version": "v1"},
                **{"condition": condition, "measure": "fooled", "value": value, "n": 321, "outcome": "ok"},
                **{"low": value - 0.05, "high": value + 0.05},
            }
            for name in ("ssrem", "rsrem")
            for condition, value in (("context copied", 0.875), ("negated", 0.25))
        ],
        learning_curves=[
            {"evaluator": "ssrem", "version": "v1", "epoch": epoch, "split": split, "loss": 1 / epoch}
            for split in ("train", "valid")
            for epoch in (1, 2, 3)
        ],
        evaluators=[
            {"evaluator": "ssrem", "version": "v1", "signature": "name:ssrem|weights:abc", "encoder": "glove"}
            | {"promoted": True, "why": "the first", "trained_at": None, "figures": {"loss": 1.5}}
        ],
        quality=[
            {"run_id": "r1", "stage": "ingest", "table": "utterances", "expectation": text, "passed": True}
            | {"observed": None, "unexpected": 0}
            for text in ("keys are unique", "counts are conserved")
        ],
        runs=[
            {"run_id": "r1", "stage": "ingest", "started": None, "ended": None} | {"parameters": {"seed": 1}}
        ],
    )
