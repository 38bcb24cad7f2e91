"""Small dumps in the exact layouts of chat programs and published corpora; the texts are our own."""

from __future__ import annotations

import json
from pathlib import Path

Files = dict[str, bytes]
"""The files of a dump by their path in it; a dump that is one file has it under ""."""


def write_dump(files: Files, path: Path) -> Path:
    """Write the dump to `path`, which becomes a file or a folder."""
    if "" in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[""])
        return path
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode()


def _slack(text: str, ts: str, **more: object) -> dict[str, object]:
    return {"type": "message", **more, "text": text, "ts": ts}


SLACK: Files = {
    "users.json": _json(
        [
            {"id": "U1", "name": "ann", "real_name": "Ann Lee", "profile": {"display_name": "annie"}},
            {"id": "U2", "name": "bob", "real_name": "Bob Ray", "profile": {"display_name": ""}},
        ]
    ),
    "channels.json": _json([{"id": "C1", "name": "general", "members": ["U1", "U2"]}]),
    "general/2023-01-02.json": _json(
        [
            _slack("<@U1> has joined the channel", "1672617600.000100", subtype="channel_join", user="U1"),
            _slack(
                "Lunch &amp; a walk, <@U2>? See <https://example.org|the map> in <#C1|general>",
                "1672617601.000200",
                **{"client_msg_id": "5f0e", "user": "U1", "thread_ts": "1672617601.000200", "reply_count": 1},
                replies=[{"user": "U2", "ts": "1672704000.000300"}],
            ),
            _slack("ding", "1672617602.0", subtype="bot_message", bot_id="B1"),
            _slack("", "1672617603.000400", user="U2", files=[{"id": "F1"}]),
        ]
    ),
    "general/2023-01-03.json": _json(
        [
            _slack(
                *("Gladly", "1672704000.000300"),
                **{"user": "U2", "thread_ts": "1672617601.000200", "parent_user_id": "U1"},
            )
        ]
    ),
    "random/2023-01-02.json": _json([_slack("Hi", "1672617601.000200", user="U9")]),
}

_ANN = {"id": "11", "name": "ann", "discriminator": "0001", "nickname": "Annie", "isBot": False}
_BOB = {"id": "12", "name": "bob", "nickname": None, "isBot": False}
_HELPER = {"id": "13", "name": "helper", "nickname": "helper", "isBot": True}


def _discord(id: str, at: str, author: object, content: str, **more: object) -> dict[str, object]:
    message = {"id": id, "type": "Default", "timestamp": at, "timestampEdited": None, "isPinned": False}
    return {**message, "content": content, "author": author, "attachments": [], **more}


_DISCORD_MESSAGES: list[dict[str, object]] = [
    _discord("1", "2023-04-01T08:00:00.12+00:00", _ANN, "Joined the server.", type="GuildMemberJoin"),
    _discord("2", "2023-04-01T08:01:00.12+00:00", _ANN, "Are yours red yet? 🍅"),
    _discord("3", "2023-04-01T08:02:00+02:00", _BOB, "", attachments=[{"id": "5", "url": "x.org/t.png"}]),
    _discord(
        "4",
        "2023-04-01T10:03:00+02:00",
        _BOB,
        "Not one",
        type="Reply",
        reference={"messageId": "2", "channelId": "901", "guildId": "900"},
    ),
    _discord("5", "2023-04-01T08:04:00+00:00", _HELPER, "Water them daily"),
    {"id": "6", "type": "Default", "content": "nobody wrote this"},
]
DISCORD: Files = {
    "": _json(
        {
            "guild": {"id": "900", "name": "Garden", "iconUrl": "https://example.org/i.png"},
            "channel": {
                "id": "901",
                "type": "GuildTextChat",
                "category": "Text",
                "name": "tomatoes",
                "topic": None,
            },
            "dateRange": {"after": None, "before": None},
            "exportedAt": "2023-05-01T10:00:00+00:00",
            "messages": _DISCORD_MESSAGES,
            "messageCount": 6,
        }
    )
}


def _telegram(id: int, date: str, text: object, by: str | None = None, **more: object) -> dict[str, object]:
    sender = {"from_id": by} if by else {}
    message = {"id": id, "type": "message", "date": f"2023-02-{date}", **sender, **more}
    return {**message, "text": text, "text_entities": []}


_LINK = ["Look at ", {"type": "link", "text": "https://example.org"}, ", all"]
_TELEGRAM_CHAT = {
    "name": "Trip",
    "type": "private_group",
    "id": 77,
    "messages": [
        _telegram(
            *(1, "01T09:00:00", ""),
            **{"type": "service", "actor": "Ann", "actor_id": "user1", "action": "create_group"},
            **{"title": "Trip", "members": ["Ann", "Bob"], "date_unixtime": "1675242000"},
        ),
        _telegram(2, "01T10:01:00", _LINK, "user1", **{"from": "Ann", "date_unixtime": "1675242060"}),
        _telegram(
            *(3, "01T10:02:00", "Lovely", "user2"),
            **{"from": None, "reply_to_message_id": 2, "date_unixtime": "1675242120"},
        ),
        _telegram(
            4,
            "01T10:03:00",
            "",
            "user1",
            file="(File not included. Change data exporting settings to download.)",
            media_type="sticker",
        ),
        _telegram(5, "01T10:04:00", {"text": "odd"}, "user1"),
    ],
}
_TALK_OF_TWO = {
    **{"name": None, "type": "personal_chat", "id": 2},
    "messages": [_telegram(2, "02T10:01:00", "Home?", "user2", **{"from": "Bob"})],
}
TELEGRAM: Files = {"": _json(_TELEGRAM_CHAT)}
TELEGRAM_ALL: Files = {
    "": _json(
        {
            "about": "Here is the data you requested.",
            "personal_information": {"user_id": 1, "first_name": "Ann"},
            "chats": {
                "about": "This page lists all chats.",
                "list": [_TELEGRAM_CHAT, {"type": "saved_messages", "id": 1, "messages": []}, _TALK_OF_TWO],
            },
        }
    )
}


def _messenger(by: str, seconds: int, **more: object) -> dict[str, object]:
    return {"sender_name": by, "timestamp_ms": seconds * 1000, **more}


MESSENGER: Files = {
    "": _json(
        {
            "participants": [{"name": "Zo\u00c3\u00ab"}, {"name": "Bob"}],
            "messages": [
                _messenger("Bob", 1675242300, type="Call", content="Bob called you."),
                _messenger("Bob", 1675242240, photos=[{"uri": "a.jpg"}]),
                _messenger("Bob", 1675242120, content="Why not?"),
                _messenger("Bob", 1675242120, content="Sure \u00f0\u009f\u0098\u0080"),
                _messenger("Zo\u00c3\u00ab", 1675242060, content="A caf\u00c3\u00a9?"),
            ],
            "title": "Bob",
            "is_still_participant": True,
            "thread_path": "inbox/bob_12",
        }
    )
}

WHATSAPP: Files = {
    "": """12/30/22, 9:58 PM - Messages and calls are end-to-end encrypted. No one outside of this chat can read them.
12/30/22, 9:59\u202fPM - Ann Lee created group "Flat 4: all of us"
12/30/22, 9:59 PM - Ann Lee: Who has the key?
I looked: everywhere

Really
12/31/22, 12:05 AM - +49 170 0000000: I do
12/31/22, 12:06 AM - Ann Lee: <Media omitted>
12/31/22, 12:07 AM - Ann Lee: This message was deleted
1/1/23, 8:00 AM - Ann Lee: IMG-20230101-WA0001.jpg (file attached)
The door
1/1/23, 8:01 AM - Bob: Fine <This message was edited>
""".encode()
}
WHATSAPP_IOS: Files = {
    "": (
        "\u200e[31.12.22, 21:58:03] Flat 4: \u200eMessages and calls are end-to-end encrypted.\r\n"
        "[31.12.22, 21:59:04] ~\u202fAnn: Wer hat den Schlüssel?\r\n"
        "[31.12.22, 22:00:05] \u202a+49 170 0000000\u202c: Ich: hier\r\n"
        "\u200e[01.01.23, 00:00:06] ~\u202fAnn: \u200e<attached: 00000012-PHOTO-2023-01-01-00-00-06.jpg>\r\n"
        "\u200e[01.01.23, 00:00:07] ~\u202fAnn: Die Tür \u200e<attached: 00000013-PHOTO-2023-01-01-00-00-07.jpg>\r\n"
    ).encode()
}

WHATSAPP_CHINESE: Files = {
    "": "[2023/12/31 晚上11:59:01] Bob: 嗯\n[2024/1/1 凌晨12:10:01] Ann: 早\n2024年1月1日: 放假\n".encode()
}

_ASKED = {"agent": "agent_1", "sentiment": "Curious to dive deeper", "knowledge_source": ["FS1"]}
_ANSWERED = {"agent": "agent_2", "sentiment": "Happy", "knowledge_source": ["Personal Knowledge"]}
TOPICAL_CHAT: Files = {
    "": _json(
        {
            f"t_{name}": {
                "article_url": "https://example.org/a",
                "config": "C",
                "content": [
                    {"message": "Do you like boats?", **_ASKED, "turn_rating": "Good"},
                    {"message": "Small ones", **_ANSWERED, "turn_rating": ""},
                ],
                "conversation_rating": {"agent_1": "Good", "agent_2": "Excellent"},
            }
            for name in ("1", "2")
        }
    )
}

_SWDA = (
    b"swda_filename,ptb_basename,conversation_no,transcript_index,act_tag,caller,utterance_index,"
    b"subutterance_index,text,pos,trees,ptb_treenumbers\r\n"
)
SWITCHBOARD: Files = {
    "sw00utt/sw_0001_4325.utt.csv": _SWDA
    + b"sw00utt/sw_0001_4325.utt,4/sw4325,4325,0,o,A,1,1,"
    + b'"{F Uh, } hello, [ I, + I ] call #about# <laughter> dogs. /",,,\r\n'
    + b"sw00utt/sw_0001_4325.utt,4/sw4325,4325,1,x,B,2,1,<Throat_clearing>.,,,\r\n"
    + b'sw00utt/sw_0001_4325.utt,4/sw4325,4325,2,sd,B,2,2,"{D Well, } ((we)) have tw- three. -/",,,\r\n'
    + b"too,few\r\n",
    "swda-metadata.csv": b"conversation_no,talk_day,length,topic_description,prompt,from_caller,to_caller\n"
    b"4325,03/23/1992,10,DOGS,TALK OF DOGS.,1632,1519\n",
}
SWITCHBOARD_UTT: Files = {
    "": b"*x*                                                     *x*\n\n"
    b"FILENAME:\t4325_1632_1519\nTOPIC#:\t\t323\nDATE:\t\t920323\n\n"
    b"=========================================================\n\n\n"
    b"o          A.1 utt1: Hello there.  /\n\n"
    b"qy^d          @B.2 utt1: {C And, } you have, {F uh, }\n     dogs, *[[sic]] -- too? /\n"
    b"x          A.3 utt1: <laughter>.  /\n"
    b"not an utterance\n"
}

EMPATHETIC_DIALOGUES: Files = {
    "": b"conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"
    b'hit:7_conv:14,1,proud,My son said _comma_ well done.,12,He swam_comma_ at last. "Hurrah",5|5|5_2|2|5,\n'
    b"hit:7_conv:14,2,proud,My son said _comma_ well done.,31,How far?,5|5|5_2|2|5,\n"
    b"hit:7_conv:14,3,proud,My son said _comma_ well done.,12,A mile,5|5|5_2|2|5,<GRAM>,Yes|No\n"
    b"hit:7_conv:14,4,proud\n"
}

PERSONACHAT: Files = {
    "": b"1 your persona: i row boats.\n"
    b"2 partner's persona: i bake.\n"
    b"3 hello , what do you do ?\ti row . and you ?\t\tnothing .|i row . and you ?\n"
    b"4 i bake .\tbread ?\t\tbread ?|no .\n"
    b"1 your persona: i sing.\n"
    b"2 __SILENCE__\tgood evening\t\tgood evening|bye\n"
    b"no number\n"
}

PLUG_INS: dict[str, list[Files]] = {
    "switchboard": [SWITCHBOARD, SWITCHBOARD_UTT],
    "messenger": [MESSENGER],
    "whatsapp": [WHATSAPP, WHATSAPP_IOS, WHATSAPP_CHINESE],
}
"""Format that the package in examples/chat-exports adds → sound dumps of it."""


def _node(id: str, parent: str | None, role: str, *parts: str) -> dict[str, object]:
    content = {"content_type": "text", "parts": list(parts)}
    message = {"id": id, "author": {"role": role}, "create_time": 1718000000.5, "content": content}
    return {"id": id, "parent": parent, "children": [], "message": message if parts else None}


CHATGPT: Files = {
    "": _json(
        [
            {
                "title": "Boats",
                "create_time": 1718000000.0,
                "conversation_id": f"talk{number}",
                "current_node": "n3",
                "mapping": {
                    "root": _node("root", None, ""),
                    "n0": _node("n0", "root", "system", "be brief"),
                    "n1": _node("n1", "n0", "user", "Is the boat in?"),
                    "n2": _node("n2", "n1", "assistant", "an answer that was regenerated"),
                    "n3": _node("n3", "n1", "assistant", "Since noon.", "At pier 3."),
                },
            }
            for number in range(2)
        ]
    )
}

_ASKS = {"user": "ann", "message": "Is the boat in?", "create_at": 1718000000000}
_ANSWERS = [{"user": "bob", "message": "Since noon.", "create_at": 1718000001000}]
_LUNCH = {"user": "ann", "message": "Lunch?", "create_at": 1718000002000, "replies": None}
MATTERMOST: Files = {
    "": b"".join(
        json.dumps({"type": type, type: value}).encode() + b"\n"
        for type, value in (
            ("version", 1),
            ("user", {"username": "ann", "email": "ann@example.org"}),
            ("post", {"team": "crew", "channel": "pier", **_ASKS, "replies": _ANSWERS}),
            ("direct_post", {"channel_members": ["ann", "bob"], **_LUNCH}),
            ("post", 7),
        )
    )
}

EXPORTS: dict[str, list[Files]] = {
    "chatgpt": [CHATGPT],
    "mattermost": [MATTERMOST],
    "slack": [SLACK],
    "topical-chat": [TOPICAL_CHAT],
    "discord": [DISCORD],
    "telegram": [TELEGRAM, TELEGRAM_ALL],
    "personachat": [PERSONACHAT],
    "empathetic-dialogues": [EMPATHETIC_DIALOGUES],
}
"""Format → sound dumps of it."""
