"""Scores and human scores → agreement with its intervals and tests, identification, set similarity. Pure functions."""
