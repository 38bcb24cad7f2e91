"""Readers of dumps: each format, a class in `formats`, becomes a stream of Arrow record batches of one raw schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ssrem.errors import DumpError
from ssrem.readers.fields import FIELDS, checked_mapping
from ssrem.readers.files.sources import Held, as_given, common_folder, is_archive, located, unpacked
from ssrem.readers.files.streams import (
    checked_encoding,
    chunks,
    declare,
    declare_guess,
    files_of,
    foreign,
    prefetched,
    text_name,
)
from ssrem.readers.times import checked_format
from ssrem.registry import did_you_mean, registered, with_installed

if TYPE_CHECKING:
    from ssrem.readers.base import Reader

__all__ = ["FIELDS", "FORMATS", "guess_format", "open_dump", "prefetched", "reader_class"]

_OWN = {
    "chatgpt": "ssrem.readers.formats.chats:ChatgptReader",
    "mattermost": "ssrem.readers.formats.exports:MattermostReader",
    "openai": "ssrem.readers.formats.chats:OpenaiReader",
    "sharegpt": "ssrem.readers.formats.chats:SharegptReader",
    "reddit": "ssrem.readers.formats.reddit:RedditReader",
    "irc": "ssrem.readers.formats.irc:IrcReader",
    "convokit": "ssrem.readers.formats.convokit:ConvokitReader",
    "cornell": "ssrem.readers.formats.corpora:CornellReader",
    "slack": "ssrem.readers.formats.exports:SlackReader",
    "chitchat": "ssrem.readers.formats.corpora:ChitchatReader",
    "topical-chat": "ssrem.readers.formats.corpora:TopicalChatReader",
    "discord": "ssrem.readers.formats.exports:DiscordReader",
    "telegram": "ssrem.readers.formats.exports:TelegramReader",
    "dailydialog": "ssrem.readers.formats.corpora:DailyDialogReader",
    "personachat": "ssrem.readers.formats.corpora:PersonaChatReader",
    "empathetic-dialogues": "ssrem.readers.formats.corpora:EmpatheticDialoguesReader",
    "jsonl": "ssrem.readers.formats.jsonl:JsonlReader",
    "parquet": "ssrem.readers.formats.parquet:ParquetReader",
    "tsv": "ssrem.readers.formats.delimited:TsvReader",
    "csv": "ssrem.readers.formats.delimited:CsvReader",
}
FORMATS: Mapping[str, str] = with_installed("ssrem.readers", _OWN)
"""Format → its reader, imported when first used; content is tried in this order, installed packages' formats first."""


_CHAT_LOGS = ("chatgpt", "openai", "sharegpt")

_ABOUT = re.compile(r"read.?me|licen[cs]e|copying", re.IGNORECASE)
"""Names of files about the dump, which hold no part of it."""


def reader_class(format: str) -> type[Reader]:
    """The reader of a format; DumpError that lists the formats for an unknown name."""
    if format not in FORMATS:
        raise DumpError(f"there is no format {format!r}{did_you_mean(format, FORMATS)}; {_formats()}")
    reader: type[Reader] = registered(FORMATS[format])
    return reader


def guess_format(path: Path) -> str | None:
    """The first format that the content of `path` looks like, or None."""
    if foreign(path):
        return None
    return next((format for format in FORMATS if reader_class(format).sniff(path)), None)


def open_dump(
    source: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,
    mapping: Mapping[str, str | Sequence[str]] | None = None,
    encoding: str | None = None,
    time_format: str | None = None,
    batch_rows: int = 65_536,
) -> Reader:
    """A reader for a file, folder, archive, pattern of files, URL, `-` (standard input), or several of them together,
    or for the corpus that a package ships with a format's name (`chitchat`).

    format: a key of FORMATS; recognised from the content if None. mapping: field → column, or columns (a sequence, or
    joined by +) that form a composite. encoding, time_format: those of every text and time in the
    dump; guessed if None. DumpError if a path does not exist or is empty, the format is unknown or not that of the
    content, files differ in format, a mapped column is missing, or a needed field has no column.
    """
    fields = checked_mapping(mapping)
    times = checked_format(time_format)
    found = _Dumps(format, fields, checked_encoding(encoding))
    sources = [str(source)] if isinstance(source, str | Path) else list(dict.fromkeys(map(str, source)))
    try:
        paths = [path for one in sources for path in found.located(one)]
        for path in paths:
            # An empty one of several is such as the log of a day on which nobody spoke.
            if len(paths) == 1 or not path.is_file() or path.stat().st_size:
                found.add(path)
        if not found.dumps:
            raise DumpError(f"{sources[0]}: every file is empty; give one with conversations in it")
        reader = found.reader(batch_rows)
        reader.layout.times.format = times
        if encoding and not reader.is_text:
            raise DumpError(f"--encoding does not apply to {reader.format}; leave it out")
        reader.check()
        reader.weigh()
    except DumpError as error:
        raise as_given(error, found.held) from error
    except OSError as error:  # a name that is too long, a device, permissions
        raise DumpError(
            f"{sources[0]}: cannot be read ({error.strerror or error}); give the path of a dump, or change its "
            "permissions"
        ) from error
    stated = next(iter(found.dumps)).name.split(".")  # such as `dump.jsonl.gz`
    if reader.format not in {format, *sources, *stated}:
        reader.notes.append(
            f"read as {reader.format}, by its content: {reader.describes}; --format overrides"
        )
    return reader


class _Dumps:
    """The dumps found so far, each with its format; the temporary folders that hold them, and notes on them."""

    def __init__(
        self, format: str | None, fields: Mapping[str, tuple[str, ...]], encoding: str | None
    ) -> None:
        if format:
            reader_class(format)  # DumpError if there is none
        self._format, self._fields, self._encoding = format, fields, encoding
        self.dumps: dict[Path, str] = {}
        self.held: list[Held] = []
        self._guesses: list[str] = []
        self._notes: list[str] = []

    def located(self, source: str) -> list[Path]:
        """The files or folders that a source names."""
        named = self._format is None and source in FORMATS and not Path(source).exists()
        if named and (packaged := reader_class(source).packaged()):
            return [packaged]
        paths, held = located(source)
        self.held += filter(None, [held])
        return paths

    def add(self, path: Path) -> None:
        """Add the dump at `path`, or the dumps in it if it is a folder or archive without a format of its own."""
        _check_content(path)
        kind, where = foreign(path), path
        if is_archive(path):
            path, archive = unpacked(path)
            self.held.append(archive)
            office = (archive.folder / "[Content_Types].xml").exists()
            kind = "an office document" if office else foreign(path)
        if kind:
            raise DumpError(
                f"{where}: is {kind}, which no reader takes; export its conversations as CSV or JSON lines"
            )
        files = files_of(path)
        for file in files:
            if self._encoding is not None:
                declare(file, self._encoding)
            elif why := declare_guess(file):
                self._guesses.append(f"{why}; --encoding overrides")
        guess, near = self._format_of(path), ""
        if guess is None or guess != (self._format or guess):
            near = _near_misses(path, [self._format] if self._format else FORMATS)
        if path.is_dir() and not (guess_format(path) or near) and self._add_those_in(path):
            return
        if guess is None:
            what = "folder" if path.is_dir() else "content"
            fault = f"is not {self._format}" if self._format else "is of no known format"
            csv = "; or write it as CSV with the columns conversation, speaker and text"
            way_out = f"{_formats()}{'' if near or self._format else csv}"
            raise DumpError(f"{path}: the {what} {fault}{near and f' ({near})'}; {way_out}")
        if self._format and guess != self._format:
            raise DumpError(
                f"{path} is not {self._format}{near and f' ({near})'} but looks like {guess}; leave out --format or "
                f"give --format {guess}"
            )
        nested = any("." in column for columns in self._fields.values() for column in columns)
        chat_log = guess in _CHAT_LOGS and "text" in self._fields
        if self._format is None and ((guess == "parquet" and nested) or chat_log):
            guess = "jsonl"  # whose rows may be nested as --map says
        if self._encoding is None and not reader_class(guess).is_text:
            self._guesses.clear()
            for file in files:
                declare(file, None)
        self.dumps[path] = guess

    def _add_those_in(self, folder: Path) -> bool:
        """Add the dumps in a folder and its subfolders, and a note on the other files, such as pictures and texts about
        the dump; returns whether there are any. If those directly in the folder are of one format, dumps below are read
        only if they are of it, too."""
        formats = {
            path: None if _ABOUT.match(path.name) else self._format_of(path) for path in _parts(folder)
        }
        outer = {known for path, known in formats.items() if known and path.parent == folder}
        chosen = self._format or (outer.pop() if len(outer) == 1 else None)
        dumps = {path: known for path, known in formats.items() if known and chosen in (None, known)}
        unread = sorted(text_name(path, folder) for path in formats.keys() - dumps.keys())
        if dumps and unread:
            others = f" and {len(unread) - 3:,} more" if len(unread) > 3 else ""
            known = self._format or any(formats[path] for path in formats.keys() - dumps.keys())
            what = f"not {chosen}" if known else "of no known format"
            self._notes.append(f"not read, since they are {what}: {', '.join(unread[:3])}{others}")
        self.dumps |= dumps
        return bool(dumps)

    def _format_of(self, path: Path) -> str | None:
        """The format wanted, if the content looks like it, else the first one that it looks like."""
        wanted = self._format if self._format and reader_class(self._format).sniff(path) else None
        return wanted or guess_format(path)

    def reader(self, batch_rows: int) -> Reader:
        """One reader for all of the dumps; DumpError unless they are of one format."""
        from ssrem.readers.base import SeveralReader  # imports Arrow

        (first, format), *others = self.dumps.items()
        if other := next((path for path, known in others if known != format), None):
            archived = any(Path(one.source).is_file() for one in self.held)
            way_out = f"{'unpack the archive and ' if archived else ''}give those of one"
            if not archived and other.suffix not in ("", first.suffix):
                way_out += f", such as '{other.parent / '*'}{other.suffix}'"
            raise DumpError(
                f"{first} is {format}, but {other} is {self.dumps[other]}; the files of a corpus are of one format: "
                f"{way_out}, or give --format"
            )
        chosen = reader_class(format)
        paths = sorted(self.dumps, key=chosen.order_of)
        if len(paths) > 1 and chosen.joins_files and all(path.is_file() for path in paths):
            parts = [path.absolute() for path in self.dumps]
            reader = chosen(common_folder(parts), mapping=self._fields, batch_rows=batch_rows)
            reader.parts = parts
        else:
            readers = [chosen(path, mapping=self._fields, batch_rows=batch_rows) for path in paths]
            reader = SeveralReader(readers) if len(readers) > 1 else readers[0]
        reader.temporary += self.held
        if guesses := list(dict.fromkeys(self._guesses)):
            more = f"; likewise in {len(guesses) - 1:,} more of the files" if len(guesses) > 1 else ""
            reader.notes.append(guesses[0] + more)
        reader.notes += self._notes
        return reader


def _parts(folder: Path) -> list[Path]:
    """The files of a folder and its subfolders; a subfolder that is a dump as a whole, such as one of Slack, is one."""

    @cache
    def whole(path: Path) -> bool:
        return any(not reader.joins_files and reader.sniff(path) for reader in map(reader_class, FORMATS))

    def part(file: Path) -> Path:
        above = reversed(file.parents[: len(file.relative_to(folder).parts) - 1])
        return next(filter(whole, above), file)

    return list(dict.fromkeys(map(part, files_of(folder))))


def _check_content(path: Path) -> None:
    if not path.exists():
        raise DumpError(f"{path}: there is no such file or folder; give the path of a dump, or chitchat")
    if not path.is_dir() and not path.is_file():
        raise DumpError(f"{path}: is neither a file nor a folder; give the path of a dump")
    if path.is_dir() and not files_of(path):
        raise DumpError(f"{path}: the folder is empty; give a folder or file with a dump in it")
    if path.is_file() and not any(chunk.strip() for chunk in chunks(path, 1 << 20)):
        raise DumpError(f"{path}: the file is empty; give a file with conversations in it")


def _near_misses(path: Path, formats: Iterable[str]) -> str:
    """For each format that the content nearly has: what it lacks; "" if it is near none."""
    missing = [(format, reader_class(format).near_miss(path)) for format in formats]
    return "; ".join(f"{format}: {what}" if len(missing) > 1 else what for format, what in missing if what)


def _formats() -> str:
    return f"the formats are {', '.join(sorted(FORMATS))}"
