"""Transformers, by name or folder: loading, pooling, adapters, and what makes them fast on a processor."""
