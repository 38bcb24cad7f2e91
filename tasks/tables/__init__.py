"""Stages `tables` and `negatives`: turns, responses, the four sets of each speaker, candidates, and negatives."""

from ssrem.tasks.tables.negatives import make_negatives
from ssrem.tasks.tables.speaker_tables import build, candidate_sources, without_tables

__all__ = ["build", "candidate_sources", "make_negatives", "without_tables"]
