"""Decides which column of a dump holds which field: the one that `--map` names, or one with a well-known name, unless
its first values contradict the name; all other columns are metadata."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ssrem.errors import DumpError, SsremError, first_of, short_repr
from ssrem.readers.times import Times
from ssrem.registry import did_you_mean

FIELDS: Mapping[str, str] = {
    "conversation": "conversation_id",
    "id": "utterance_id",
    "speaker": "speaker",
    "addressee": "addressee",
    "reply_to": "reply_to",
    "text": "text",
    "time": "time",
    "person": "person",
}
"""Fields of `--map` → columns of SOURCE_SCHEMA. person: who holds the seat, such as user, that `speaker` names."""

OF_ORDER = re.compile(
    r"(?i)(?:turn|utterance|message|msg|seq|sequence|position|order|step)(?:[_ ]?(?:index|idx|no|num|number|nr))?"
)
"""Names of columns that may number the messages of a conversation."""

OF_RESPONSES = (
    *("context", "response", "score", "criterion", "rater", "model", "reference", "dialogue"),
    *("separator", "decimal"),
)
"""Fields of `--map` for rated responses, some of which apply to responses to score, too; see docs/annotated-sets.md."""

SCORE_OF = "score."
"""Prefix of a field of raters' columns: `score.NAME=A+B`: A and B hold two raters' scores for the criterion NAME."""

SIGNS = ("separator", "decimal")
"""Fields that name no column, but the text between turns, or the decimal sign of scores."""

ALIASES: Mapping[str, tuple[str, ...]] = {
    "conversation": (
        *("conversation_id", "conversation", "dialogue_id", "dialog_id", "conv_id", "thread_id"),
        *("conversationid", "session_id", "chat_id", "message_tree_id", "channel_id"),
        *("ticket_id", "case_id", "conversation_sid"),
    ),
    "id": (
        *("utterance_id", "id", "message_id", "msg_id", "utt_id", "messageid", "tweet_id"),
        *("comment_id", "event_id"),
    ),
    "speaker": (
        *("speaker", "speaker_id", "sender", "author", "user", "user_id", "speakerid", "userid", "username"),
        *("nick", "from", "author_id", "authorid", "sender_id", "senderid", "sender_name", "role"),
    ),
    "addressee": ("addressee", "addressee_id", "recipient", "listener", "to", "in_reply_to_user_id"),
    "reply_to": (
        *(
            "reply_to",
            "replyto",
            "in_reply_to",
            "parent_id",
            "in_reply_to_status_id",
            "in_response_to_tweet_id",
        ),
        *("reply_to_message_id", "in_reply_to_id", "parent_comment_id"),
    ),
    "text": ("full_text", "text", "utterance", "message", "body", "content", "message_text"),
    "time": (
        *("time", "timestamp", "created_at", "datetime", "date", "created_date", "create_time", "created"),
        *("created_utc", "sent_at", "tstamp", "timestamp_ms", "ts", "date_time", "sent_on", "published_at"),
        "created_date_time",
    ),
    "context": (
        *("context", "history", "dialogue_context", "prompt", "question", "query"),
        *("user_message", "user_input", "instruction", "input"),
    ),
    "response": (
        *("response", "reply", "completion", "answer"),
        *("bot_response", "bot_message", "model_response", "output"),
    ),
    "score": ("score", "rating", "overall"),
    "criterion": ("criterion", "dimension", "aspect"),
    "rater": (
        *("rater", "rater_id", "annotator", "annotator_id", "worker_id", "workerid", "participant"),
        *("participant_id", "rater_name", "rater_email"),
    ),
    "model": ("model", "model_name", "system"),
    "reference": ("reference", "references"),
    "dialogue": ("dialogue_id", "dialogue", "dialog_id", "conversation_id"),
    "response_id": ("id", "response_id", "example_id"),
}
"""Field of dumps, of rated responses or of responses to score → well-known names of columns, which need no `--map`,
best first, in the form of `normalise`."""

IDS_OF_PEOPLE = (
    *("id_str", "id", "user_id", "userId", "accountId", "username", "screen_name", "login", "email", "name"),
    *("displayName", "uuid"),
)
"""Where a speaker is an object: the keys whose value may identify the person, best first."""

NEEDED = ("conversation", "speaker", "text")
"""The fields that every message must have."""

OF_FILE = "@file"
"""Given instead of a column of conversation ids, as in `--map conversation=@file`: each file is a conversation."""

OF_REPLIES = "@replies"
"""Given instead of a column of conversation ids: the first message of a chain of replies names the conversation."""

OF_ROW = "@row"
"""Given instead of a column of conversation ids: each row is a conversation, such as a question and its answer."""

WITHOUT_CONVERSATIONS = (
    "conversation=@file if each file is a conversation, conversation=@row if each row is one, or "
    "conversation=@replies if replies tell them apart"
)
"""What error messages suggest for a dump that has no column of conversation ids."""

HOLDERS = frozenset(
    (
        *("user", "usr", "human", "customer", "client", "visitor", "guest", "consumer", "contact", "caller"),
        *("end-user", "end_user", "enduser", "end user", "requester", "lead", "patient"),
        *("inbound", "incoming"),
    )
)
"""Names of roles, in lower case, that people hold."""

ROLES = HOLDERS.union(
    ("assistant", "system", "sys", "bot", "chatbot", "agent", "operator", "model", "ai", "gpt"),
    ("advisor", "admin", "rep", "representative", "support", "staff", "outbound", "outgoing", "ivr"),
    ("virtual assistant", "live agent", "human agent", "wizard", "apprentice"),
)
"""Names of roles, in lower case, which are not names of people; `0_Wizard` counts as such a role, too."""

USER_ROLES = ("user", "human")
"""Roles in chat logs of the one who is answered."""
SILENT_ROLES = ("system", "developer", "tool", "function")
"""Roles in chat logs whose messages nobody said."""

_SAID = {*ALIASES["text"], *ALIASES["context"], *ALIASES["response"]}
"""Last words of the names of columns that hold what one side said, such as `user_message`."""
_MOST_LISTED, _MOST_NAMED = 30, 10
_VAGUE = ("recipient", "to")
"""Names of columns that may hold something other than the person addressed, such as a channel."""
OF_PATH = "--map "
"""Prefix of the keys under which messages hold the values of `--map` paths; no data have such keys."""
FEW = 5
"""Fewest values that can contradict the name of their column."""


def checked_mapping(
    mapping: Mapping[str, str | Sequence[str]] | None,
    fields: Collection[str] = FIELDS.keys(),
    error: type[SsremError] = DumpError,
) -> dict[str, tuple[str, ...]]:
    """The mapping with every value as a tuple of columns: "A+B" is split, unless the field is one of SIGNS.

    fields: those allowed; `score` allows SCORE_OF with any name, too. Raises `error` for another field or a column
    without a name.
    """
    checked: dict[str, tuple[str, ...]] = {}
    for field, columns in (mapping or {}).items():
        if field not in fields and not (field.startswith(SCORE_OF) and "score" in fields):
            raise error(
                f"--map {field}=…: there is no field {field!r}{did_you_mean(field, fields)}; the fields are "
                f"{', '.join(fields)}"
            )
        texts = columns.split("+") if isinstance(columns, str) and field not in SIGNS else columns
        names = (texts,) if isinstance(texts, str) else texts
        checked[field] = tuple(names) if isinstance(names, Sequence) else ()
        if not checked[field] or not all(isinstance(name, str) and name for name in checked[field]):
            raise error(f"--map {field}={columns}: write FIELD=COLUMN or FIELD=COLUMN+COLUMN")
    return checked


_OF_TURNS = ("content", "text", "value", "utterance", "utt", "message")
"""Keys of a turn that may hold its text, best first."""


def turn_text(turn: Any) -> Any:
    """The text of a turn that is a message of a chat log, "" if its role is one of SILENT_ROLES; any other
    turn unchanged.

    If the text is a list of parts, those with words are joined by newlines, as OpenaiReader does.
    """
    if not isinstance(turn, Mapping):
        return turn
    if turn.get("role") in SILENT_ROLES:
        return ""
    text = next((turn[key] or "" for key in _OF_TURNS if key in turn), turn)
    if not isinstance(text, list):
        return text
    parts = [
        part.get("text", part.get("refusal", "")) if isinstance(part, Mapping) else part for part in text
    ]
    return "\n".join(filter(None, parts)) if all(isinstance(part, str) for part in parts) else turn


@lru_cache(4096)
def normalise(name: str) -> str:
    """A column's name in the form of well-known names: lower case, with `_` for each run of other characters."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


@lru_cache(4096)
def by_words(name: str) -> str:
    """A column's name in the form of `normalise`, but with `_` also between words as in `createdAt`."""
    return normalise(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name))


def joiner(field: str) -> str:
    """The text that joins the values of a field that comes from several columns."""
    return " " if field in ("text", "time") else ":"


@dataclass(frozen=True)
class ColumnsOfFields:
    """Which columns of a table or keys of a row hold which field.

    sources: field → its columns, in the order in which they are joined. metadata: the columns that no field uses.
    ambiguous: whether several columns have well-known names of one field, so that a row that lacks one uses another.
    """

    sources: Mapping[str, tuple[str, ...]]
    metadata: tuple[str, ...]
    ambiguous: bool


class FieldNames:
    """Finds the fields of a set of columns by their names.

    mapping: field → columns by `--map`. aliases: field → its well-known names. ignored: columns that are dropped.
    instead: OF_FILE, OF_ROW or OF_REPLIES, if `--map` gives it instead of a column of conversation ids, else "".
    unwrapped: a column whose object's members become metadata themselves (ConvoKit's `meta`). times: parses the times.
    """

    def __init__(
        self,
        mapping: Mapping[str, tuple[str, ...]] | None = None,
        aliases: Mapping[str, tuple[str, ...]] = ALIASES,
        ignored: Iterable[str] = (),
        unwrapped: str | None = None,
    ) -> None:
        self.mapping = dict(mapping or {})
        wanted = self.mapping.get("conversation", ())
        self.instead = wanted[0] if wanted in ((OF_FILE,), (OF_ROW,), (OF_REPLIES,)) else ""
        if self.instead:
            del self.mapping["conversation"]
            aliases = {**aliases, "conversation": ()}
        self.unwrapped = unwrapped
        self.times = Times()
        self._ranks = {
            field: {name: rank for rank, name in enumerate(names)} for field, names in aliases.items()
        }
        self._ignored = frozenset(ignored)
        self._plans: dict[tuple[str, ...], ColumnsOfFields] = {}
        self.passed_over: set[str] = {""}
        self.map(self.mapping)

    def pass_over(self, columns: Iterable[str]) -> None:
        """From now on, do not take these columns for fields by their names, since their values contradict them."""
        self.passed_over.update(columns)
        self._plans.clear()

    def map(self, mapping: Mapping[str, tuple[str, ...]]) -> None:
        """Use this mapping from now on."""
        self.mapping = dict(mapping)
        self._mapped = {column for columns in mapping.values() for column in columns}
        self._plans.clear()

    @property
    def needed(self) -> list[str]:
        """The fields that must have columns: those of NEEDED, without `conversation` if `instead` replaces it, but with
        `id` and `reply_to` if that is OF_REPLIES."""
        needed = [field for field in NEEDED if field != "conversation" or not self.instead]
        return [*needed, *(("id", "reply_to") if self.instead == OF_REPLIES else ())]

    def known(self, field: str, columns: Iterable[str]) -> list[str]:
        """The columns whose well-known names say that they hold the field, best first; none if `--map` names the field.
        Names that are recognised only when split into words (`createdAt`) come after all others."""
        ranks = {} if field in self.mapping else self._ranks.get(field, {})
        free = set(columns) - self._mapped - self._ignored - self.passed_over
        # Not for texts: a column `fullText` beside a message, or a list of messages, is not the text of a message.
        apart = free if field != "text" else ()
        words = {column: by_words(column) for column in apart if normalise(column) not in ranks}
        known = {column: words.get(column, normalise(column)) for column in free}
        return sorted(
            (column for column in free if known[column] in ranks),
            key=lambda c: (c in words, ranks[known[c]], c != known[c], c),
        )

    def plan(self, columns: tuple[str, ...]) -> ColumnsOfFields:
        """Which of these columns hold which field."""
        if plan := self._plans.get(columns):
            return plan
        known = {field: self.known(field, columns) for field in FIELDS}
        sources: dict[str, tuple[str, ...]]
        sources = {field: (names[0],) for field, names in known.items() if names}
        sources |= {field: names for field, names in self.mapping.items() if set(names) <= set(columns)}
        used = {column for parts in sources.values() for column in parts}
        rest = sorted(set(columns) - used - self._mapped - self._ignored - {""})
        ordered = {field: sources[field] for field in FIELDS if field in sources}
        plan = ColumnsOfFields(ordered, tuple(rest), any(len(names) > 1 for names in known.values()))
        if len(self._plans) < 1024:  # rows that always have new keys must not fill the memory
            self._plans[columns] = plan
        return plan


def check_header(
    path: Path,
    header: Sequence[str],
    mapping: Mapping[str, Sequence[str]],
    error: type[SsremError],
    kind: str = "column",
) -> None:
    """Raise `error` if a table has a column twice, or lacks one that `--map` names. kind: column, or key of JSON."""
    twice = next((name for i, name in enumerate(header) if name in header[:i]), None)
    if twice is not None:
        raise error(f"{path}: the {kind} {twice!r} is there twice; rename one")
    for column in (column for columns in mapping.values() for column in columns):
        if column not in header:
            raise error(
                f"{path}: --map names the {kind} {column!r}, which is not there; "
                f"the {kind}s are {listed(header)}"
            )


def unknown_columns(
    path: Path,
    header: Sequence[str],
    missing: Sequence[str],
    error: type[SsremError],
    kind: str = "column",
    example: object = None,
) -> SsremError:
    """The error for a table in which no column is known to hold the `missing` fields. example: one of its rows."""
    way_out = f", or {WITHOUT_CONVERSATIONS}" if "conversation" in missing and error is DumpError else ""
    header = [name for name in header if not name.startswith(OF_PATH)]
    row = "" if example is None else f"; a row is {short_repr(example, 300)}"
    example_of = f"{missing[0]}={kind.upper()}{' or KEY.KEY' if kind == 'key' else ''}"
    said = [name for name in header if by_words(name).rpartition("_")[2] in _SAID]
    if error is DumpError and "text" in missing and len(said) == 2:
        example_of = f"text={'+'.join(said)}, if a row holds what both sides said"
    return error(
        f"{path}: no {kind} is known as {' or '.join(missing)}; the {kind}s are {listed(header)}{row}; "
        f"say which is which with --map, for example --map {example_of}{way_out}"
    )


def listed(header: Sequence[str]) -> str:
    """The names of the first columns of a table, as error messages list them."""
    names = ", ".join(header[:_MOST_LISTED]) + (", …" if len(header) > _MOST_LISTED else "")
    return names or "none"


def weigh(layout: FieldNames, rows: Sequence[Mapping[str, Any]], conversations: Sequence[object]) -> None:
    """Make the layout pass over columns whose well-known names say that they hold a field, but whose values contradict.

    Values fit their name if most texts are not lists or objects, most addressees speak, most messages have an id of
    their own in their conversation, and replies do not refer to a few names that are no message's id, such as those
    of folders. Of several columns that may name the speaker, the first is taken in which most
    conversations have several speakers, or a column of ids for the same people. conversations: shape (rows,), what
    tells the conversations of the rows apart where no column does.
    """
    columns = tuple(dict.fromkeys(name for row in rows for name in row))

    def values(field: str) -> list[Any]:
        names = layout.plan(columns).sources.get(field, ())
        parts = [tuple(_plain(row.get(name)) for name in names) for row in rows]
        return [None if not part or None in part else part if len(part) > 1 else part[0] for part in parts]

    known_as = zip(conversations, values("conversation"), strict=True)
    of = [one if known is None else known for one, known in known_as]

    def are_texts(name: str) -> bool:
        kinds = [isinstance(row[name], list | dict) for row in rows if row.get(name) is not None]
        return len(kinds) < FEW or 2 * sum(kinds) <= len(kinds)

    def are_ids(_: str) -> bool:
        given = [(one, id) for one, id in zip(of, values("id"), strict=True) if id is not None]
        return len(given) < FEW or 2 * len(set(given)) > len(given)

    def are_lists(name: str) -> bool:
        given = [row[name] for row in rows if row.get(name) is not None]
        return bool(given) and all(isinstance(value, list) for value in given)

    def speak(name: str) -> bool:
        if are_lists(name):
            return False
        pairs = zip(values("speaker"), values("addressee"), strict=True)
        told = [(str(by), str(to)) for by, to in pairs if to is not None]
        known = set(map(str, values("speaker")))
        # Numbers of channels and the like may equal those of speakers by chance; then some equal the sender's own.
        chance = normalise(name) in _VAGUE and 50 * sum(to == by for by, to in told) >= len(told)
        return len(told) < FEW or (2 * sum(to in known for _, to in told) >= len(told) and not chance)

    def reply(name: str) -> bool:
        if are_lists(name):
            return False
        given = [str(value) for value in values("reply_to") if value is not None]
        answered = not {*given}.isdisjoint(map(str, values("id")))
        return len(given) < FEW or answered or 5 * len({*given}) > len(given)

    candidates = layout.known("speaker", columns)
    if len(candidates) > 1:
        chosen = _speaker({name: [_plain(row.get(name)) for row in rows] for name in candidates}, of)
        layout.pass_over(name for name in candidates[: candidates.index(chosen)])
    for field, fit in {"text": are_texts, "addressee": speak, "id": are_ids, "reply_to": reply}.items():
        while (known := layout.known(field, columns)) and not fit(known[0]):
            layout.pass_over(known[:1])


def _plain(value: Any) -> Any:
    """The value in a form that can be compared: a list or object, such as one about a person, as text, "" as None."""
    return str(value) if isinstance(value, list | dict | bool) else None if value == "" else value


def _speaker(candidates: Mapping[str, list[Any]], conversations: Sequence[object]) -> str:
    """The column that names the speaker. candidates: column → its values, best column first."""

    def differ(name: str) -> bool:
        of: dict[object, list[Any]] = defaultdict(list)
        for conversation, value in zip(conversations, candidates[name], strict=True):
            of[conversation].append(value)
        long = [said for said in of.values() if len(said) > 1]
        return 2 * sum(len(set(said)) > 1 for said in long) >= max(1, len(long))

    several = list(filter(differ, candidates))
    chosen = several[0] if several else next(iter(candidates))
    for name in several:
        if normalise(name).endswith("id") and not normalise(chosen).endswith("id"):
            pairs = set(zip(candidates[name], candidates[chosen], strict=True))
            if len(pairs) == len({id for id, _ in pairs}):  # an id has one name
                return name
    return chosen


def told(sources: Mapping[str, Sequence[str]], unused: Sequence[str]) -> str:
    """A sentence that says which columns are read as which field, and which are not used."""
    read = ", ".join(f"{field} from {'+'.join(names)!r}" for field, names in sources.items())
    left = [name or "a column without a name" for name in unused]
    return f"read {read}" + (f"; not used: {first_of(left, _MOST_NAMED)}" if left else "")


def falls(values: Sequence[object], conversations: Sequence[str]) -> bool:
    """Whether any of the values is a number that is lower than an earlier one of the same conversation."""
    latest: dict[str, float] = {}
    for written, of in zip(values, conversations, strict=True):
        with suppress(TypeError, ValueError):
            value = float(written)  # type: ignore[arg-type]
            if value < latest.get(of, value):
                return True
            latest[of] = value
    return False
