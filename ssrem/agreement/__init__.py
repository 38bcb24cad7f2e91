"""Scores and human scores → correlations, identification, similarity of sets. Pure functions."""
