"""One file a format: how its content is recognised, and what its records are."""
