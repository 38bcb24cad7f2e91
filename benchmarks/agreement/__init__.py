"""Our figures beside the papers', for every evaluator, on the same annotated responses."""
