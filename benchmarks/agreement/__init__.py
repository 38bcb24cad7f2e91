"""Agreement of every evaluator with human scores of the same annotated responses, beside the papers' figures."""
