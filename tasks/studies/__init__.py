"""Stage `study`: confounders of the scores, and learning from few or noisy labels."""
