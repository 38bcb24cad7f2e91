"""Stage `train`: versions of evaluators, their promotion and transfer."""
