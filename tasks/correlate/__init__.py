"""Annotated sets: landing, scoring, and figures of agreement with human scores."""

from ssrem.tasks.correlate.sets import annotated_file, annotated_files, human_scores, overall_part_of, pulled
from ssrem.tasks.correlate.stage import (
    SET_ERRORS,
    correlate,
    correlate_all,
    correlate_files,
    correlate_landed,
    left_out,
)

__all__ = ["SET_ERRORS", "correlate", "correlate_all", "correlate_files", "correlate_landed", "left_out"]
__all__ += ["annotated_file", "annotated_files", "human_scores", "overall_part_of", "pulled"]
