"""A language model behind an OpenAI-compatible endpoint as a judge of responses."""
