"""Exports of chat programs: Slack, Mattermost, Discord and Telegram. A conversation is a channel, chat or thread.

Speakers are ids, with the names shown as metadata. Notices, and messages without text such as pictures, are left out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

from ssrem.readers.base import Reader, Record, malformed, problem
from ssrem.readers.files.streams import DumpFile, text_name
from ssrem.readers.formats.chats import ChatReader, Said
from ssrem.readers.json_values import parse_json
from ssrem.readers.rows import MalformedRowError

_DAYS = "*/[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].json"
_LINK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


def _scoped(chat: str | None, id: object) -> str | None:
    """The id of a message as CHAT/ID, since it is unique in its chat alone. MalformedRowError if it is no id."""
    if isinstance(id, bool) or not isinstance(id, str | int | float | None):
        raise MalformedRowError
    return None if id is None else f"{chat}/{id}"


class SlackReader(ChatReader):
    """A Slack export, a folder for each channel with a file for each day: a channel is one conversation, in which the
    ids of messages are CHANNEL/TIME.

    Slack states only which message opened a thread, and lists all messages by time. A message of a thread is read as a
    reply to the thread's message before it; messages of the channel state no reply. Bots, which have ids of their own,
    are not people. `line` counts the messages of a file. In texts, `<@U1>` is read as `@U1`, `<URL|label>` as its
    label, and `&amp;` as `&`.
    """

    format: ClassVar[str] = "slack"
    describes: ClassVar[str] = "the folder of a Slack export"
    not_people: ClassVar = ("USLACKBOT",)
    optional: ClassVar = ("users.json", "org_users.json")
    broadcasts: ClassVar = ("thread_broadcast", "reply_broadcast")
    """Subtypes of messages in a thread that the channel shows, too."""
    written: ClassVar = (None, "me_message", "file_share", "bot_message", "tombstone", *broadcasts)
    """Subtypes of messages that people or bots wrote, deleted ones included; all others are notices (joins, topics)."""

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        return file.path.is_dir() and next(file.path.glob(_DAYS), None) is not None

    def files_in(self, path: Path) -> list[Path]:
        return [*super().files_in(path), *filter(Path.is_file, path.glob(_DAYS))]

    def records(self, file: DumpFile) -> Iterator[Record]:
        self._latest: dict[str, str | None] = {}  # id of a thread's first message → id of its latest so far
        users = super().files_in(file.path)
        contents = (parse_json((file / path.name).content()) for path in users)
        self._users = dict(user for content in contents for user in _users(content))
        for path in (path for path in sorted(self.files_in(file.path)) if path not in users):
            channel = text_name(path.parent)
            name, content = f"{channel}/{path.name}", (file / str(path.relative_to(file.path))).content()
            rows = parse_json(content)
            if isinstance(rows, list):
                for number, row in enumerate(rows, 1):
                    yield from self.entry(name, number, row, channel)
            else:
                reason = "broken_json" if rows is None else "malformed_row"
                yield problem(reason, name, 1, content, conversation_id=channel)

    def said(self, entry: Any, chat: str | None) -> Said | list[str]:
        kind, text, user = entry.get("subtype"), entry.get("text"), entry.get("user")
        if kind not in self.written:
            return ["notices"]
        if text == "":
            return ["messages without text"]
        speaks_as_bot = entry.get("bot_id") or kind == "bot_message"
        if speaks_as_bot:
            user = entry.get("bot_id") or entry.get("username") or user
        name, is_bot = self._users.get(user, (None, False))
        id, opener = (_scoped(chat, entry.get(key)) for key in ("ts", "thread_ts"))
        fields = {"id": id, "speaker": user, "time": entry.get("ts"), "name": name or entry.get("username")}
        fields["text"] = html.unescape(_LINK.sub(_shown, text))
        known = {"is_person": False} if speaks_as_bot or is_bot else {}
        if opener is not None and opener != id:
            fields["reply_to"], self._latest[opener] = self._latest.get(opener, opener), id
            known["in_thread"] = kind not in self.broadcasts
        return fields, known


def _users(users: object) -> Iterator[tuple[str, tuple[object, bool]]]:
    """Yield (id, (name shown, whether it is a bot)) of each user in the content of users.json."""
    for user in users if isinstance(users, list) else ():
        if isinstance(user, dict) and isinstance(user.get("id"), str):
            profile = user.get("profile")
            shown = profile.get("display_name") if isinstance(profile, dict) else None
            yield user["id"], (shown or user.get("real_name") or user.get("name"), user.get("is_bot") is True)


def _shown(link: re.Match[str]) -> str:
    """The text of a link, mention or channel as Slack displays it, except that people are shown by their ids."""
    sign, target, label = link.groups()
    if sign == "!" and label and (label.startswith("@") or target.startswith("date^")):
        return label
    return f"@{target}" if sign == "@" else {"#": "#", "!": "@"}.get(sign, "") + (label or target)


class DiscordReader(ChatReader):
    """A channel as DiscordChatExporter writes it: its 'conversation' record (metadata: guild, channel), then its
    messages; `line` is the number of a message in the file.

    The metadata of messages hold `bot` if the author is a bot. Bots are not people, nor is 'Deleted User', the account
    that stands for all deleted ones.
    """

    format: ClassVar[str] = "discord"
    describes: ClassVar[str] = "a channel that DiscordChatExporter wrote as JSON"
    not_people: ClassVar[tuple[str, ...]] = ("456226577798135808",)  # Deleted User
    replies: ClassVar = ("Reply", "19")
    """Message types of replies; older versions of the exporter write Discord's number of the type. The only other type
    that people write is `Default`; the rest are notices (joins, pins, calls, boosts) or commands to bots."""

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        return {"guild", "channel"} <= file.members.keys()

    @staticmethod
    def chats(export: Mapping[str, Any]) -> Iterator[tuple[object, dict[str, Any], object]]:
        """Yield (id, metadata, messages) of each chat in the file."""
        channel, about = export.get("channel"), {name: export.get(name) for name in ("guild", "channel")}
        id = channel.get("id", channel.get("name")) if isinstance(channel, dict) else None
        yield id, about, export.get("messages")

    def records(self, file: DumpFile) -> Iterator[Record]:
        line = 0
        for id, about, messages in self.chats(file.members):
            chat = str(id) if isinstance(id, str | int) else None
            if not isinstance(messages, list):
                yield malformed(file.name, line + 1, {**about, "messages": messages})
            elif messages:
                yield self.conversation(file.name, line + 1, chat, about)
                for line, message in enumerate(messages, line + 1):  # noqa: B020 (of all chats together)
                    yield from self.entry(file.name, line, message, chat)

    def said(self, entry: Any, chat: str | None) -> Said | list[str]:
        author, kind = entry["author"], entry.get("type", "Default")
        if kind not in ("Default", *self.replies):
            return ["notices"]
        if entry.get("content") == "":
            return ["messages without text"]
        reference = entry.get("reference") if kind in self.replies else None
        fields = {
            "id": entry.get("id"),
            "speaker": author.get("id"),
            "text": entry.get("content"),
            "time": entry.get("timestamp"),
            "reply_to": reference.get("messageId") if reference else None,
            "name": author.get("nickname") or author.get("name"),
        }
        return (
            ({**fields, "bot": True}, {"is_person": False}) if author.get("isBot") is True else (fields, {})
        )


class TelegramReader(DiscordReader):
    """Telegram Desktop's export of one chat or of all; the metadata of a conversation are its chat's name, type and id.

    Ids of messages, which start again in each chat, become CHAT/ID. Times are in UTC if the export states them so.
    """

    format: ClassVar[str] = "telegram"
    describes: ClassVar[str] = "result.json of Telegram Desktop, of one chat or of all"
    # Telegram's notifications, and the accounts in place of anonymous administrators, channels and replies.
    not_people = ("user777000", "user1087968824", "user136817688", "user1271266957")

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        about = file.members
        several = (about.get("chats"), about.get("left_chats"))
        return {"name", "type", "id", "messages"} <= about.keys() or any(
            isinstance(chats, dict) and "list" in chats for chats in several
        )

    @staticmethod
    def chats(export: Mapping[str, Any]) -> Iterator[tuple[object, dict[str, Any], object]]:
        groups = (export.get(name) for name in ("chats", "left_chats"))
        lists = (group.get("list") for group in groups if isinstance(group, dict))
        every = (
            chat for chats in lists if isinstance(chats, list) for chat in chats if isinstance(chat, dict)
        )
        for chat in (*([export] if "messages" in export else ()), *every):
            about = {name: chat[name] for name in ("name", "type", "id") if name in chat}
            yield chat.get("id", chat.get("name")), about, chat.get("messages")

    def said(self, entry: Any, chat: str | None) -> Said | list[str]:
        text = entry.get("text")
        if entry.get("type") != "message":
            return ["notices"]
        if isinstance(text, list):  # links, mentions and styles are objects
            text = "".join(part["text"] if isinstance(part, dict) else part for part in text)
        if text == "":
            return ["messages without text"]
        here = entry.get("reply_to_peer_id") is None  # else the message answered is in another chat
        fields = {
            "id": _scoped(chat, entry.get("id")),
            "speaker": entry.get("from_id"),
            "text": text,
            "time": entry.get("date_unixtime") or entry.get("date"),
            "reply_to": _scoped(chat, entry.get("reply_to_message_id")) if here else None,
            "name": entry.get("from"),
        }
        return fields, {}


class MattermostReader(Reader):
    """A bulk export of Mattermost: JSON lines, of which those of type `post` and `direct_post` each hold a thread, a
    post with its replies. Lines of other types (users, channels, teams) are left out.

    Posts have no ids: the conversation of a post is TEAM/CHANNEL/TIME/USER, of a direct post MEMBERS/TIME/USER. Replies
    are exported in no order, and read in that of their times. Those who post as bots or webhooks are not people.
    """

    format: ClassVar[str] = "mattermost"
    describes: ClassVar[str] = "a bulk export of Mattermost, JSON lines with a `type`"
    aliases: ClassVar = {"speaker": ("user",), "text": ("message",), "time": ("create_at",)}
    ignored: ClassVar = ("replies",)

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        return any(isinstance(row.get(kind), dict) for row in file.first_rows for kind in _posted(row))

    def records(self, file: DumpFile) -> Iterator[Record]:
        for number, row, raw in file.rows():
            if not isinstance(row, dict):
                yield malformed(file.name, number, raw, "broken_json")
            elif not (kinds := _posted(row)):
                self.left_out["lines that are no posts"] += 1
            elif isinstance(post := row.get(*kinds), dict) and isinstance(post.get("replies") or [], list):
                members = post.get("channel_members")
                where = "+".join(map(str, members)) if isinstance(members, list) else post.get("channel")
                names = (post.get("team"), where, post.get("create_at"), post.get("user"))
                thread = "/".join(str(name) for name in names if name)
                for message in (post, *_in_order(post.get("replies") or [])):
                    about = message if isinstance(message, dict) else {}
                    if str(about.get("type") or "").startswith("system_"):
                        self.left_out["notices"] += 1
                        continue
                    props = about.get("props")
                    by_bot = isinstance(props, dict) and "true" in (
                        props.get("from_bot"),
                        props.get("from_webhook"),
                    )
                    known = {"is_person": False} if by_bot else {}
                    yield self.message(file.name, number, message, raw, conversation_id=thread, **known)
            else:
                yield problem("malformed_row", file.name, number, raw)


def _in_order(replies: list[Any]) -> list[Any]:
    """The replies by their times, if all have one."""
    if all(isinstance(reply, dict) and isinstance(reply.get("create_at"), int) for reply in replies):
        return sorted(replies, key=itemgetter("create_at"))
    return replies


def _posted(row: Mapping[str, Any]) -> list[str]:
    """The kind of a line that is a post, as a list with one member; empty for other lines."""
    return [kind for kind in ("post", "direct_post") if row.get("type") == kind]
