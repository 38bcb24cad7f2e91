"""ConvoKit corpus folders: utterances.jsonl, conversations.json, speakers.json."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from ssrem.errors import DumpError
from ssrem.readers.base import RowBuilder
from ssrem.readers.jsonl import JsonlReader
from ssrem.readers.jsonmap import members
from ssrem.readers.layout import Layout
from ssrem.readers.metadata import canonical_object, encodable, escaped

_UTTERANCES, _CONVERSATIONS = "utterances.jsonl", "conversations.json"
_PARTS = (_UTTERANCES, _CONVERSATIONS, "speakers.json", "users.json", "corpus.json", "index.json")
# `root` and `user` are what versions before 2.0 wrote.
_ALIASES = {
    "conversation": ("conversation_id", "root"),
    "id": ("id",),
    "speaker": ("speaker", "speaker_id", "user"),
    "reply_to": ("reply_to",),
    "text": ("text",),
    "time": ("timestamp",),
}


class ConvokitReader(JsonlReader):
    """First the conversations, in the order of conversations.json, then the utterances.

    The members of `meta` are the metadata. `vectors`, names of matrices that lie beside, and speakers.json,
    which says nothing of conversations, are left out. `line` of a conversation is its ordinal.
    """

    format: ClassVar[str] = "convokit"
    describes: ClassVar[str] = "a folder that ConvoKit dumped"
    takes_mapping: ClassVar[bool] = False

    def _make_layout(self) -> Layout:
        return Layout(aliases=_ALIASES, ignored=("vectors",), unwrapped="meta")

    @property
    def _lines_path(self) -> Path:
        return self.path / _UTTERANCES

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return (path / _UTTERANCES).is_file()

    def check(self) -> None:
        if not self._lines_path.stat().st_size:
            raise DumpError(f"{self._lines_path}: the file is empty; give a folder with conversations in it")
        for name in _PARTS:
            part = self.path / name
            if not part.is_file() and (part.exists() or part.is_symlink()):
                raise DumpError(f"{part}: is not a file, or a link to none; copy the folder again")
        super().check()

    def files(self) -> list[Path]:
        return sorted(self.path / name for name in _PARTS if (self.path / name).is_file())

    @property
    def total_bytes(self) -> int:
        read = (self.path / _CONVERSATIONS, self._lines_path)
        return sum(file.stat().st_size for file in read if file.is_file())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.bytes_read = 0
        if (self.path / _CONVERSATIONS).is_file():
            yield from self._conversations()
        yield from self._lines(self._from(self.bytes_read))

    def _from(self, before: int) -> Callable[[int], None]:
        return lambda stored: self._advance(before + stored)

    def _conversations(self) -> Iterator[pa.RecordBatch]:
        path = self.path / _CONVERSATIONS
        builder = RowBuilder(self.batch_rows)
        for ordinal, (conversation, content) in enumerate(members(path, self._advance), 1):
            # Before 2.3 the meta was not a member of its own.
            own = content if isinstance(content, dict) else {}
            meta = own["meta"] if isinstance(own.get("meta"), dict) else own
            metadata = canonical_object({key: value for key, value in meta.items() if key != "vectors"})
            values = {"conversation_id": conversation, "metadata": metadata}
            if encodable(values):
                builder.add("conversation", _CONVERSATIONS, ordinal, values)
            else:
                raw = escaped({conversation: content})
                builder.add_problem("undecodable", _CONVERSATIONS, ordinal, raw)
            yield from builder.full_batches()
        yield from builder.batches()
