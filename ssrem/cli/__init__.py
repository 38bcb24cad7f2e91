"""The `ssrem` command, which starts the flows."""
