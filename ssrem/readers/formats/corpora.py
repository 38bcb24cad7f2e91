"""Research corpora as they are published: conversations in one JSON object, in lines of text, or in two files."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from ssrem.errors import DumpError
from ssrem.files import package_folder
from ssrem.readers.base import Reader, Record, malformed, problem
from ssrem.readers.fields import ALIASES
from ssrem.readers.files.streams import DumpFile, is_utf8


class TopicalChatReader(Reader):
    """Topical-Chat (Gopalakrishnan et al. 2019): for each conversation its 'conversation' record (metadata: article,
    configuration, ratings), then its messages.

    The speakers `agent_1` and `agent_2` are seats, since who the workers were is not published. In records of messages
    `line` counts the messages of the file, in records of conversations the conversations.
    """

    format: ClassVar[str] = "topical-chat"
    describes: ClassVar[str] = "a file of conversations of Topical-Chat, as published"
    aliases: ClassVar = {"speaker": ("agent",), "text": ("message",)}
    messages: ClassVar[str] = "content"
    """The key of a conversation that lists its messages, or groups of them."""

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        first = next(iter(file.members.values()), None)
        message = first.get(cls.messages) if isinstance(first, dict) else None
        while isinstance(message, list):  # groups of messages
            message = message[0] if message else None
        return (
            isinstance(message, dict)
            and {cls.aliases["speaker"][0], cls.aliases["text"][0]} <= message.keys()
        )

    def records(self, file: DumpFile) -> Iterator[Record]:
        line = 0
        for ordinal, (id, content) in enumerate(file.members.items(), 1):
            about = dict(content) if isinstance(content, dict) else {}
            groups = about.pop(self.messages, None)
            conversation = self.conversation(file.name, ordinal, id, about, content)
            if "problem" not in conversation and not isinstance(groups, list):
                conversation = problem("malformed_row", file.name, ordinal, {id: content}, conversation_id=id)
            yield conversation
            for group in groups if isinstance(groups, list) and "problem" not in conversation else ():
                for message in group if isinstance(group, list) else [group]:
                    line += 1
                    yield self.message(file.name, line, message, conversation_id=id)


class ChitchatReader(TopicalChatReader):
    """The ChitChat corpus, with ratings, prompt and start as metadata. Messages come in groups of one speaker, which
    the table `turns` restores later, and have no ids."""

    format: ClassVar[str] = "chitchat"
    describes: ClassVar[str] = "the ChitChat corpus (name it chitchat) or a JSON file of its shape"
    aliases: ClassVar = {"speaker": ("sender",), "text": ("text",), "time": ("timestamp",)}
    messages: ClassVar[str] = "messages"

    @classmethod
    def packaged(cls) -> Path:
        """The corpus as the package chitchat-dataset ships it; DumpError if the package is not installed."""
        folder = package_folder("chitchat_dataset")
        if folder is None or not (folder / "dataset.json").is_file():
            raise DumpError(
                "chitchat: the corpus is not installed; pip install 'ssrem[train]', or give a path"
            )
        return folder / "dataset.json"


class _LinesReader(Reader):
    """Base of formats with lines, each of which holds one or more messages of one conversation."""

    first: ClassVar[re.Pattern[str]]
    """Pattern that the beginning of the first line matches."""

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        return cls.first.match(file.first_line) is not None

    @abstractmethod
    def said(self, number: int, line: str) -> Iterable[dict[str, str | None]] | None:
        """The messages of a line; None if the line does not have the form of the format."""

    def records(self, file: DumpFile) -> Iterator[Record]:
        for number, raw in file.lines():
            if raw.strip():
                messages = self.said(number, raw.decode().rstrip("\r")) if is_utf8(raw) else None
                if messages is None:
                    yield malformed(file.name, number, raw)
                for message in messages or ():
                    yield self.message(file.name, number, message, raw)


class DailyDialogReader(_LinesReader):
    """DailyDialog (Li et al. 2017), dialogues_text.txt: one conversation in each line, with the line's number as its
    id. No speakers are named: two seats, A and B, speak in turn."""

    format: ClassVar[str] = "dailydialog"
    describes: ClassVar[str] = "lines of utterances that end with __eou__, as DailyDialog is published"
    first: ClassVar = re.compile(".*__eou__$")

    def said(self, number: int, line: str) -> Iterable[dict[str, str | None]] | None:
        *texts, rest = line.split("__eou__")
        if not texts or rest.strip():
            return None
        return [
            {"conversation_id": str(number), "speaker": "AB"[at % 2], "text": text.strip()}
            for at, text in enumerate(texts)
        ]


class PersonaChatReader(_LinesReader):
    """PersonaChat (Zhang et al. 2018) as ParlAI publishes it, numbered lines `N TEXT ⇥ ANSWER ⇥ ⇥ CANDIDATES`: what the
    seat `partner` says, then what the seat `self` answers.

    A number N that is not above the one before starts a new conversation, whose id is FILE:ORDINAL. Candidates are
    dropped; lines of personas, and `__SILENCE__` where `self` speaks first, are left out and counted.
    """

    format: ClassVar[str] = "personachat"
    describes: ClassVar[str] = "a text file of PersonaChat or ConvAI2, as ParlAI publishes it"
    first: ClassVar = re.compile(r"1 ((your|partner's) persona: |[^\t]*\t([^\t]*\t[^\t]*\t)?[^\t]*$)")

    def records(self, file: DumpFile) -> Iterator[Record]:
        self._stem, self._conversations, self._last = file.name.partition(".")[0], 0, 0
        yield from super().records(file)

    def said(self, number: int, line: str) -> Iterable[dict[str, str | None]] | None:
        digits, _, rest = line.partition(" ")
        if not digits.isdecimal():
            return None
        self._conversations += int(digits) <= self._last or not self._conversations
        self._last = int(digits)
        if rest.startswith(("your persona: ", "partner's persona: ")):
            self.left_out["lines of personas"] += 1
            return ()
        said = dict(zip(("partner", "self"), rest.split("\t"), strict=False))
        if said["partner"] == "__SILENCE__":
            self.left_out["silences"] += 1
            del said["partner"]
        id = f"{self._stem}:{self._conversations}"
        return [{"conversation_id": id, "speaker": who, "text": text} for who, text in said.items()]


class EmpatheticDialoguesReader(_LinesReader):
    """EmpatheticDialogues (Rashkin et al. 2019): rows of eight cells, or nine with candidates, which are dropped.
    Cells are not quoted; a comma within a cell is written `_comma_`."""

    format: ClassVar[str] = "empathetic-dialogues"
    describes: ClassVar[str] = "a CSV file of EmpatheticDialogues, as published"
    aliases: ClassVar = {**ALIASES, "speaker": ("speaker_idx",)}
    ignored: ClassVar = ("utterance_idx",)
    header: ClassVar = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags"
    first: ClassVar = re.compile(header)

    def said(self, number: int, line: str) -> Iterable[dict[str, str | None]] | None:
        if number == 1 and self.first.match(line):
            return ()
        cells = [cell.replace("_comma_", ",").strip() or None for cell in line.split(",")]
        if len(cells) not in (8, 9):
            return None
        row = dict(zip(self.header.split(","), cells, strict=False))
        whole = row["conv_id"] and row["utterance_idx"]
        return [{**row, "id": f"{row['conv_id']}/{row['utterance_idx']}" if whole else None}]


_LINES, _CONVERSATIONS = "movie_lines.txt", "movie_conversations.txt"
_SEPARATOR = re.compile(r" \+\+\+\$\+\+\+ ?")
_LINE_IDS = re.compile(r"\[ *'[^']+' *(?:, *'[^']+' *)*\]")


class CornellReader(Reader):
    """Cornell Movie-Dialogs: conversations in the order of movie_conversations.txt, each a record and its messages.

    A conversation's id is that of its first line; speaker and addressee are its two characters. A line that a
    conversation names but the corpus lacks is a 'malformed_row' with the conversation's bytes. Lines that no
    conversation names and malformed rows of movie_lines.txt come last. The rows of movie_lines.txt (35 MB as
    distributed) are in memory.
    """

    format: ClassVar[str] = "cornell"
    describes: ClassVar[str] = "the folder of the Cornell Movie-Dialogs Corpus, as distributed"
    is_text: ClassVar[bool] = False  # Latin-1, by its publisher
    required: ClassVar = (_LINES, _CONVERSATIONS)
    unread: ClassVar = ("movie_characters_metadata.txt", "movie_titles_metadata.txt")

    def records(self, file: DumpFile) -> Iterator[Record]:
        rows = dict(_rows(file / _LINES))
        # If several lines have the same id, the first one counts.
        numbers = {_SEPARATOR.split(row, 1)[0]: number for number, row in reversed(rows.items())}
        unnamed = dict.fromkeys(rows)  # numbers of the lines that no conversation has named yet
        for number, row in _rows(file / _CONVERSATIONS):
            fields, raw = _SEPARATOR.split(row), row.encode("latin-1")
            if len(fields) != 4 or not _LINE_IDS.fullmatch(fields[3].strip()):
                yield problem("malformed_row", _CONVERSATIONS, number, raw)
                continue
            *pair, movie, listed = fields
            ids = re.findall("'([^']+)'", listed)
            about = {"movie": movie, "characters": pair}
            yield self.conversation(_CONVERSATIONS, number, ids[0], about)
            for id in ids:
                if id in numbers:
                    unnamed.pop(numbers[id], None)
                    yield self._message(numbers[id], rows[numbers[id]], pair, conversation_id=ids[0])
                else:
                    known = {"conversation_id": ids[0], "utterance_id": id}
                    yield problem("malformed_row", _CONVERSATIONS, number, raw, **known)
        for number in unnamed:
            yield self._message(number, rows[number], [])

    def _message(self, number: int, row: str, pair: list[str], **known: str) -> Record:
        columns, raw = ("id", "speaker", "movie", "character", "text"), row.encode("latin-1")
        fields = dict(zip(columns, _SEPARATOR.split(row, 4), strict=False))
        if len(fields) < 4 or not (fields["id"] and fields["speaker"]):
            return problem("malformed_row", _LINES, number, raw)
        others = [character for character in pair if character != fields["speaker"]]
        if len(others) == 1:
            known["addressee"] = others[0]
        return self.message(_LINES, number, fields, raw, **known)


def _rows(file: DumpFile) -> Iterator[tuple[int, str]]:
    for number, line in file.lines():
        if line.strip():
            yield number, line.rstrip(b"\r").decode("latin-1")
