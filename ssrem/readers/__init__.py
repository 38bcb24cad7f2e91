"""Readers of dumps: each format, a class in `formats`, becomes a stream of Arrow record batches of one raw schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ssrem.errors import DumpError
from ssrem.readers.fields import FIELDS, checked_mapping
from ssrem.readers.files.archives import Unpacked, as_given, dump_in, is_archive
from ssrem.readers.files.encodings import checked_encoding, declare_guess
from ssrem.readers.files.sources import common_folder, located
from ssrem.readers.files.streams import chunks, declare, files_of, foreign, is_utf16, prefetched, text_name
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


@dataclass(frozen=True)
class _Dump:
    """A file or folder of a dump, its format, and the temporary folders that exist as long as this object does."""

    path: Path
    format: str
    temporary: tuple[object, ...] = ()
    guesses: tuple[str, ...] = ()
    """Why the encoding of a file was guessed."""
    notes: tuple[str, ...] = ()


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
    encoding = checked_encoding(encoding)
    chosen = reader_class(format) if format else None
    sources = [str(source)] if isinstance(source, str | Path) else list(dict.fromkeys(map(str, source)))
    dumps: list[_Dump] = []
    archives: list[Unpacked] = []
    try:
        for one in sources:
            if chosen is None and one in FORMATS and not Path(one).exists():
                packaged = reader_class(one).packaged()
                paths, fetched = ([packaged], None) if packaged else located(one)
            else:
                paths, fetched = located(one)
            several = len(sources) > 1 or len(paths) > 1
            for path in paths:
                if several and path.is_file() and not path.stat().st_size:
                    continue  # such as the log of a day on which nobody spoke
                dumps += _dumps_at(path, format, fields, encoding, (fetched,) if fetched else (), archives)
        if not dumps:
            raise DumpError(f"{sources[0]}: every file is empty; give one with conversations in it")
        reader = _reader(dumps, fields, time_format, batch_rows)
        if encoding and not reader.is_text:
            raise DumpError(f"--encoding does not apply to {reader.format}; leave it out")
        tried = list(FORMATS)[: list(FORMATS).index(reader.format)]  # before this one, without success
        _check(reader, [] if format else tried)
        if any(map(is_utf16, reader.files())):
            reader.notes.append("read as UTF-16, by its first bytes")
        name = dumps[0].path.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2")
        suffix = name.rpartition(".")[2]  # a name such as `dump.jsonl` states the format
        if reader.format not in {format, *sources, suffix}:
            reader.notes.append(
                f"read as {reader.format}, by its content: {reader.describes}; --format overrides"
            )
    except DumpError as error:
        raise as_given(error, archives) from error
    except OSError as error:  # a name that is too long, a device, permissions
        raise DumpError(
            f"{sources[0]}: cannot be read ({error.strerror or error}); give the path of a dump, or change its "
            "permissions"
        ) from error
    return reader


def _dumps_at(
    path: Path,
    format: str | None,
    fields: Mapping[str, tuple[str, ...]],
    encoding: str | None,
    temporary: tuple[object, ...],
    archives: list[Unpacked],
) -> list[_Dump]:
    """The dump at `path`, or the dumps of one format in it if it is a folder without a format of its own.

    archives: the one at `path` is added, if it is one.
    """
    _check_content(path)
    kind, where = foreign(path), path
    if is_archive(path):
        archive = Unpacked(path)
        archives.append(archive)
        path, temporary = dump_in(archive.folder, path), (*temporary, archive)
        kind = "an office document" if (archive.folder / "[Content_Types].xml").exists() else foreign(path)
    if kind:
        raise DumpError(
            f"{where}: is {kind}, which no reader takes; export its conversations as CSV or JSON lines"
        )
    guesses = _declare(path, encoding)
    nearest = [format] if format else FORMATS
    if path.is_dir() and not (guess_format(path) or _near_misses(path, nearest)):
        dumps, unread = _dumps_in(path, format)
        if dumps:
            return [_Dump(file, known, temporary, guesses, unread) for file, known in dumps]
    guess = _format_of(path, format)
    if guess is None:
        raise DumpError(f"{path}: {_unlike(path, format)}")
    if format and guess != format:
        missing = _near_misses(path, [format])
        raise DumpError(
            f"{path} is not {format}{missing and f' ({missing})'} but looks like {guess}; leave out --format or give "
            f"--format {guess}"
        )
    nested = any("." in column for columns in fields.values() for column in columns)
    if format is None and ((guess == "parquet" and nested) or (guess in _CHAT_LOGS and "text" in fields)):
        guess = "jsonl"  # whose rows may be nested as --map says
    if encoding is None and not reader_class(guess).is_text:
        guesses = ()
        for file in files_of(path):
            declare(file, None)
    return [_Dump(path, guess, temporary, guesses)]


def _dumps_in(folder: Path, format: str | None) -> tuple[list[tuple[Path, str]], tuple[str, ...]]:
    """The dumps in a folder and its subfolders, with their formats, and a note on the other files, such as pictures
    and texts about the dump. If those directly in the folder are of one format, dumps below are read only if they are
    of it, too."""
    formats = {path: None if _ABOUT.match(path.name) else _format_of(path, format) for path in _parts(folder)}
    outer = {known for path, known in formats.items() if known and path.parent == folder}
    chosen = format or (outer.pop() if len(outer) == 1 else None)
    dumps = [(path, known) for path, known in formats.items() if known and chosen in (None, known)]
    unread = formats.keys() - dict(dumps).keys()
    if not unread:
        return dumps, ()
    names = sorted(text_name(path, folder) for path in unread)
    others = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    what = f"not {chosen}" if format or any(formats[path] for path in unread) else "of no known format"
    return dumps, (f"not read, since they are {what}: {', '.join(names[:3])}{others}",)


def _parts(folder: Path) -> list[Path]:
    """The files of a folder and its subfolders; a subfolder that is a dump as a whole, such as one of Slack, is one."""

    @cache
    def whole(path: Path) -> bool:
        return any(not reader.joins_files and reader.sniff(path) for reader in map(reader_class, FORMATS))

    def part(file: Path) -> Path:
        above = reversed(file.parents[: len(file.relative_to(folder).parts) - 1])
        return next(filter(whole, above), file)

    return list(dict.fromkeys(map(part, files_of(folder))))


def _format_of(path: Path, wanted: str | None) -> str | None:
    """The format wanted, if the content looks like it, else the first one that it looks like."""
    return wanted if wanted and reader_class(wanted).sniff(path) else guess_format(path)


def _declare(path: Path, encoding: str | None) -> tuple[str, ...]:
    """Declare the encoding of the file, or of each file of the folder; returns why, for each encoding guessed."""
    notes: list[str] = []
    for file in files_of(path):
        if encoding is not None:
            declare(file, encoding)
        elif why := declare_guess(file):
            notes.append(f"{why}; --encoding overrides")
    return tuple(notes)


def _reader(
    dumps: Sequence[_Dump], fields: Mapping[str, tuple[str, ...]], time_format: str | None, batch_rows: int
) -> Reader:
    """One reader for all of them; DumpError unless they are of one format."""
    from ssrem.readers.several import SeveralReader  # imports Arrow

    first = dumps[0]
    if other := next((one for one in dumps if one.format != first.format), None):
        pattern = f"{other.path.parent / '*'}{other.path.suffix}"
        way_out = "give those of one"
        if any(isinstance(item, Unpacked) for one in (first, other) for item in one.temporary):
            way_out = "unpack the archive and give those of one"
        elif other.path.suffix not in ("", first.path.suffix):
            way_out += f", such as {pattern!r}"
        raise DumpError(
            f"{first.path} is {first.format}, but {other.path} is {other.format}; the files of a corpus are of one "
            f"format: {way_out}, or give --format"
        )
    chosen = reader_class(first.format)
    if len(dumps) > 1 and chosen.joins_files and all(one.path.is_file() for one in dumps):
        reader = chosen(
            common_folder([one.path.absolute() for one in dumps]), mapping=fields, batch_rows=batch_rows
        )
        reader.parts = [one.path.absolute() for one in dumps]
    else:
        paths = sorted((one.path for one in dumps), key=chosen.order_of)
        readers = [chosen(path, mapping=fields, batch_rows=batch_rows) for path in paths]
        reader = SeveralReader(readers) if len(readers) > 1 else readers[0]
    reader.temporary = [item for one in dumps for item in one.temporary]
    if guesses := list(dict.fromkeys(guess for one in dumps for guess in one.guesses)):
        more = f"; likewise in {len(guesses) - 1:,} more of the files" if len(guesses) > 1 else ""
        reader.notes.append(guesses[0] + more)
    reader.notes += dict.fromkeys(note for one in dumps for note in one.notes)
    reader.layout.times.format = checked_format(time_format)
    return reader


def _check_content(path: Path) -> None:
    if not path.exists():
        raise DumpError(f"{path}: there is no such file or folder; give the path of a dump, or chitchat")
    if not path.is_dir() and not path.is_file():
        raise DumpError(f"{path}: is neither a file nor a folder; give the path of a dump")
    if path.is_dir() and not files_of(path):
        raise DumpError(f"{path}: the folder is empty; give a folder or file with a dump in it")
    if path.is_file() and not any(chunk.strip() for chunk in chunks(path, 1 << 20)):
        raise DumpError(f"{path}: the file is empty; give a file with conversations in it")


def _check(reader: Reader, others: Iterable[str]) -> None:
    try:
        reader.check()
        reader.weigh()
    except DumpError as error:
        if missing := _near_misses(reader.path, others):
            raise DumpError(f"{error}; or what it lacks for {missing}") from None
        raise


def _unlike(path: Path, format: str | None) -> str:
    missing = _near_misses(path, [format] if format else FORMATS)
    kind = "folder" if path.is_dir() else "content"
    fault = f"the {kind} is not {format}" if format else f"the {kind} is of no known format"
    way_out = (
        "" if missing or format else "; or write it as CSV with the columns conversation, speaker and text"
    )
    return f"{fault}{missing and f' ({missing})'}; {_formats()}{way_out}"


def _near_misses(path: Path, formats: Iterable[str]) -> str:
    """For each format that the content nearly has: what it lacks; "" if it is near none."""
    missing = [(format, reader_class(format).near_miss(path)) for format in formats]
    return "; ".join(f"{format}: {what}" if len(missing) > 1 else what for format, what in missing if what)


def _formats() -> str:
    return f"the formats are {', '.join(sorted(FORMATS))}"
