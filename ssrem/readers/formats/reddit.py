"""Reddit's comments and submissions, as Pushshift and its successors publish them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from ssrem.readers.base import Reader, Record, malformed, problem
from ssrem.readers.files.streams import DumpFile, text_name
from ssrem.readers.rows import MalformedRowError

_GONE = ("[deleted]", "[removed]")


class RedditReader(Reader):
    """JSON lines with comments and submissions in any order, in a file or a folder of files; files that begin with
    submissions alone are read first.

    A conversation is a submission with the comments below it; its id is that of the submission with the prefix `t3_`.
    The text of a submission, the first message, is its title and, if there is one, its text. Ids of comments have the
    prefix `t1_`. Authors who are gone stay as `[deleted]`. `&amp;`, `&lt;` and `&gt;` are read as the signs for which
    Reddit writes them.
    """

    format: ClassVar[str] = "reddit"
    describes: ClassVar[str] = "comments and submissions of Reddit as Pushshift wrote them, one object a line"
    joins_files: ClassVar[bool] = True
    aliases: ClassVar = {"speaker": ("author",), "time": ("created_utc",)}
    not_people: ClassVar = (*_GONE, "AutoModerator")
    ignored: ClassVar = ("id", "name", "link_id", "parent_id", "title", "selftext", "body")

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        return any(map(_prefix, file.first_rows))

    @classmethod
    def order_of(cls, file: DumpFile) -> int:
        return any(_prefix(row) == "t1_" for row in file.first_rows)  # submissions precede comments

    def records(self, file: DumpFile) -> Iterator[Record]:
        name = text_name(file.path.absolute(), self.path)
        for number, row, raw in file.rows():
            if not isinstance(row, dict):
                yield malformed(name, number, raw, "broken_json")
                continue
            try:
                known = _known(row)
            except MalformedRowError:
                yield problem("malformed_row", name, number, raw)
            else:
                yield self.message(name, number, row, raw, **known)


def _prefix(row: Mapping[str, Any]) -> str | None:
    """`t1_` for a comment, `t3_` for a submission, None for something else."""
    if {"body", "link_id"} <= row.keys():
        return "t1_"
    return "t3_" if {"title", "selftext", "author"} <= row.keys() else None


def _known(row: Mapping[str, Any]) -> dict[str, str | None]:
    """The columns whose values have to be computed from the row. Raises MalformedRowError."""
    prefix, id, parent = _prefix(row), _text(row, "id"), row.get("parent_id")
    if not prefix or not id or not isinstance(parent, str | int | None):
        raise MalformedRowError
    own = _prefixed(prefix, id)
    if prefix == "t3_":
        title, text = _text(row, "title"), _text(row, "selftext")
        text = "\n\n".join(filter(None, (title, None if text in _GONE else text)))
        return {"conversation_id": own, "utterance_id": own, "text": text or None}
    if isinstance(parent, int):  # some dumps write ids of comments as numbers, without a prefix
        parent = np.base_repr(parent, 36).lower() if parent > 0 else None
    return {
        "conversation_id": _prefixed("t3_", _text(row, "link_id")),
        "utterance_id": own,
        "reply_to": parent if parent and parent.startswith("t3_") else _prefixed("t1_", parent),
        "text": _text(row, "body"),
    }


def _text(row: Mapping[str, Any], key: str) -> str | None:
    """The text of a key, in which the signs that Reddit escapes are restored. MalformedRowError if it is not a text."""
    text = row.get(key)
    if not isinstance(text, str | None):
        raise MalformedRowError
    return text and text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _prefixed(prefix: str, id: str | None) -> str | None:
    return id and prefix + id.removeprefix(prefix)
