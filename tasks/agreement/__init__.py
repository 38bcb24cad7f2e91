"""Annotated sets: landing, scoring, figures of agreement with human scores, reproduction."""
