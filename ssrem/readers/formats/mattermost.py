"""A bulk export of Mattermost: JSON lines, of which those of type `post` and `direct_post` hold threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from ssrem.readers.base import Reader, Record, no_object, problem
from ssrem.readers.json.rows import first_objects

_POSTS = ("post", "direct_post")


class MattermostReader(Reader):
    """One conversation a thread: a post and its replies. Lines of other types (users, channels, teams) are left out.

    A post has no id: its conversation is CHANNEL/TIME/USER, of a direct one MEMBERS/TIME/USER.
    """

    format: ClassVar[str] = "mattermost"
    describes: ClassVar[str] = "a bulk export of Mattermost, JSON lines with a `type`"
    aliases: ClassVar = {"speaker": ("user",), "text": ("message",), "time": ("create_at",)}
    ignored: ClassVar = ("replies",)

    @classmethod
    def sniff(cls, path: Path) -> bool:
        rows = first_objects(path)
        return any(row.get("type") in _POSTS and isinstance(row.get(row["type"]), dict) for row in rows)

    def records(self) -> Iterator[Record]:
        for number, row, raw in self.rows(self.path):
            if not isinstance(row, dict):
                yield no_object(self.file, number, raw)
                continue
            kind = row.get("type")
            if kind not in _POSTS:
                self.left_out["lines that are no posts"] += 1
                continue
            post = row.get(kind)
            replies = post.get("replies") or [] if isinstance(post, dict) else None
            if not isinstance(post, dict) or not isinstance(replies, list):
                yield problem("malformed_row", self.file, number, raw)
                continue
            thread = _thread(post)
            for message in (post, *replies):
                yield self.message(self.file, number, message, raw, conversation_id=thread)


def _thread(post: Mapping[str, Any]) -> str:
    members = post.get("channel_members")
    where = "+".join(map(str, members)) if isinstance(members, list) else post.get("channel")
    return "/".join(
        str(part) for part in (post.get("team"), where, post.get("create_at"), post.get("user")) if part
    )
