"""Likelihood under causal and masked language models."""
