"""What went wrong in a home folder and what became of it: a log that `ssrem status` reads."""

from __future__ import annotations

import json
import os
from collections import deque
from contextlib import suppress
from datetime import datetime
from pathlib import Path

KEPT = 200
"""Lines of the log that stay."""

_LOG = "incidents.jsonl"


def note(root: Path, at: datetime, text: str) -> None:
    """Append one line, unless it is what the log ended with. A disk that is full must not stop a repair."""
    before = incidents(root)
    if before and before[-1][1] == text:
        return
    path = root / _LOG
    with suppress(OSError):
        if len(before) >= 2 * KEPT:
            draft = root / f"{_LOG}.tmp"
            draft.write_text("".join(_line(*one) for one in before[-KEPT:]), encoding="utf-8")
            draft.replace(path)
        with path.open("ab") as handle:
            # What a killed run left half written must not swallow this line.
            handle.write(b"" if _ends_whole(path) else b"\n")
            handle.write(_line(f"{at:%F %T}", text).encode())
            handle.flush()
            os.fsync(handle.fileno())


def incidents(root: Path, last: int | None = None) -> list[tuple[str, str]]:
    """When (UTC) and what, oldest first; the `last` ones, if given. Half-written lines are passed over."""
    found: deque[tuple[str, str]] = deque(maxlen=last)
    with suppress(OSError):
        for line in (root / _LOG).read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, KeyError, TypeError):
                row = json.loads(line)
                found.append((str(row["at"]), str(row["what"])))
    return list(found)


def _line(at: str, text: str) -> str:
    return json.dumps({"at": at, "what": text}, ensure_ascii=False) + "\n"


def _ends_whole(path: Path) -> bool:
    content = path.read_bytes()
    return not content or content.endswith(b"\n")
