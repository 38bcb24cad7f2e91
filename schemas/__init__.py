"""Contracts of the published tables, in the order in which the data flow."""

import hashlib

from schemas import (
    agreement,
    annotations,
    candidates,
    comparisons,
    conversations,
    corpora,
    correlations,
    evaluators,
    identification,
    learning_curves,
    ledger,
    negatives,
    quarantine,
    rater_agreement,
    responses,
    scores,
    set_similarity,
    speaker_sets,
    studies,
    turns,
    utterances,
)
from schemas.contract import Table

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        corpora.TABLE,
        conversations.TABLE,
        utterances.TABLE,
        quarantine.TABLE,
        turns.TABLE,
        responses.TABLE,
        speaker_sets.SC,
        speaker_sets.SP,
        speaker_sets.SS,
        speaker_sets.RAND,
        candidates.TABLE,
        negatives.TABLE,
        set_similarity.TABLE,
        evaluators.TABLE,
        learning_curves.TABLE,
        scores.TABLE,
        identification.TABLE,
        annotations.ANNOTATED,
        annotations.ANNOTATIONS,
        annotations.HUMAN_SCORES,
        correlations.TABLE,
        agreement.TABLE,
        comparisons.COMPARISONS,
        comparisons.RANKINGS,
        rater_agreement.TABLE,
        studies.TABLE,
        ledger.RUNS,
        ledger.QUALITY_RESULTS,
    )
}


def fingerprint() -> str:
    """Changes whenever a table's columns or key do: files written under another one cannot be read."""
    shape = [(t.name, t.part, t.key, [(c.name, c.type) for c in t.columns]) for t in TABLES.values()]
    return hashlib.sha256(repr(shape).encode()).hexdigest()[:8]
