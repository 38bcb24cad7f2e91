"""What a command without a terminal says on stderr besides how far it is, that the small corpus is small, and which
columns were read."""

from __future__ import annotations

import re

PROGRESS = re.compile(
    r"ssrem: .+: (read \w+ from '.*|too small to judge a training by: .*|started|done in \d.* s( \(.*\))?|"
    r"\d.* s so far.*)"
)


def other_lines(stderr: str) -> list[str]:
    """The lines that are not about progress."""
    return [line for line in stderr.splitlines() if not PROGRESS.fullmatch(line)]
