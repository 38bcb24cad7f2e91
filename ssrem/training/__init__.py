"""One training loop for all that learns by gradient steps; evaluators and negatives build on it."""
