"""Studies: what an evaluator's scores hang on besides quality. Pure functions: scores and texts in, findings out."""
