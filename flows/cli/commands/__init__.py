"""The verbs of the `ssrem` command, one group of verbs a file."""
