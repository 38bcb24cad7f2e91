"""Reddit's comments and submissions, as Pushshift and its successors publish them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ssrem.readers.base import Reader, Record, no_object, problem
from ssrem.readers.files.streams import files_of, text_name
from ssrem.readers.json.rows import first_objects
from ssrem.readers.rows import MalformedRowError

_GONE = (None, "", "[deleted]", "[removed]")


class RedditReader(Reader):
    """One object a line, comments and submissions in any order, in a file or a folder of files, of which those that
    begin with submissions alone are read first.

    A conversation is a submission with the comments below it; its id is that of the submission with the prefix `t3_`.
    The text of a submission, the first message, is its title and, if there is one, its text. Ids of comments have the
    prefix `t1_`. Authors who are gone stay as `[deleted]`. `&amp;`, `&lt;` and `&gt;`, which Reddit escapes, are read
    as the signs.
    """

    format: ClassVar[str] = "reddit"
    describes: ClassVar[str] = "comments and submissions of Reddit as Pushshift wrote them, one object a line"
    joins_files: ClassVar[bool] = True
    aliases: ClassVar = {"speaker": ("author",), "time": ("created_utc",)}
    not_people: ClassVar = ("[deleted]", "[removed]", "AutoModerator")
    ignored: ClassVar = ("id", "name", "link_id", "parent_id", "title", "selftext", "body")

    @classmethod
    def sniff(cls, path: Path) -> bool:
        heads = [rows for file in files_of(path) if (rows := first_objects(file))]
        return bool(heads) and all(
            any(_is_comment(row) or _is_submission(row) for row in rows) for rows in heads
        )

    def records(self) -> Iterator[Record]:
        files = {file: any(map(_is_comment, first_objects(file))) for file in self.files()}
        for file in sorted(files, key=lambda file: files[file]):  # submissions precede comments
            name = text_name(file, self.path)
            for number, row, raw in self.rows(file):
                if not isinstance(row, dict):
                    yield no_object(name, number, raw)
                    continue
                try:
                    known = _known(row)
                except MalformedRowError:
                    yield problem("malformed_row", name, number, raw)
                else:
                    yield self.message(name, number, row, raw, **known)


def _is_comment(row: Mapping[str, Any]) -> bool:
    return {"body", "link_id"} <= row.keys()


def _is_submission(row: Mapping[str, Any]) -> bool:
    return {"title", "selftext", "author"} <= row.keys()


def _known(row: Mapping[str, Any]) -> dict[str, str | None]:
    """The fields that are computed from the row. Raises MalformedRowError."""
    id, parent = _text(row, "id"), row.get("parent_id")
    if not id or not isinstance(parent, str | int | None):
        raise MalformedRowError
    if _is_comment(row):
        if isinstance(parent, int):  # some dumps write ids of comments as numbers, without a prefix
            parent = np.base_repr(parent, 36).lower() if parent > 0 else None
        return {
            "conversation_id": _prefixed("t3_", _text(row, "link_id")),
            "utterance_id": _prefixed("t1_", id),
            "reply_to": parent if parent and parent.startswith("t3_") else _prefixed("t1_", parent),
            "text": _text(row, "body"),
        }
    if not _is_submission(row):
        raise MalformedRowError
    own = _prefixed("t3_", id)
    parts = [_text(row, "title"), _text(row, "selftext")]
    text = "\n\n".join(part for part in parts if part not in _GONE)
    return {"conversation_id": own, "utterance_id": own, "text": text or None}


def _text(row: Mapping[str, Any], key: str) -> str | None:
    """A text, in which Reddit escapes three signs."""
    text = row.get(key)
    if not isinstance(text, str | None):
        raise MalformedRowError
    return text and text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _prefixed(prefix: str, id: str | None) -> str | None:
    return id and prefix + id.removeprefix(prefix)
