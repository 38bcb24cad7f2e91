"""Tables that ingest fills: `corpora`, `conversations`, `utterances` and `quarantine`."""

from ssrem.schemas.contract import NotEmpty, OneOf, References, Table, at_least, columns

CORPORA = Table(
    name="corpora",
    grain="One row is a landed dump.",
    key=("corpus",),
    columns=columns(
        corpus="VARCHAR: name under which the dump landed",
        format="VARCHAR: reader that read it",
        source="VARCHAR: absolute path, or name, of the dump it was read from",
        sha256="VARCHAR: SHA-256 of the content, whatever its files are called; equal content lands once",
        bytes="BIGINT: size of the dump's files as stored, compressed or not",
        messages_read="BIGINT: messages that the reader found",
        utterances="BIGINT: messages that landed",
        quarantined="BIGINT: messages that did not land: messages_read - utterances",
        conversations="BIGINT: conversations with at least one landed message",
        speakers="BIGINT: distinct speakers of these messages",
        time_backwards="BIGINT: landed messages older than an earlier message of their conversation",
        speaker_scope="VARCHAR: person: an id names one person in the corpus; conversation: a seat in one "
        "conversation",
        landed_at="TIMESTAMP: start of its ingest, UTC; later corpora have later times",
    ),
    expectations=(
        NotEmpty(),
        OneOf("speaker_scope", ("person", "conversation")),
        *at_least(messages_read=1, utterances=1, quarantined=0, conversations=1, speakers=1),
    ),
)

CONVERSATIONS = Table(
    name="conversations",
    grain="One row is a conversation with at least one landed message.",
    key=("corpus", "conversation_id"),
    columns=columns(
        corpus="VARCHAR: corpus it belongs to",
        conversation_id="VARCHAR: id in the dump",
        conversation_no="BIGINT: rank by first message in the dump, from 0",
        started="TIMESTAMP?: time of its earliest message, UTC",
        messages="BIGINT: landed messages",
        participants="BIGINT: distinct speakers",
        ratings="VARCHAR?: JSON object: criterion to the score that participants gave",
        metadata="VARCHAR?: JSON object: the dump's other fields",
    ),
    expectations=(
        NotEmpty(),
        References(("corpus",), "corpora"),
        *at_least(conversation_no=0, messages=1, participants=1),
    ),
)

UTTERANCES = Table(
    name="utterances",
    grain="One row is one landed message.",
    key=("corpus", "utterance_id"),
    columns=columns(
        corpus="VARCHAR: corpus it belongs to",
        utterance_id="VARCHAR: id in the dump, CONVERSATION/ID where ids repeat across conversations; "
        "CONVERSATION#POSITION without one",
        conversation_id="VARCHAR: conversation it is part of",
        conversation_no="BIGINT: that conversation's rank in the dump, from 0",
        position="BIGINT: rank in the conversation, from 0, in the dump's order, but behind what it replies to",
        turn="BIGINT: rank of its turn in the conversation, from 0",
        answers="BIGINT?: rank of the turn that its turn answers: that of the message replied to, or the turn before "
        "(in Slack, outside threads) where none is named; null if it opens the conversation or what it replies to is "
        "not there",
        speaker="VARCHAR: who wrote it",
        addressee="VARCHAR?: who is addressed: by the dump, else the author of the message of its conversation "
        "that it replies to",
        addressee_from="VARCHAR?: where the addressee is known from: stated: the dump names them; reply: they wrote "
        "the message replied to; null without an addressee",
        is_person="BOOLEAN: false if the speaker is no person, such as a bot, a system or all deleted accounts: "
        "--not-people",
        reply_to="VARCHAR?: utterance_id of the message that it replies to, if the dump says so",
        reply_absent="BOOLEAN: whether it replies to a message that is not in its conversation: deleted, quarantined, "
        "forgotten, or absent from the dump",
        text="VARCHAR: the text as in the dump",
        time="TIMESTAMP?: time of the message, UTC",
        time_backwards="BOOLEAN: whether it is older than an earlier message of the conversation",
        metadata="VARCHAR?: JSON object: the dump's other fields",
    ),
    expectations=(
        NotEmpty(),
        References(("corpus", "conversation_id"), "conversations"),
        OneOf("addressee_from", ("stated", "reply")),
        *at_least(position=0, turn=0),
    ),
)

REASONS = {
    "broken_json": "the line is not a JSON object",
    "undecodable": "the bytes are not text in the dump's encoding",
    "malformed_row": "the row does not have the fields of its format",
    "speaker_count": "the row names more or fewer speakers than it has turns",
    "duplicate_conversation": "an earlier row has the same conversation id",
    "no_conversation": "the message names no conversation",
    "no_text": "the message has no text",
    "no_speaker": "the message has no speaker",
    "removed_text": "the text says only that a text was removed, or media left out",
    "duplicate_id": "an earlier message has the same id",
    "reply_cycle": "the message is part of a cycle of replies",
    "no_messages": "the conversation has no message that landed",
    "forgotten": "its speaker was forgotten on request; the row is empty",
}

QUARANTINE = Table(
    name="quarantine",
    grain="One row is a record of a dump that did not land.",
    key=("corpus", "row_no"),
    columns=columns(
        corpus="VARCHAR: corpus it belongs to",
        row_no="BIGINT: rank of the record in the dump, from 0; below 0 if forgotten after it landed",
        record="VARCHAR: message or conversation",
        file="VARCHAR: file of the dump",
        line="BIGINT?: line in that file, from 1; null if row_no is below 0",
        reason="VARCHAR: " + "; ".join(f"{code}: {meaning}" for code, meaning in REASONS.items()),
        raw="BLOB: the row: its exact bytes if it is unreadable, else its fields as JSON; empty if it is "
        "forgotten, or unreadable in a dump that landed with pseudonyms",
    ),
    expectations=(
        References(("corpus",), "corpora"),
        OneOf("record", ("message", "conversation")),
        OneOf("reason", tuple(REASONS)),
        *at_least(line=1),
    ),
)
