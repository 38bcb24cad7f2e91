"""PersonaChat (Zhang et al. 2018) in ParlAI's text format, as train_self_original.txt and the other files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.files.streams import head, is_utf8

_NUMBERED = re.compile(r"([0-9]{1,9}) (.*)", re.DOTALL)
_PERSONA = re.compile(r"(your|partner's) persona: ")
_SILENCE = "__SILENCE__"


class PersonaChatReader(Reader):
    """Numbered lines `N TEXT ⇥ ANSWER ⇥ ⇥ CANDIDATES`: what `partner` says, then what `self` answers.

    A number that does not grow starts a new conversation, which is called FILE:ORDINAL. Both speakers are seats.
    Candidates are dropped; lines of personas, and `__SILENCE__` where `self` speaks first, are left out.
    """

    format: ClassVar[str] = "personachat"
    describes: ClassVar[str] = "a text file of PersonaChat or ConvAI2, as ParlAI publishes it"

    @classmethod
    def sniff(cls, path: Path) -> bool:
        first = head(path).partition(b"\n")[0].decode("utf-8", "replace")
        numbered = _NUMBERED.match(first)
        if numbered is None or numbered[1] != "1":
            return False
        return bool(_PERSONA.match(numbered[2])) or numbered[2].count("\t") in (1, 3)

    def records(self) -> Iterator[Record]:
        conversations, last = 0, 0
        for ordinal, line in self.lines(self.path):
            row = line.rstrip(b"\r")
            if not row.strip():
                continue
            numbered = _NUMBERED.fullmatch(row.decode("utf-8", "replace"))
            if numbered is None or not is_utf8(row):
                reason = "malformed_row" if is_utf8(row) else "undecodable"
                yield problem(reason, self.file, ordinal, row)
                continue
            conversations += int(numbered[1]) <= last or not conversations
            last = int(numbered[1])
            if _PERSONA.match(numbered[2]):
                self.left_out["lines of personas"] += 1
                continue
            id = f"{self.file.partition('.')[0]}:{conversations}"
            for speaker, text in zip(("partner", "self"), numbered[2].split("\t"), strict=False):
                if text == _SILENCE:
                    self.left_out["silences"] += 1
                    continue
                fields = {"speaker": speaker, "text": text}
                yield self.message(self.file, ordinal, fields, row, conversation_id=id)
