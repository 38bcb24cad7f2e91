"""Evaluators of dialogue responses that learn from people's own words, and their agreement with human scores."""

__version__ = "0.1.0"
