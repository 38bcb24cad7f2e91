"""The `ssrem` command."""

from ssrem.errors import SsremError

STDIN = "\0-"
"""Replaces the word `-` in what cyclopts parses, since it takes every word with a leading hyphen for an option."""


class UsageError(SsremError):
    """A command that cannot be understood; the exit status is 2."""
