"""Files of a dump: decompressed by their first bytes, decoded to UTF-8, read in blocks of whole lines, or as JSON."""

from __future__ import annotations

import codecs
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from ssrem.errors import DumpError
from ssrem.files import UTF16_BOMS
from ssrem.readers.json_values import json_value, parse_json, row_of, rows_in

Item = TypeVar("Item")

_END = object()
_NUMBERS = re.compile(r"(\d+)")
_CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_CODECS |= {b"BZh%d" % level: "bz2" for level in range(1, 10)}
UTF8_BOM = codecs.BOM_UTF8
_WIDEST_OF_ARROW = 1 << 27
"""Largest window, in bytes, of zstd data that Arrow decompresses."""
LONGEST_ROW = 128 << 20
"""Most bytes of one row of a dump, such as a line, that are read into memory."""
LARGEST_JSON = 1 << 30
"""Most bytes of a file that is one JSON value, which is read into memory as a whole, and takes some six times that."""
BLOCK = 8 << 20
"""About how many bytes a block of lines has."""
SAMPLE_ROWS = 1_000
"""Number of first rows that are read to find out what the columns hold."""

_FOREIGN = {b"%pdf": "a PDF file", b"sqlite format 3": "an SQLite database", b"{\\rtf": "an RTF document"}
_FOREIGN |= dict.fromkeys((b"\x89png", b"gif8", b"\xff\xd8\xff"), "a picture")
_FOREIGN |= {
    b"<?xml": "XML",
    b"<!doctype": "HTML",
    b"<html": "HTML",
    b"\xd0\xcf\x11\xe0": "an office document",
    b"\xfd7zxz": "packed by xz (unpack it with xz -d)",
    b"7z\xbc\xaf": "a 7z archive",
}


class Meter:
    """Counts the stored bytes that are read of a dump (compressed bytes where it is compressed)."""

    read = 0


class DumpFile:
    """A file or folder of a dump.

    encoding: of its text; by default UTF-8, or UTF-16 if it begins with that byte order mark. Other encodings are
    converted to UTF-8; bytes that are invalid in them stay invalid in UTF-8. meter: counts what is read. Methods raise
    DumpError for compressed data that is damaged and for rows that are longer than LONGEST_ROW.
    """

    def __init__(self, path: Path, encoding: str | None = None, meter: Meter | None = None) -> None:
        self.path, self.encoding, self.meter = path, encoding, meter or Meter()

    def __truediv__(self, name: str) -> DumpFile:
        """The file called `name` in this folder."""
        return DumpFile(self.path / name, self.encoding, self.meter)

    def close(self) -> None:
        """Free the memory of what was read."""
        for name in ("head", "json", "value", "first_rows"):
            self.__dict__.pop(name, None)

    @cached_property
    def name(self) -> str:
        return text_name(self.path)

    @cached_property
    def head(self) -> bytes:
        """The first 64 kB of the content; empty for a folder, and if the file is damaged there."""
        try:
            return b"" if self.path.is_dir() else next(self.chunks(1 << 16), b"").removeprefix(UTF8_BOM)
        except DumpError:
            return b""

    @property
    def first_line(self) -> str:
        """The first line that is not blank, as far as `head` goes."""
        return self.head.lstrip().partition(b"\n")[0].decode("utf-8", "replace").rstrip()

    @property
    def is_parquet(self) -> bool:
        return self.head.startswith(b"PAR1")

    @property
    def foreign(self) -> str | None:
        """The kind of a file that no reader reads, by its first bytes, such as a picture; None for other files."""
        start = self.head[:64].lstrip().lower()
        return next((kind for first, kind in _FOREIGN.items() if start.startswith(first)), None)

    def chunks(self, size: int = 1 << 20) -> Iterator[bytes]:
        """The content as UTF-8 in pieces of about `size` bytes."""
        pieces = self._stored(size)
        first = next(pieces, b"")
        encoding = self.encoding or ("utf-16" if first.startswith(UTF16_BOMS) else None)
        if encoding is None:
            yield from filter(None, chain((first,), pieces))
            return
        decoder = codecs.getincrementaldecoder(encoding)("ssrem-keep-bytes")
        for piece in chain((first,), pieces, (None,)):
            try:
                text = decoder.decode(piece or b"", final=piece is None)
            except UnicodeError as error:
                raise DumpError(
                    f"{self.path}: the {encoding} text is damaged or cut off; give its encoding with --encoding"
                ) from error
            yield from filter(None, (text.encode("utf-8", "surrogateescape"),))

    def _stored(self, size: int) -> Iterator[bytes]:
        """The decompressed content in pieces of at most `size` bytes."""
        import pyarrow as pa

        with self.path.open("rb") as file:
            start = file.read(18)
        codec = next((name for magic, name in _CODECS.items() if start.startswith(magic)), None)
        before = self.meter.read
        with pa.OSFile(os.fsencode(self.path), "rb") as stored:
            stream = pa.CompressedInputStream(stored, codec) if codec else stored
            wide = codec == "zstd" and _window(start) > _WIDEST_OF_ARROW
            pieces = _wide_frames(stored) if wide else iter(partial(stream.read, size), b"")
            while True:
                try:
                    piece = next(pieces, b"")
                except OSError as error:
                    raise DumpError(
                        f"{self.path}: the {codec or 'file'} data is damaged or cut off near byte {stored.tell():,}; "
                        "fetch or pack the file again"
                    ) from error
                self.meter.read = before + stored.tell()
                if not piece:
                    return
                yield piece

    def blocks(self, size: int = 0) -> Iterator[bytes]:
        """The content in blocks of whole lines, or of one longer line.

        size: about how many bytes a block has; BLOCK if 0. A byte order mark at the start is removed. Only the last
        block may lack the final newline.
        """
        held: list[bytes] = []
        held_bytes = lines = 0
        for number, chunk in enumerate(self.chunks(size or BLOCK)):
            piece = chunk if number else chunk.removeprefix(UTF8_BOM)
            cut = piece.rfind(b"\n") + 1
            if cut:
                block = b"".join([*held, memoryview(piece)[:cut]])  # one copy, not two
                lines += block.count(b"\n")
                yield block
                held, held_bytes = [], 0
            if cut < len(piece):
                held.append(piece[cut:])
                held_bytes += len(held[-1])
                if held_bytes > LONGEST_ROW:
                    raise too_long(self.path, f"line {lines + 1:,}")
        if held:
            yield b"".join(held)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield (number from 1, bytes without the newline) of every line."""
        first = 1
        for block in self.blocks():
            lines = block.removesuffix(b"\n").split(b"\n")
            yield from enumerate(lines, first)
            first += len(lines)

    def content(self, most: int = LONGEST_ROW) -> bytes:
        """The whole content; DumpError if it is longer than `most` bytes."""
        content = bytearray()
        for block in self.chunks():
            content += block
            if len(content) > most:
                raise DumpError(
                    f"{self.path}: is one text or JSON value of more than {most >> 20:,} MB, which would have to be in "
                    "memory; write its rows one a line, as with jq -c '.[]'"
                )
        return bytes(content.removeprefix(UTF8_BOM))

    @cached_property
    def json(self) -> str | None:
        """`lines` if the content looks like JSON lines, `value` if it looks like one JSON value, else None."""
        start = self.head.lstrip()
        if self.path.is_dir() or self.is_parquet:
            return None
        # A bracket alone may begin a chat log: `[12:30] <nick>`.
        is_list = start[:1] == b"[" and start[1:].lstrip()[:1] in (b"{", b"[")
        blocks, otherwise = self.blocks(1 << 16), "value" if is_list or start[:1] == b"{" else None
        try:
            block = next(blocks, b"").decode("utf-8", "replace").encode()
            lines = [line for line in block.split(b"\n", 100) if line.strip()]
            if otherwise and len(lines) < 2 and not any(map(bytes.strip, islice(blocks, 1))):
                return "value"
        except DumpError:  # a first line that is longer than LONGEST_ROW
            return otherwise
        if is_list:
            whole = isinstance(parse_json(lines[0]), list)
        else:
            whole = any(isinstance(parse_json(line), dict) for line in lines if line[:1] == b"{")
        return "lines" if whole else otherwise

    @cached_property
    def value(self) -> Any:
        """The JSON value that the file is; DumpError if it is broken, nests too deeply or is larger than LARGEST_JSON.

        Bytes that are not UTF-8 become lone surrogates, which UTF-8 cannot encode.
        """
        return json_value(self.content(LARGEST_JSON), str(self.path))

    @property
    def members(self) -> dict[str, Any]:
        """The members of the JSON object that the file is; empty for other content."""
        value = self.value if self.json == "value" else None
        return value if isinstance(value, dict) else {}

    def rows(self) -> Iterator[tuple[int, object, object]]:
        """Yield (number from 1, value, source) of each row of JSON lines, of one JSON value, or of Parquet.

        The source of a JSON line is its bytes, that of other rows their value. The value of a line that is not JSON is
        None.
        """
        if self.json == "lines":
            yield from ((number, row_of(line), line) for number, line in self.lines() if line.strip())
            return
        parsed = parquet_rows(self.path) if self.is_parquet else rows_in(self.value) if self.json else ()
        yield from ((number, row, row) for number, row in enumerate(parsed, 1))

    @cached_property
    def first_rows(self) -> list[dict[str, Any]]:
        """The first objects among the rows of JSON or Parquet, at most SAMPLE_ROWS."""
        rows = (row for _, row, _ in self.rows() if isinstance(row, dict))
        with suppress(*([DumpError] if self.is_parquet else [])):  # ParquetReader may be able to read it
            return list(islice(rows, SAMPLE_ROWS))
        return []


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file. DumpError if the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(256):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException, ValueError, ArithmeticError, LookupError) as error:
        raise DumpError(f"{path}: not a whole Parquet file; fetch the file again") from error


def _keep_bytes(error: UnicodeError) -> tuple[str, int]:
    """Error handler for codecs: keeps bytes that are invalid in an encoding as bytes that are invalid in UTF-8."""
    if not isinstance(error, UnicodeDecodeError) or error.object[error.start : error.end].isascii():
        raise error
    faulty = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) if byte > 127 else chr(byte) for byte in faulty), error.end


codecs.register_error("ssrem-keep-bytes", _keep_bytes)


def checked_encoding(name: str | None) -> str | None:
    """Python's name for the value of `--encoding`; DumpError if Python has no such encoding of text."""
    if name is None:
        return None
    try:
        codec = codecs.lookup(name)
        codecs.getincrementaldecoder(name)("strict").decode("a\n".encode(name), final=True)
    except (LookupError, UnicodeError, TypeError, ValueError) as error:
        raise DumpError(
            f"--encoding {name}: there is no such encoding of text; write for example cp1252, utf-16 or shift_jis"
        ) from error
    return codec.name


def text_name(path: Path, folder: Path | None = None) -> str:
    """The name of a file, or its path below `folder` if it is there, as text; bytes that are not UTF-8 are escaped."""
    inside = folder is not None and path != folder and path.is_relative_to(folder)
    name = str(path.relative_to(folder)) if folder and inside else path.name
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def files_of(path: Path) -> list[Path]:
    """The file itself, or the files of a folder and its subfolders, in order, without names that begin with a dot."""
    return in_order(_files_in(path, set())) if path.is_dir() else [path]


def in_order(paths: Iterable[Path]) -> list[Path]:
    """The paths, sorted; numbers within names are compared as numbers, so that `part 2` comes before `part 10`."""

    def key(path: Path) -> list[list[str | int]]:
        names = [*path.parts[:-1], path.name.split(".")[0], path.name]
        return [[int(part) if part.isdecimal() else part for part in _NUMBERS.split(name)] for name in names]

    return sorted(paths, key=key)


def _files_in(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders; folders in `seen` are skipped, since links may lead back."""
    if folder.resolve() in seen:
        return
    seen.add(folder.resolve())
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            yield from _files_in(path, seen)
        elif path.is_file() and not path.name.startswith("."):
            yield path


def is_utf8(content: bytes) -> bool:
    """Whether the bytes are UTF-8."""
    try:
        return content.decode("utf-8") is not None
    except UnicodeDecodeError:
        return False


def encodable(text: str) -> bool:
    """Whether UTF-8 can encode the text, that is, it holds no half of a surrogate pair."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def too_long(path: Path, row: str) -> DumpError:
    """The error for a row that is longer than LONGEST_ROW."""
    return DumpError(
        f"{path}: {row} is longer than {LONGEST_ROW >> 20} MB; is it the right file? Split that row"
    )


def _window(head: bytes) -> int:
    """The window in bytes of the zstd data that begins with `head` (RFC 8878, section 3.1.1.1); 0 for a cut head."""
    if len(head) < 6:
        return 0
    if (descriptor := head[4]) & 0x20:  # the content is one segment, which is the window
        at, size = 5 + (0, 1, 2, 4)[descriptor & 3], (1, 2, 4, 8)[descriptor >> 6]
        return int.from_bytes(head[at : at + size], "little") + 256 * (size == 2)
    base = 1 << (10 + (head[5] >> 3))
    return base + (base >> 3) * (head[5] & 7)


def _wide_frames(stored: Any) -> Iterator[bytes]:
    """Yield the content of zstd data with windows of up to 2 GB, such as Pushshift's; OSError if it is damaged."""
    try:
        import zstandard
    except ModuleNotFoundError:
        raise DumpError(
            "zstd data with a window of more than 128 MB needs a package; pip install zstandard"
        ) from None

    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    frame, packed = unpacker.decompressobj(), stored.read(1 << 16)
    while packed:
        try:
            content = frame.decompress(packed)
        except zstandard.ZstdError as error:
            raise OSError(str(error)) from error
        yield from filter(None, (content,))
        ended, packed = frame.eof, frame.unused_data or stored.read(1 << 16)
        frame = unpacker.decompressobj() if ended else frame
    if not ended:
        raise OSError("the last frame is cut off")


def prefetched(items: Iterable[Item], ahead: int = 4) -> Iterator[Item]:
    """The same items in the same order, produced by another thread at most `ahead` items in advance.

    An error of the source is raised after the items before it. Closing the iterator stops the thread.
    """
    source = iter(items)
    pool = ThreadPoolExecutor(1, "prefetch")
    try:
        ready = deque(pool.submit(next, source, _END) for _ in range(ahead))
        while (item := ready.popleft().result()) is not _END:
            ready.append(pool.submit(next, source, _END))
            yield item  # type: ignore[misc]
    finally:
        pool.shutdown(cancel_futures=True)
