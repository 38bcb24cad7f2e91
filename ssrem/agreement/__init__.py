"""Scores and human scores → agreement with its intervals and tests, identification, set similarity. Pure functions."""

Z_95 = 1.959963984540054
"""The standard normal distribution's 97.5th percentile: half the width of a 95% interval in standard errors."""
