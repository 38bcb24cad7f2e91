"""Stage `ingest`: lands dumps as corpora."""
