"""DailyDialog (Li et al. 2017): dialogues_text.txt, and other text with `__eou__` at the end of each utterance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.files.streams import excerpt, head, is_utf8

_END = b"__eou__"


class DailyDialogReader(Reader):
    """One conversation per line, with the line's number as its id; two seats, A and B, speak in turn."""

    format: ClassVar[str] = "dailydialog"
    describes: ClassVar[str] = "lines of utterances that end with __eou__, as DailyDialog is published"

    @classmethod
    def sniff(cls, path: Path) -> bool:
        lines = [line for line in head(path).split(b"\n")[:-1] or [head(path)] if line.strip()]
        ending = [line.rstrip().endswith(_END) for line in lines]
        return bool(lines) and ending[0] and sum(ending) > len(ending) / 2

    @classmethod
    def near_miss(cls, path: Path) -> str | None:
        lines = head(path).split(b"\n")
        if _END not in lines[0] or b"," in lines[0].partition(_END)[0][:40]:
            return None
        number, line = next(((n, line) for n, line in enumerate(lines, 1) if _END not in line), (1, lines[0]))
        return f"line {number} does not end with __eou__: {excerpt(line)}"

    def records(self) -> Iterator[Record]:
        for number, line in self.lines(self.path):
            if not line.strip():
                continue
            if not is_utf8(line) or not line.rstrip().endswith(_END):
                reason = "malformed_row" if is_utf8(line) else "undecodable"
                yield problem(reason, self.file, number, line, conversation_id=str(number))
                continue
            for at, text in enumerate(line.decode().rstrip().removesuffix("__eou__").split("__eou__")):
                fields = {"speaker": "AB"[at % 2], "text": text.strip()}
                yield self.message(self.file, number, fields, line, conversation_id=str(number))
