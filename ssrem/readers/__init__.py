"""Readers of dumps: each format, a file in `formats`, becomes a stream of Arrow record batches of one raw schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ssrem.errors import DumpError
from ssrem.readers.archives import Unpacked, dump_in, is_archive
from ssrem.readers.fields import FIELDS, checked_mapping, parse_mapping
from ssrem.readers.prefetch import prefetched
from ssrem.readers.streams import chunks, is_utf16, text_name
from ssrem.registry import did_you_mean, registered

if TYPE_CHECKING:
    from ssrem.readers.base import Reader

__all__ = ["FIELDS", "FORMATS", "guess_format", "open_dump", "parse_mapping", "prefetched", "reader_class"]

#: Format → its reader, in the order in which content is tried; imported when first used.
FORMATS: Mapping[str, str] = {
    "openai": "ssrem.readers.formats.logs.openai:OpenaiReader",
    "sharegpt": "ssrem.readers.formats.logs.sharegpt:SharegptReader",
    "reddit": "ssrem.readers.formats.logs.reddit:RedditReader",
    "irc": "ssrem.readers.formats.logs.irc:IrcReader",
    "convokit": "ssrem.readers.formats.convokit:ConvokitReader",
    "cornell": "ssrem.readers.formats.cornell:CornellReader",
    "slack": "ssrem.readers.formats.slack:SlackReader",
    "switchboard": "ssrem.readers.formats.switchboard:SwitchboardReader",
    "parquet": "ssrem.readers.formats.parquet:ParquetReader",
    "chitchat": "ssrem.readers.formats.chitchat:ChitchatReader",
    "topical-chat": "ssrem.readers.formats.topical_chat:TopicalChatReader",
    "discord": "ssrem.readers.formats.discord:DiscordReader",
    "telegram": "ssrem.readers.formats.telegram:TelegramReader",
    "whatsapp": "ssrem.readers.formats.whatsapp:WhatsappReader",
    "personachat": "ssrem.readers.formats.personachat:PersonaChatReader",
    "empathetic-dialogues": "ssrem.readers.formats.empathetic_dialogues:EmpatheticDialoguesReader",
    "jsonl": "ssrem.readers.formats.jsonl:JsonlReader",
    "tsv": "ssrem.readers.formats.delimited:TsvReader",
    "csv": "ssrem.readers.formats.delimited:CsvReader",
}


def reader_class(format: str) -> type[Reader]:
    """The reader of a format; DumpError that lists the formats for an unknown name."""
    if format not in FORMATS:
        raise DumpError(f"there is no format {format!r}{did_you_mean(format, FORMATS)}; {_formats()}")
    reader: type[Reader] = registered(FORMATS[format])
    return reader


def guess_format(path: Path) -> str | None:
    """The first format that the content of `path` looks like, or None."""
    return next((format for format in FORMATS if reader_class(format).sniff(path)), None)


def open_dump(
    source: str | Path,
    *,
    format: str | None = None,
    mapping: Mapping[str, str | Sequence[str]] | None = None,
    batch_rows: int = 65_536,
) -> Reader:
    """A reader for a file, folder or archive, or for the corpus that a package ships with a format's name (`chitchat`).

    format: a key of FORMATS; recognised from the content if None. mapping: field → column, or columns (a sequence, or
    joined by +) that form a composite; see `parse_mapping`. DumpError if the path does not exist or is empty, the
    format is unknown or not that of the content, a mapped column is missing, or a needed field has no column.
    """
    fields = checked_mapping(mapping)
    chosen = reader_class(format) if format else None
    path = Path(source)
    try:
        if str(source) in FORMATS and not path.exists():
            path = reader_class(str(source)).packaged() or path
        _check_content(path)
        archive = Unpacked(path) if is_archive(path) else None
        path = dump_in(archive.folder, path) if archive else path
        if path.is_dir() and not (guess_format(path) or _missed(path, FORMATS)):
            path = _only_dump(path, format)
        guess = format if chosen and chosen.sniff(path) else guess_format(path)
        if guess is None:
            raise DumpError(f"{path}: {_unlike(path, format)}")
        if format and guess != format:
            missed = _missed(path, [format])
            raise DumpError(
                f"{path} is not {format}{missed and f' ({missed})'} but looks like {guess}; leave out --format or give "
                f"--format {guess}"
            )
        reader = reader_class(guess)(path, mapping=fields, batch_rows=batch_rows)
        reader.archive = archive
        _check(reader, [] if format else [other for other in FORMATS if other != guess])
        if any(map(is_utf16, reader.files())):
            reader.notes.append("read as UTF-16, by its first bytes")
        named = {format, str(source), path.name.removesuffix(".gz").removesuffix(".zst").rpartition(".")[2]}
        if guess not in named:  # a file `dump.jsonl` says itself what it is
            reader.notes.append(f"read as {guess}, by its content: {reader.describes}; --format overrides")
    except OSError as error:  # a name that is too long, a device, permissions
        raise DumpError(
            f"{source}: cannot be read ({error.strerror or error}); give the path of a dump, or change its permissions"
        ) from error
    return reader


def _only_dump(folder: Path, format: str | None) -> Path:
    """The one file of a folder that is a dump, such as a chat among its pictures; the folder itself if none is.

    DumpError if several are.
    """
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    dumps = [path for path in files if (reader_class(format).sniff(path) if format else guess_format(path))]
    if len(dumps) > 1:
        names = ", ".join(text_name(path) for path in dumps[:3])
        raise DumpError(
            f"{folder}: {len(dumps):,} files of the folder are dumps, such as {names}; give one of them, or put each "
            "through ssrem ingest --inbox FOLDER"
        )
    return dumps[0] if dumps else folder


def _check_content(path: Path) -> None:
    if not path.exists():
        raise DumpError(f"{path}: there is no such file or folder; give the path of a dump, or chitchat")
    if not path.is_dir() and not path.is_file():
        raise DumpError(f"{path}: is neither a file nor a folder; give the path of a dump")
    if path.is_dir() and not any(path.iterdir()):
        raise DumpError(f"{path}: the folder is empty; give a folder or file with a dump in it")
    if path.is_file() and not any(chunk.strip() for chunk in chunks(path, 1 << 20)):
        raise DumpError(f"{path}: the file is empty; give a file with conversations in it")


def _check(reader: Reader, others: Iterable[str]) -> None:
    try:
        reader.check()
    except DumpError as error:
        if missed := _missed(reader.path, others):
            raise DumpError(f"{error}; or what it lacks for {missed}") from None
        raise


def _unlike(path: Path, format: str | None) -> str:
    missed = _missed(path, [format] if format else FORMATS)
    kind = "folder" if path.is_dir() else "content"
    fault = f"the {kind} is not {format}" if format else f"the {kind} is of no known format"
    return f"{fault}{missed and f' ({missed})'}; {_formats()}"


def _missed(path: Path, formats: Iterable[str]) -> str:
    """What the content lacks to be each of the formats that it is near to, or nothing."""
    missed = [(format, reader_class(format).missed(path)) for format in formats]
    return "; ".join(f"{format}: {what}" if len(missed) > 1 else what for format, what in missed if what)


def _formats() -> str:
    return f"the formats are {', '.join(sorted(FORMATS))}"
