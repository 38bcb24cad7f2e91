"""Stage `score`: candidates and samples under an evaluator, in batches and shards."""
