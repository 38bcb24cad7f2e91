"""Reads files as blocks of bytes, plain or compressed (by their first bytes), and counts the stored bytes read."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from ssrem.errors import DumpError

_CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_CODECS |= {b"BZh%d" % level: "bz2" for level in range(1, 10)}
UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_WIDEST_OF_ARROW = 1 << 27
"""Most bytes of a window of zstd data that Arrow unpacks."""
LONGEST_ROW = 128 << 20
"""Most bytes of one row of a dump, such as a line, that are read into memory."""


def text_name(path: Path) -> str:
    """The name of a file as text; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path.name).decode("utf-8", "backslashreplace")


def files_of(path: Path) -> list[Path]:
    """The file itself, or the files of a folder whose names do not begin with a dot, sorted."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))


def is_utf8(content: bytes) -> bool:
    """Whether the bytes are UTF-8."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def shown(line: bytes) -> str:
    """The first characters of a line in quotes, as messages print them."""
    return repr(line.strip()[:60].decode("utf-8", "backslashreplace"))


def too_long(path: Path, row: str) -> DumpError:
    """The error for a row that is longer than LONGEST_ROW."""
    return DumpError(
        f"{path}: {row} is longer than {LONGEST_ROW >> 20} MB; is it the right file? Split that row"
    )


def _window(head: bytes) -> int:
    """The bytes of memory that the zstd data with these first bytes needs; 0 if they are damaged."""
    import zstandard

    try:
        return int(zstandard.get_frame_parameters(head).window_size)
    except zstandard.ZstdError:
        return 0


def _wide_frames(stored: Any, size: int) -> Iterator[bytes]:
    """The content of zstd data with windows of up to 2 GB, such as Pushshift's; OSError if it is damaged."""
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    frame = unpacker.decompressobj()
    while packed := stored.read(1 << 16):
        while packed:
            if frame.eof:
                frame = unpacker.decompressobj()
            try:
                content = frame.decompress(packed)
            except zstandard.ZstdError as error:
                raise OSError(str(error)) from error
            packed = frame.unused_data if frame.eof else b""
            yield from (content[at : at + size] for at in range(0, len(content), size))
    if not frame.eof:
        raise OSError("the last frame is cut off")


def _raw_chunks(path: Path, size: int, progress: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """The file's decompressed content in pieces of at most `size` bytes.

    progress: called with the number of stored bytes read so far. DumpError if a compressed file is damaged.
    """
    import pyarrow as pa

    with path.open("rb") as file:
        head = file.read(18)
    codec = next((name for magic, name in _CODECS.items() if head.startswith(magic)), None)
    with pa.OSFile(os.fsencode(path), "rb") as stored:
        stream = pa.CompressedInputStream(stored, codec) if codec else stored
        wide = codec == "zstd" and _window(head) > _WIDEST_OF_ARROW
        pieces = _wide_frames(stored, size) if wide else iter(partial(stream.read, size), b"")
        while True:
            try:
                piece = next(pieces, b"")
            except OSError as error:
                raise DumpError(
                    f"{path}: the {codec or 'file'} data is damaged or cut off near byte {stored.tell():,}; "
                    "fetch or pack the file again"
                ) from error
            if progress:  # also at the end, where compressed data may unpack to nothing
                progress(stored.tell())
            if not piece:
                return
            yield piece


def chunks(path: Path, size: int, progress: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """As `_raw_chunks`; text in UTF-16, by its byte order mark, becomes UTF-8, in which faults of it stay faults."""
    pieces = _raw_chunks(path, size, progress)
    first = next(pieces, b"")
    if not first.startswith(_UTF16_BOMS):
        yield from (piece for piece in (first,) if piece)
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder("utf-16")("surrogatepass")
    for piece in chain((first,), pieces, (None,)):
        try:
            text = decoder.decode(piece or b"", final=piece is None)
        except UnicodeDecodeError as error:
            raise DumpError(
                f"{path}: the UTF-16 text is damaged or cut off; save the file as UTF-8"
            ) from error
        content = text.encode("utf-8", "surrogatepass")
        yield from (content[at : at + size] for at in range(0, len(content), size))


def is_utf16(path: Path) -> bool:
    """Whether a file begins with a byte order mark of UTF-16."""
    return path.is_file() and next(_raw_chunks(path, 4), b"").startswith(_UTF16_BOMS)


def blocks(path: Path, size: int, progress: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """The file's content in blocks of whole lines, of about `size` bytes, or one longer line.

    A byte order mark at the start is removed. Only the last block may lack the final newline. DumpError for a line
    longer than LONGEST_ROW.
    """
    held: list[bytes] = []
    held_bytes = lines = 0
    first = True
    for chunk in chunks(path, size, progress):
        piece = chunk.removeprefix(UTF8_BOM) if first else chunk
        first = False
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
                raise too_long(path, f"line {lines + 1:,}")
    if held:
        yield b"".join(held)


def head(path: Path, size: int = 65_536) -> bytes:
    """The first `size` bytes of the decompressed content, or up to its end or a damaged place; none of a folder."""
    try:
        return b"" if path.is_dir() else next(chunks(path, size), b"").removeprefix(UTF8_BOM)
    except DumpError:
        return b""
