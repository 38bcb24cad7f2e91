"""Pseudonyms at ingest, and the erasure of a person."""
