"""Reddit's comments and submissions, as Pushshift and its successors publish them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from ssrem.readers.base import Reader, Record, no_object, problem
from ssrem.readers.files.streams import files_of, text_name
from ssrem.readers.json.rows import first_objects

_ESCAPED = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}
"""The three signs that Reddit escapes in titles and texts."""
_GONE = ("", "[deleted]", "[removed]")


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
        return bool(heads) and all(any(map(_prefix, rows)) for rows in heads)

    @classmethod
    def near_miss(cls, path: Path) -> str | None:
        for file in files_of(path):
            for number, row in enumerate(first_objects(file), 1):
                if "subreddit" in row and not _prefix(row):
                    lacking = "link_id" if "body" in row else "title"
                    return f"{text_name(file)} row {number} has a subreddit, but no {lacking}"
        return None

    def files(self) -> list[Path]:
        return self.parts or files_of(self.path)

    def records(self) -> Iterator[Record]:
        for file in sorted(self.files(), key=_has_comments):
            name = text_name(file, self.path)
            for number, row, raw in self.rows(file):
                if not isinstance(row, dict):
                    yield no_object(name, number, raw)
                    continue
                known = _known(row)
                if known is None:
                    yield problem("malformed_row", name, number, raw)
                else:
                    yield self.message(name, number, row, raw, **known)


def _has_comments(file: Path) -> bool:
    """Whether there are comments, which the submissions that they belong to must precede, at the start of a file."""
    return any(_prefix(row) == "t1_" for row in first_objects(file))


def _prefix(row: Mapping[str, Any]) -> str | None:
    """`t1_` for a comment, `t3_` for a submission, None for something else."""
    if "body" in row and "link_id" in row:
        return "t1_"
    return "t3_" if "title" in row and "selftext" in row and "author" in row else None


def _known(row: Mapping[str, Any]) -> dict[str, str | None] | None:
    """The fields that are computed from the row; None for a row of another form."""
    prefix, id = _prefix(row), row.get("id")
    names = ("title", "selftext") if prefix == "t3_" else ("body", "link_id")
    texts = [_unescaped(row.get(name)) for name in names]
    parent = row.get("parent_id")
    whole = prefix and isinstance(id, str) and id and all(isinstance(text, str | None) for text in texts)
    if not whole or not isinstance(parent, str | int | None):
        return None
    own = f"{prefix}{str(id).removeprefix(str(prefix))}"
    if prefix == "t3_":
        title, text = texts
        parts = [part for part in (title, None if text in _GONE else text) if part]
        return {"conversation_id": own, "utterance_id": own, "text": "\n\n".join(parts) or None}
    text, link = texts  # a link has no such signs
    link = link and f"t3_{link.removeprefix('t3_')}"
    return {"conversation_id": link, "utterance_id": own, "reply_to": _parent(parent), "text": text}


def _unescaped(text: Any) -> Any:
    return re.sub("&(?:amp|lt|gt);", lambda sign: _ESCAPED[sign[0]], text) if isinstance(text, str) else text


def _parent(id: str | int | None) -> str | None:
    """The full id of what a comment replies to; some dumps write ids of comments as numbers, without a prefix."""
    if isinstance(id, int):
        digits = ""
        while id > 0:
            id, digit = divmod(id, 36)
            digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
        id = digits
    return (id if id.startswith(("t1_", "t3_")) else f"t1_{id}") if id else None
