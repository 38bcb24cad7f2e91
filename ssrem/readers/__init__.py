"""Readers of dumps: each format has a class in `formats`, which yields Arrow record batches of one raw schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ssrem.errors import DumpError, first_of, short_repr
from ssrem.readers.cells import OF_CHAT
from ssrem.readers.fields import FIELDS, checked_mapping
from ssrem.readers.files.sources import Held, as_given, is_archive, located, unpacked
from ssrem.readers.files.streams import DumpFile, checked_encoding, files_of, is_utf8, prefetched, text_name
from ssrem.readers.times import checked_format
from ssrem.registry import did_you_mean, object_at, usable, with_installed

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
    "convokit": "ssrem.readers.formats.jsonl:ConvokitReader",
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
    "parquet": "ssrem.readers.formats.tables:ParquetReader",
    "tsv": "ssrem.readers.formats.tables:TsvReader",
    "csv": "ssrem.readers.formats.tables:CsvReader",
}
FORMATS: Mapping[str, str] = with_installed("ssrem.readers", _OWN)
"""Format → its reader as "module:class", imported when first used. Content is tried against the formats in this order,
in which those of installed packages come first."""


_CHAT_LOGS = ("chatgpt", "openai", "sharegpt")

_ABOUT = re.compile(r"read.?me|licen[cs]e|copying|group_info|user_info", re.IGNORECASE)
"""Beginnings of names of files that describe a dump but hold no part of it; the last two are those of Google Chat."""


def reader_class(format: str) -> type[Reader]:
    """The reader class of a format; for an unknown name DumpError, which lists the formats."""
    if format not in FORMATS:
        raise DumpError(f"there is no format {format!r}{did_you_mean(format, FORMATS)}; {_formats()}")
    reader: type[Reader] = object_at(FORMATS[format])
    return reader


def guess_format(file: DumpFile) -> str | None:
    """The first format that the content of a file or folder looks like, or None."""
    if file.foreign:
        return None
    return next((name for name, reader in usable(FORMATS, _OWN) if reader.sniff(file)), None)


def open_dump(
    source: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,
    mapping: Mapping[str, str | Sequence[str]] | None = None,
    encoding: str | None = None,
    time_format: str | None = None,
    batch_rows: int = 65_536,
) -> Reader:
    """Open a dump: a file, folder, archive, file pattern, URL, `-` (standard input), or several of them together, or
    the name of a format whose corpus an installed package contains (`chitchat`).

    format: a key of FORMATS; recognised from the content if None. mapping: field → column, or columns (a sequence, or
    joined by +) that are joined into the field. encoding: of all texts; if None UTF-8, or UTF-16 with a byte order
    mark. time_format: of all times, as for `datetime.strptime`. batch_rows: most rows of a batch. DumpError if a path
    does not exist or is empty, the format is unknown or not that of the content, files differ in format, a mapped
    column is missing, or a needed field has no column.
    """
    fields = checked_mapping(mapping)
    times = checked_format(time_format)
    sources = [str(source)] if isinstance(source, str | Path) else list(dict.fromkeys(map(str, source)))
    found = _Dump(format, fields, checked_encoding(encoding))
    try:
        paths = [path for one in sources for path in found.located(one)]
        for path in paths:
            # Empty files among several are skipped, such as the log of a day on which nobody spoke.
            if len(paths) == 1 or not path.is_file() or path.stat().st_size:
                found.add(path)
        if not found.files:
            raise DumpError(f"{sources[0]}: every file is empty; give one with conversations in it")
        known = found.format()
        reader = reader_class(known)(found.files, mapping=fields, batch_rows=batch_rows)
        reader.temporary += found.held
        reader.notes += found.notes
        reader.layout.times.format = times
        if encoding and not reader.is_text:
            raise DumpError(f"--encoding does not apply to {known}; leave it out")
        reader.open()
    except DumpError as error:
        raise as_given(error, found.held) from error
    except OSError as error:  # a name that is too long, a device, permissions
        raise DumpError(
            f"{sources[0]}: cannot be read ({error.strerror or error}); give the path of a dump, or change its "
            "permissions"
        ) from error
    stated = found.files[0].path.name.split(".")  # such as `dump.jsonl.gz`
    if known not in {format, *sources, *stated}:
        reader.notes.append(f"read as {known}, by its content: {reader.describes}; --format overrides")
    return reader


class _Dump:
    """The files of a dump found so far, each with its format, the temporary folders that hold them, and notes for the
    user."""

    def __init__(
        self, format: str | None, fields: Mapping[str, tuple[str, ...]], encoding: str | None
    ) -> None:
        if format:
            reader_class(format)  # DumpError if the format is unknown
        self._wanted, self._fields, self._encoding = format, fields, encoding
        self.files: list[DumpFile] = []
        self._formats: list[str] = []
        self.held: list[Held] = []
        self.notes: list[str] = []

    def located(self, source: str) -> list[Path]:
        """The files or folders that a source names."""
        if not source.strip():  # an unset variable; as a path it would be the current folder
            raise DumpError("the name of a dump is empty; give the path of a dump, or chitchat")
        named = self._wanted is None and source in FORMATS and not Path(source).exists()
        if named and (packaged := reader_class(source).packaged()):
            return [packaged]
        paths, held = located(source)
        self.held += filter(None, [held])
        return paths

    def add(self, path: Path) -> None:
        """Add the dump at `path`, or the dumps in it if it is a folder or archive without a format of its own."""
        where = path
        if not path.exists():
            raise DumpError(f"{path}: there is no such file or folder; give the path of a dump, or chitchat")
        if not path.is_dir() and not path.is_file():
            raise DumpError(f"{path}: is neither a file nor a folder; give the path of a dump")
        if is_archive(DumpFile(path)):
            path, archive = unpacked(path)
            self.held.append(archive)
            if (archive.folder / "[Content_Types].xml").exists():
                raise DumpError(f"{where}: is an office document; save its table as CSV")
        file = DumpFile(path, self._encoding)
        if path.is_dir():
            if not files_of(path):
                raise DumpError(f"{path}: the folder is empty; give a folder or file with a dump in it")
        elif kind := file.foreign:
            raise DumpError(
                f"{where}: is {kind}, which no reader takes; export its conversations as CSV or JSON lines"
            )
        elif not any(chunk.strip() for chunk in DumpFile(path).chunks()):
            raise DumpError(f"{path}: the file is empty; give a file with conversations in it")
        if format := self._format_of(file):
            self._add(file, format)
        elif path.is_dir():
            self._add_those_in(path)
        else:
            raise self._unknown(file)

    def _add(self, file: DumpFile, format: str) -> None:
        if self._wanted and format != self._wanted:
            raise DumpError(
                f"{file.path} is not {self._wanted} but looks like {format}; leave out --format or give --format "
                f"{format}"
            )
        nested = len(self._fields.get("text", ())) > 1 or any(
            "." in column for columns in self._fields.values() for column in columns
        )
        chat_log = format in _CHAT_LOGS and "text" in self._fields
        if self._wanted is None and ((format == "parquet" and nested) or chat_log):
            format = "jsonl"  # whose rows may be nested as --map says
        if self.files:
            file.close()
        self.files.append(file)
        self._formats.append(format)

    def _add_those_in(self, folder: Path) -> None:
        """Add the dumps in a folder and its subfolders, and a note that names the files not read, such as pictures."""
        files = files_of(folder)
        above = {
            path for file in files for path in file.parents if path != folder and path.is_relative_to(folder)
        }
        # Folders that are a dump as a whole, such as an export of Slack.
        wholes = {path for path in above if guess_format(DumpFile(path))}
        parts = [next((path for path in reversed(file.parents) if path in wholes), file) for file in files]
        found = {path: DumpFile(path, self._encoding) for path in parts}
        formats = {path: None if _ABOUT.match(path.name) else self._format_of(found[path]) for path in found}
        direct = {path: known for path, known in formats.items() if known and path.parent == folder}
        outer = {*direct.values()}
        if len(outer) > 1 and all(path.is_file() and found[path].json == "value" for path in direct):
            outer.discard("jsonl")  # an export of ChatGPT has other JSON beside its conversations
        chosen = self._wanted or (outer.pop() if len(outer) == 1 else None)
        for path, known in formats.items():
            if known and chosen in (None, known):
                self._add(found[path], known)
        unread = [text_name(path, folder) for path in found if found[path] not in self.files]
        if not self.files:
            single = (file for path, file in found.items() if path.is_file())
            if chat := next((file for file in single if OF_CHAT.match(file.first_line)), None):
                raise self._unknown(chat)
            lacking = [
                f"{one} lacks {', '.join(missing)}"
                for one in ([self._wanted] if self._wanted else FORMATS)
                if (names := reader_class(one).required)
                and len(missing := [name for name in names if not (folder / name).is_file()]) < len(names)
            ]
            near = f" ({'; '.join(lacking)})" if lacking else ""
            raise DumpError(f"{folder}: no file in the folder is of a known format{near}; {_formats()}")
        if unread:
            what = (
                f"not {chosen}"
                if chosen and any(formats[folder / name] for name in unread)
                else "of no known format"
            )
            self.notes.append(f"not read, since they are {what}: {first_of(unread, 3)}")

    def _format_of(self, file: DumpFile) -> str | None:
        """The format that the user gave, if the content looks like it, else the first that it looks like, or None."""
        wanted = self._wanted and not file.foreign and reader_class(self._wanted).sniff(file)
        return self._wanted if wanted else guess_format(file)

    def _unknown(self, file: DumpFile) -> DumpError:
        """The error for a file of no known format. Raises DumpError, which says where, if the file is broken JSON."""
        _ = file.json == "value" and file.value  # raises DumpError if it is broken
        fault = f"is not {self._wanted}" if self._wanted else "is of no known format"
        if not is_utf8(file.head.rpartition(b"\n")[0]):
            fault += ", and not UTF-8 (give its encoding with --encoding, such as cp1252)"
        if OF_CHAT.match(file.first_line):
            way_out = (
                "the package in examples/chat-exports reads a chat as WhatsApp exports it, unless its dates are in a "
                "form that it does not know"
            )
            return DumpError(f"{file.path}: its first line is {short_repr(file.first_line)}; {way_out}")
        return DumpError(
            f"{file.path}: the content {fault}; its first line is {short_repr(file.first_line)}; {_formats()}; or "
            "write it as CSV with the columns conversation, speaker and text"
        )

    def format(self) -> str:
        """The format that all files have; DumpError if they differ in format."""
        pairs = zip(self.files, self._formats, strict=True)
        first = self._formats[0]
        if other := next((pair for pair in pairs if pair[1] != first), None):
            file, format = other
            raise DumpError(
                f"{self.files[0].path} is {first}, but {file.path} is {format}; the files of a corpus are of one "
                f"format: give those of one alone, or --format, such as --format {first}"
            )
        return first


def _formats() -> str:
    return f"the formats are {', '.join(sorted(FORMATS))}"
