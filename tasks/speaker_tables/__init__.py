"""Stage `tables`: turns, responses, the four speaker sets, candidates and negatives."""
