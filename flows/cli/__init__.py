"""The `ssrem` command: how a person starts the flows."""
