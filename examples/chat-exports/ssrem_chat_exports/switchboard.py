"""The Switchboard Dialog Act Corpus: the CSV files of Potts (2011), or the .utt files of Jurafsky et al. (1997)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ssrem.readers.base import Reader, Record, malformed, problem
from ssrem.readers.cells import rows_of_cells
from ssrem.readers.files.streams import DumpFile, is_utf8

_METADATA = "swda-metadata.csv"
_FIRST_COLUMN = b"swda_filename"
_FILE_NAME = re.compile(r"FILENAME:\s*(\w+?)_(\w+?)_(\w+)\s*")
_UTTERANCE = re.compile(r"(?P<tag>\S+)\s+@?(?P<caller>[AB])\.\d+\s+utt\d+:(?P<text>.*)", re.DOTALL)

_NOISE = re.compile(r"<<[^<>]*>>|<[^<>]*>|\*\[\[[^\[\]]*\]\]|\*\w+")
"""Sounds such as `<laughter>`, and comments of the transcribers such as `*[[typo]]`."""
_MARKS = re.compile(r"\{[A-Z]\s?|[{}\[\]()+#@^]|(?<!\S)-*/|(?<!\S)-+(?!\S)|/(?!\S)")
"""`{D so, }` (discourse marker), `[ I, + I ]` (repair), `((word))` (uncertain), `#` (overlap), `/` (end of a unit)."""


class SwitchboardReader(Reader):
    """A file of a conversation, or a folder of such files, up to two levels deep.

    Speakers are the callers' numbers, as swda-metadata.csv of the folder or the head of a .utt file gives them;
    otherwise the seats A and B. Marks of disfluencies and noises are removed, all words stay. Utterances that are only
    noises are left out. Metadata: the dialog act (`act_tag`).
    """

    format: ClassVar[str] = "switchboard"
    describes: ClassVar[str] = "Switchboard Dialog Act Corpus, CSV or .utt files, one or a folder of them"

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        if file.path.is_dir():
            return bool(_transcripts(file.path))
        return file.head.startswith(_FIRST_COLUMN) or (b"FILENAME:" in file.head and b"utt1:" in file.head)

    def files_in(self, path: Path) -> list[Path]:
        if not path.is_dir():
            return [path]
        return [*_transcripts(path), *filter(Path.is_file, [path / _METADATA])]

    def records(self, file: DumpFile) -> Iterator[Record]:
        metadata, callers = file.path / _METADATA, dict[tuple[str, str], str]()
        if metadata.is_file():
            callers = self._callers(file / _METADATA)
        for path in (path for path in self.files_in(file.path) if path != metadata):
            part = file / str(path.relative_to(file.path)) if file.path.is_dir() else file
            is_table = part.head.startswith(_FIRST_COLUMN)
            yield from self._table(part, callers) if is_table else self._transcript(part)

    def _callers(self, metadata: DumpFile) -> dict[tuple[str, str], str]:
        """(conversation, A or B) → the number of the person who called or was called."""
        callers: dict[tuple[str, str], str] = {}
        rows = rows_of_cells(metadata.content(), ",")
        _, _, header, _ = next(rows, (1, b"", [], None))
        for _, _, cells, reason in rows:
            if reason or len(cells) != len(header):
                self.left_out[f"unreadable rows of {_METADATA}"] += 1
                continue
            row = dict(zip(header, cells, strict=True))
            for caller, column in (("A", "from_caller"), ("B", "to_caller")):
                if row.get("conversation_no") and row.get(column):
                    callers[row["conversation_no"], caller] = row[column]
        return callers

    def _table(self, part: DumpFile, callers: dict[tuple[str, str], str]) -> Iterator[Record]:
        file = part.name
        rows = rows_of_cells(part.content(), ",")
        _, _, header, _ = next(rows, (1, b"", [], None))
        for number, raw, cells, reason in rows:
            if reason or len(cells) != len(header):
                yield problem(reason or "malformed_row", file, number, raw.removesuffix(b"\n"))
                continue
            row = dict(zip(header, cells, strict=True))
            conversation, caller = row.get("conversation_no", ""), row.get("caller", "")
            id = f"{conversation}/{row['transcript_index']}" if row.get("transcript_index") else None
            fields = {"id": id, "speaker": callers.get((conversation, caller), caller)}
            fields |= {"text": row.get("text"), "act_tag": row.get("act_tag")}
            yield from self._message(file, number, fields, raw, conversation)

    def _transcript(self, part: DumpFile) -> Iterator[Record]:
        file = part.name
        conversation, callers = file.partition(".")[0], {}
        in_head, held, first = True, list[bytes](), 0
        for number, line in part.lines():
            text = line.decode("utf-8", "replace")
            if in_head:
                if named := _FILE_NAME.fullmatch(text.strip()):
                    conversation, *people = named.groups()
                    callers = dict(zip("AB", people, strict=True))
                in_head = not line.startswith(b"=====")
            elif held and line[:1].isspace() and line.strip() and not _UTTERANCE.match(text.strip()):
                held.append(line)  # a long utterance goes on
            elif line.strip():
                yield from self._utterance(file, first, held, conversation, callers)
                first, held = number, [line]
        yield from self._utterance(file, first, held, conversation, callers)

    def _utterance(
        self, file: str, number: int, lines: list[bytes], conversation: str, callers: dict[str, str]
    ) -> Iterator[Record]:
        if not lines:
            return
        raw = b"\n".join(lines)
        match = _UTTERANCE.fullmatch(raw.decode("utf-8", "replace").strip())
        if match is None or not is_utf8(raw):
            yield malformed(file, number, raw)
            return
        caller = match["caller"]
        fields: dict[str, str | None]
        fields = {"id": f"{conversation}/{number}", "speaker": callers.get(caller, caller)}
        fields |= {"text": match["text"], "act_tag": match["tag"]}
        yield from self._message(file, number, fields, raw, conversation)

    def _message(
        self, file: str, number: int, fields: dict[str, str | None], raw: bytes, conversation: str
    ) -> Iterator[Record]:
        written = fields["text"] or ""
        fields["text"] = cleaned(written)
        if written.strip() and not fields["text"]:
            self.left_out["noises without words"] += 1
            return
        yield self.message(file, number, fields, raw, conversation_id=conversation or None)


def cleaned(text: str) -> str:
    """The words of a transcribed utterance, without the marks of disfluencies, overlaps, units and noises."""
    words = " ".join(_MARKS.sub(" ", _NOISE.sub(" ", text)).split())
    return re.sub(r" ([,.?!])", r"\1", words).strip(" ,") if re.search(r"\w", words) else ""


def _transcripts(folder: Path) -> list[Path]:
    """The transcripts in a folder or up to two levels below."""
    names = (f"{levels}sw*.{ending}" for levels in ("", "*/", "*/*/") for ending in ("utt", "utt.csv"))
    return sorted(path for name in names for path in folder.glob(name) if path.is_file())
