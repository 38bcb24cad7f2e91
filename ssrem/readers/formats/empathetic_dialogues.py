"""EmpatheticDialogues (Rashkin et al. 2019): train.csv, valid.csv and test.csv."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.files.streams import head, is_utf8

_COLUMNS = ("conv_id", "utterance_idx", "context", "prompt", "speaker_idx", "utterance", "selfeval", "tags")
_HEADER = ",".join(_COLUMNS).encode()


class EmpatheticDialoguesReader(Reader):
    """Rows of eight cells, or nine where candidates follow, which are dropped.

    Cells are not quoted, and a comma in one is written `_comma_`. Metadata: the emotion (`context`), the situation
    (`prompt`), `selfeval` and `tags`.
    """

    format: ClassVar[str] = "empathetic-dialogues"
    describes: ClassVar[str] = "a CSV file of EmpatheticDialogues, as published"
    aliases: ClassVar = {
        "conversation": ("conv_id",),
        "id": ("id",),
        "speaker": ("speaker_idx",),
        "text": ("utterance",),
    }
    ignored: ClassVar = ("utterance_idx",)

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return head(path).startswith(_HEADER)

    def records(self) -> Iterator[Record]:
        for number, line in self.lines(self.path):
            row = line.rstrip(b"\r")
            if not row.strip() or (number == 1 and row.startswith(_HEADER)):
                continue
            cells = row.decode("utf-8", "replace").split(",")
            if not is_utf8(row) or len(cells) not in (len(_COLUMNS), len(_COLUMNS) + 1):
                reason = "malformed_row" if is_utf8(row) else "undecodable"
                yield problem(reason, self.file, number, row)
                continue
            texts = (cell.replace("_comma_", ",").strip() or None for cell in cells)
            fields = dict(zip(_COLUMNS, texts, strict=False))
            if fields["conv_id"] and fields["utterance_idx"]:
                fields["id"] = f"{fields['conv_id']}/{fields['utterance_idx']}"
            yield self.message(self.file, number, fields, row)
