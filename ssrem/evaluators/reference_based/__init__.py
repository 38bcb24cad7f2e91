"""Evaluators that compare a response with a reference: overlap, embeddings, BERTScore."""
