"""The ChitChat corpus: one JSON object, conversation id → messages, prompt, start and ratings."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from ssrem.errors import DumpError
from ssrem.readers.base import Reader, RowBuilder
from ssrem.readers.jsonmap import has_shape, members
from ssrem.readers.layout import Layout
from ssrem.readers.metadata import canonical_object, encodable, escaped
from ssrem.readers.rows import MalformedRowError, row_values
from ssrem.readers.streams import text_name

_PACKAGE, _FILE = "chitchat_dataset", "dataset.json"
_ALIASES = {"speaker": ("sender",), "text": ("text",), "time": ("timestamp",)}


def packaged_path() -> Path:
    """The corpus as the package chitchat-dataset ships it; DumpError where the package is not installed."""
    spec = find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder, _FILE)).is_file():
            return path
    raise DumpError("chitchat: the corpus is not installed; run pip install chitchat-dataset, or give a path")


class ChitchatReader(Reader):
    """Each conversation: its 'conversation' record (metadata: ratings, prompt, start), then its messages.

    Messages come in groups of one speaker, which the table `turns` restores later. `line` counts the
    messages of the file from 1, or the conversations for a conversation's own record. Messages have no ids.
    """

    format: ClassVar[str] = "chitchat"
    describes: ClassVar[str] = "the ChitChat corpus (name it chitchat) or a JSON file of its shape"

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return path.is_file() and has_shape(path, "messages")

    @classmethod
    def packaged(cls) -> Path:
        return packaged_path()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.bytes_read = 0
        builder = RowBuilder(self.batch_rows)
        file = text_name(self.path)
        layout = Layout(aliases=_ALIASES)
        message = 0
        for ordinal, (conversation, content) in enumerate(members(self.path, self._advance), 1):
            own: dict[str, object] = {"conversation_id": conversation}
            messages = content.get("messages") if isinstance(content, dict) else None
            if isinstance(content, dict):
                rest = {key: value for key, value in content.items() if key != "messages"}
                own["metadata"] = canonical_object(rest)
            if not encodable(own):
                builder.add_problem("undecodable", file, ordinal, escaped({conversation: content}))
                continue
            if not isinstance(messages, list):
                where = {"conversation_id": conversation}
                builder.add_problem("malformed_row", file, ordinal, escaped({conversation: content}), where)
                continue
            builder.add("conversation", file, ordinal, own)
            for entry in _flat(messages):
                message += 1
                _add(builder, layout, file, conversation, message, entry)
                yield from builder.full_batches()
        yield from builder.batches()

    def _advance(self, stored: int) -> None:
        self.bytes_read = stored


def _add(
    builder: RowBuilder, layout: Layout, file: str, conversation: str, message: int, entry: object
) -> None:
    where = {"conversation_id": conversation}
    try:
        if not isinstance(entry, dict):
            raise MalformedRowError
        values = row_values(entry, layout.plan(tuple(entry)), layout)
    except MalformedRowError:
        builder.add_problem("malformed_row", file, message, escaped(entry), where)
        return
    if encodable(values):
        builder.add("message", file, message, values | where)
    else:
        builder.add_problem("undecodable", file, message, escaped(entry), where)


def _flat(groups: list[object]) -> Iterator[object]:
    for group in groups:
        if isinstance(group, list):
            yield from group
        else:
            yield group
