"""ConvoKit corpus folders: utterances.jsonl, conversations.json, speakers.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from ssrem.readers.base import Record
from ssrem.readers.fields import ALIASES
from ssrem.readers.formats.jsonl import JsonlReader

_UTTERANCES, _CONVERSATIONS = "utterances.jsonl", "conversations.json"


class ConvokitReader(JsonlReader):
    """First the conversations, in the order of conversations.json, then the utterances.

    The members of `meta` are the metadata. `vectors`, the names of matrices in other files, and speakers.json, which
    says nothing about conversations, are left out. `line` of a conversation is its ordinal.
    """

    format: ClassVar[str] = "convokit"
    describes: ClassVar[str] = "a folder that ConvoKit dumped"
    takes_mapping: ClassVar[bool] = False
    aliases: ClassVar = {**ALIASES, "conversation": ("conversation_id", "root")}  # `root` before version 2.0
    ignored: ClassVar = ("vectors",)
    unwrapped: ClassVar = "meta"
    required: ClassVar = (_UTTERANCES,)
    optional: ClassVar = (_CONVERSATIONS,)
    unread: ClassVar = ("speakers.json", "users.json", "corpus.json", "index.json")

    @property
    def lines_path(self) -> Path:
        return self.path / _UTTERANCES

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return (path / _UTTERANCES).is_file()

    @classmethod
    def near_miss(cls, path: Path) -> str | None:
        return super(JsonlReader, cls).near_miss(path)

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        path = self.path / _CONVERSATIONS
        for ordinal, (id, content) in enumerate(self.members(path) if path.is_file() else (), 1):
            # Before 2.3 conversations had no member `meta`.
            about = content if isinstance(content, dict) else {}
            about = about["meta"] if isinstance(about.get("meta"), dict) else about
            about = {key: value for key, value in about.items() if key != "vectors"}
            yield self.conversation(_CONVERSATIONS, ordinal, id, about, content)
        yield from super().records()
