"""An export of a Slack workspace: a folder a channel, in it a file a day; users.json with the names."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import ClassVar, NamedTuple

from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.files.streams import text_name
from ssrem.readers.json.values import parse_json
from ssrem.readers.metadata import escaped

_DAYS = "*/[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].json"
_USERS = ("users.json", "org_users.json")
_MESSAGES = (
    None,
    "me_message",
    "thread_broadcast",
    "reply_broadcast",
    "file_share",
    "bot_message",
    "tombstone",
)
"""Subtypes of messages that people or bots wrote, deleted ones included; all others are notices (joins, topics)."""
_BROADCASTS = ("thread_broadcast", "reply_broadcast")
"""Subtypes of messages of a thread that the channel shows, too."""
_LINK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


class _Account(NamedTuple):
    """What users.json says of a user: the name shown, and whether it is a bot."""

    name: str | None = None
    is_bot: bool = False


class SlackReader(Reader):
    """One conversation a channel, its days in order.

    Speakers are ids, with the name that users.json gives as metadata. A message's id is CHANNEL/TIME, as times are
    unique in a channel. Slack states only which message opened a thread, and lists all messages by time. A message of a
    thread is read as a reply to the thread's message before it; messages of the channel state no reply. Bots, which
    have ids of their own, are not people. Notices, and messages that are files alone, are left out. `line` counts the
    messages of a file. In texts, `<@U1>` is read as `@U1`, `<URL|label>` as its label, and `&amp;` as `&`.
    """

    format: ClassVar[str] = "slack"
    describes: ClassVar[str] = "the folder of a Slack export"
    not_people: ClassVar = ("USLACKBOT",)

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return path.is_dir() and next(path.glob(_DAYS), None) is not None

    def files(self) -> list[Path]:
        users = [self.path / name for name in _USERS]
        return sorted(filter(Path.is_file, (*self.path.glob(_DAYS), *users)))

    def records(self) -> Iterator[Record]:
        users: dict[object, _Account] = {}
        days = []
        threads: dict[object, object] = {}
        for path in self.files():
            if path.parent == self.path:
                users |= _accounts(parse_json(self.content(path)))
            else:
                days.append(path)
        for path in days:
            channel = text_name(path.parent)
            file = f"{channel}/{path.name}"
            content = self.content(path)
            rows = parse_json(content)
            if not isinstance(rows, list):
                reason = "broken_json" if rows is None else "malformed_row"
                yield problem(reason, file, 1, content, conversation_id=channel)
                continue
            for number, row in enumerate(rows, 1):
                if record := self._message(file, number, row, channel, users, threads):
                    yield record

    def _message(
        self,
        file: str,
        number: int,
        row: object,
        channel: str,
        users: Mapping[object, _Account],
        threads: MutableMapping[object, object],
    ) -> Record | None:
        """threads: the first message of each thread → its latest one so far, which this message becomes."""
        if not isinstance(row, dict):
            return problem("malformed_row", file, number, escaped(row), conversation_id=channel)
        if row.get("subtype") not in _MESSAGES:
            self.left_out["notices"] += 1
            return None
        text = row.get("text")
        if text == "":
            self.left_out["messages without text"] += 1
            return None
        user = row.get("user")
        known: dict[str, object] = {"conversation_id": channel}
        if row.get("bot_id") or row.get("subtype") == "bot_message":
            user = row.get("bot_id") or row.get("username") or user
            known["is_person"] = False
        account = users.get(user if isinstance(user, str) else None, _Account())
        if account.is_bot:
            known["is_person"] = False
        id, opener = (_scoped(channel, row.get(key)) for key in ("ts", "thread_ts"))
        reply_to = None
        if opener is not None and opener != id:
            known["in_thread"] = row.get("subtype") not in _BROADCASTS
            reply_to = opener
            if isinstance(opener, str):  # else the row is malformed
                reply_to = threads.get(opener, opener)
                threads[opener] = id
        fields = {
            "id": id,
            "speaker": user,
            "text": html.unescape(_LINK.sub(_shown, text)) if isinstance(text, str) else text,
            "time": row.get("ts"),
            "reply_to": reply_to,
            "name": account.name or row.get("username"),
        }
        return self.message(file, number, fields, escaped(row), **known)


def _accounts(users: object) -> Iterator[tuple[str, _Account]]:
    """Id and account of each user in users.json."""
    for user in users if isinstance(users, list) else ():
        if isinstance(user, dict) and isinstance(user.get("id"), str):
            profile = user.get("profile")
            shown = profile.get("display_name") if isinstance(profile, dict) else None
            name = shown or user.get("real_name") or user.get("name")
            yield user["id"], _Account(name if isinstance(name, str) else None, user.get("is_bot") is True)


def _scoped(channel: str, time: object) -> object:
    return f"{channel}/{time}" if isinstance(time, str | int | float) else time


def _shown(link: re.Match[str]) -> str:
    """A link, mention or channel as Slack displays it, but people by their ids."""
    sign, target, label = link.groups()
    if sign == "@":
        return f"@{target}"
    return {"#": "#", "!": "@"}.get(sign, "") + (label or target)
