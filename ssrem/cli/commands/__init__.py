"""The verbs of the `ssrem` command, a file for each group of verbs."""
