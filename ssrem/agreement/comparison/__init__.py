"""Which evaluator agrees better: significance tests, rankings, non-inferiority."""
