"""Stage `ingest`: dumps become corpora."""
