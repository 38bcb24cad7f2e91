"""The `ssrem` command."""

from ssrem.errors import SsremError

STDIN = "\0-"
"""Stands for the word `-` in what cyclopts gets, to which all words with a hyphen are options."""


class UsageError(SsremError):
    """A command that cannot be understood; the exit status is 2."""
