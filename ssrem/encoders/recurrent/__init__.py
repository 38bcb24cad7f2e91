"""Hierarchical recurrent networks over word vectors, and the sequences of words that they read."""
