"""Measures how far an evaluator can be trusted, from people's labels: see `validate` of ssrem.validation.validation."""

from __future__ import annotations

REQUIRABLE = {
    "spearman": "at least",
    "pearson": "at least",
    "kendall": "at least",
    "low": "at least",
    "precision": "at least",
    "tpr": "at least",
    "fpr": "at most",
    "copied": "at most",
}
"""Measures that `--require` takes, and on which side of the required value they have to be."""
