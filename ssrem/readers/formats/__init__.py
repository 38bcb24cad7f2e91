"""Formats: how the content of each is recognised, and what its records are."""
