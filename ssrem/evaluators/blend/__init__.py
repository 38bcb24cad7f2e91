"""A weighted blend of other evaluators."""
