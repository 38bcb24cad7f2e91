"""Baselines that learn nothing: cosine and length."""
