"""Reads files as blocks of bytes, plain or compressed (by their first bytes), as UTF-8, and counts the bytes read.

The encoding of a text is what the user says, else UTF-16 by its byte order mark, or UTF-8, or Windows-1252 (cp1252)
where the bytes look like it.
"""

from __future__ import annotations

import codecs
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from ssrem.errors import DumpError
from ssrem.files import UTF16_BOMS

Item = TypeVar("Item")

_END = object()
_CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_CODECS |= {b"BZh%d" % level: "bz2" for level in range(1, 10)}
UTF8_BOM = codecs.BOM_UTF8
_WIDEST_OF_ARROW = 1 << 27
"""Largest window, in bytes, of zstd data that Arrow decompresses."""
LONGEST_ROW = 128 << 20
"""Most bytes of one row of a dump, such as a line, that are read into memory."""
GUESSED = "cp1252 where not UTF-8"
"""Used as an encoding: lines that are not UTF-8 are read as cp1252."""

_SMALLEST_RECODED = 1 << 16
"""Fewest bytes of a piece that is recoded: many small ones would take long."""
_LONG_LINE = 1 << 20
"""A line of more bytes, such as JSON without line breaks, is recoded in parts."""
_BEYOND_ASCII = bytes(range(128, 256))
_GUESSED_BY = 8 << 20
"""The bytes at the start of a file by which its encoding is guessed."""
_CONTROLS = re.compile(rb"[\x00-\x01\x04-\x08\x0e\x10\x12-\x15\x17-\x1a\x1c\x7f\x81\x8d\x8f\x90\x9d]")
"""Bytes that text in cp1252 does not contain; control characters with which IRC formats text are allowed."""
_SIGNS = frozenset("€‚„…‘’“”•–—™œŒšŠžŽŸ\xa0¡£§©ª«°²³´·º»¿½¼¾®")

_FOREIGN = {b"%pdf": "a PDF file", b"sqlite format 3": "an SQLite database", b"{\\rtf": "an RTF document"}
_FOREIGN |= dict.fromkeys((b"\x89png", b"gif8", b"\xff\xd8\xff"), "a picture")
_FOREIGN |= {
    b"<?xml": "XML",
    b"<!doctype": "HTML",
    b"<html": "HTML",
    b"\xd0\xcf\x11\xe0": "an office document",
}

_encodings: dict[str, str] = {}
"""File → its encoding as set by `declare`, if it is neither UTF-8 nor UTF-16 with a byte order mark."""


def declare(path: Path, encoding: str | None) -> None:
    """Read a file as text in this encoding, or GUESSED, from now on; None: as UTF-8, or UTF-16 by its first bytes."""
    if encoding is None:
        _encodings.pop(str(path.absolute()), None)
    else:
        _encodings[str(path.absolute())] = encoding


def checked_encoding(name: str | None) -> str | None:
    """The value of `--encoding`; DumpError if Python has no such encoding of text."""
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


def declare_guess(path: Path) -> str | None:
    """Read a file from now on in the encoding that its start suggests: returns why it is cp1252, None if it is not.

    Lines in cp1252 must outnumber those in UTF-8 with letters beyond ASCII, and look like a western language: few of
    their letters are beyond ASCII, and all of these are common; lines with other bytes must be rare.
    """
    declare(path, None)  # the guess is made from the bytes as they are stored
    start = head(path, _GUESSED_BY)
    if len(start) + len(UTF8_BOM) >= _GUESSED_BY:  # the end may be a part of a line, or of a letter
        start = start[: start.rfind(b"\n") + 1] or start.rstrip(_BEYOND_ASCII)
    if is_utf8(start) or b"\0" in start[:4096] or start.lstrip().startswith((b"PK", b"PAR1", b"%PDF")):
        return None
    lines = [(number, line) for number, line in enumerate(start.split(b"\n"), 1) if not line.isascii()]
    others = [(number, line) for number, line in lines if not is_utf8(line)]
    broken = [(number, line) for number, line in others if not _CONTROLS.search(line)]
    text = b"\n".join(line for _, line in broken).decode("cp1252")
    beyond = [sign for sign in text if ord(sign) > 127]
    rare = 20 * (len(others) - len(broken))
    if (
        len(broken) <= max(len(lines) - len(others), rare)
        or not all("À" <= sign <= "þ" or sign in _SIGNS for sign in beyond)
        or sum(map(str.isalpha, beyond)) > 0.3 * sum(map(str.isalpha, text))
    ):
        return None
    declare(path, GUESSED)
    number, line = broken[0]
    place = next(i for i, byte in enumerate(line) if byte > 127 and not is_utf8(line[: i + 1] + b" "))
    example = line[max(0, place - 20) : place + 20].decode("cp1252", "replace").strip()
    where = f"line {number:,} of {text_name(path)}"
    return f"lines that are not UTF-8 are read as cp1252, such as {where}: {example!r}"


def _keep_bytes(error: UnicodeError) -> tuple[str, int]:
    """Error handler of codecs: keeps bytes that are invalid in an encoding, so that the text is invalid as UTF-8."""
    if not isinstance(error, UnicodeDecodeError) or error.object[error.start : error.end].isascii():
        raise error
    faulty = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) if byte > 127 else chr(byte) for byte in faulty), error.end


codecs.register_error("ssrem-keep-bytes", _keep_bytes)


def text_name(path: Path, folder: Path | None = None) -> str:
    """The name of a file, or its path below `folder` if it is there, as text; bytes that are not UTF-8 are escaped."""
    inside = folder is not None and path != folder and path.is_relative_to(folder)
    name = str(path.relative_to(folder)) if folder and inside else path.name
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def files_of(path: Path) -> list[Path]:
    """The file itself, or the files of a folder and its subfolders, sorted; names that begin with a dot are hidden."""
    if not path.is_dir():
        return [path]
    return sorted(_files_in(path, set()))


def _files_in(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """Files of a folder and its subfolders; those that are in `seen`, since links may lead to them again, have none."""
    if folder.resolve() in seen:
        return
    seen.add(folder.resolve())
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _files_in(path, seen)
        elif path.is_file():
            yield path


def foreign(path: Path) -> str | None:
    """The kind of a file that no reader can read, by its first bytes, such as a picture; None for other files."""
    start = head(path, 64).lstrip().lower()
    return next((kind for first, kind in _FOREIGN.items() if start.startswith(first)), None)


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


def excerpt(line: bytes) -> str:
    """The first characters of a line in quotes, as messages print them."""
    return repr(line.strip()[:60].decode("utf-8", "backslashreplace"))


def too_long(path: Path, row: str) -> DumpError:
    """The error for a row that is longer than LONGEST_ROW."""
    return DumpError(
        f"{path}: {row} is longer than {LONGEST_ROW >> 20} MB; is it the right file? Split that row"
    )


def _window(head: bytes) -> int:
    """The window in bytes of the zstd data that begins with `head` (RFC 8878, section 3.1.1.1); 0 where the content is
    one segment, which is no longer than its window."""
    if len(head) < 6 or head[4] & 0x20:
        return 0
    base = 1 << (10 + (head[5] >> 3))
    return base + (base >> 3) * (head[5] & 7)


def _wide_frames(stored: Any, size: int) -> Iterator[bytes]:
    """The content of zstd data with windows of up to 2 GB, such as Pushshift's; OSError if it is damaged."""
    try:
        import zstandard
    except ModuleNotFoundError:
        raise DumpError(
            "zstd data with a window of more than 128 MB needs a package; pip install zstandard"
        ) from None

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
    """The file's decompressed content in pieces of at most `size` bytes; progress and errors as in `_raw_chunks`.

    Text in the declared encoding, or in UTF-16 by its byte order mark, becomes UTF-8. Bytes that are invalid in the
    encoding, and halves of surrogate pairs, stay, so that they are invalid as UTF-8 too.
    """
    encoding = _encodings.get(str(path.absolute()))
    pieces = _raw_chunks(path, max(size, _SMALLEST_RECODED) if encoding else size, progress)
    first = next(pieces, b"")
    if encoding is None and not first.startswith(UTF16_BOMS):
        yield from (piece for piece in (first,) if piece)
        yield from pieces
        return
    pieces = chain((first,), pieces)
    recoded = _by_line(pieces) if encoding == GUESSED else _recoded(path, pieces, encoding)
    for content in recoded:
        yield from (content[at : at + size] for at in range(0, len(content), size))


def _recoded(path: Path, pieces: Iterator[bytes], encoding: str | None) -> Iterator[bytes]:
    """Text in an encoding, by default UTF-16 with a byte order mark, as UTF-8."""
    faulty, keep = ("ssrem-keep-bytes", "surrogateescape") if encoding else ("surrogatepass", "surrogatepass")
    decoder = codecs.getincrementaldecoder(encoding or "utf-16")(faulty)
    for piece in chain(pieces, (None,)):
        try:
            yield decoder.decode(piece or b"", final=piece is None).encode("utf-8", keep)
        except UnicodeError as error:
            way_out = "give its encoding with --encoding" if encoding else "save the file as UTF-8"
            raise DumpError(
                f"{path}: the {encoding or 'UTF-16'} text is damaged or cut off; {way_out}"
            ) from error


def _by_line(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Lines of UTF-8 unchanged, all others recoded from cp1252; of a long line, each part is one or the other."""
    held = b""
    for piece in chain(pieces, (b"",)):
        held += piece
        cut = held.rfind(b"\n") + 1 if piece else len(held)
        if not cut and len(held) > _LONG_LINE:
            cut = len(held.rstrip(_BEYOND_ASCII)) or len(held)  # divides no character of UTF-8
        block, held = held[:cut], held[cut:]
        lines = [block] if is_utf8(block) else block.splitlines(keepends=True)
        yield b"".join(line if is_utf8(line) else _from_cp1252(line) for line in lines)


def _from_cp1252(line: bytes) -> bytes:
    return line.decode("cp1252", "ssrem-keep-bytes").encode("utf-8", "surrogateescape")


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its first bytes."""
    return head(path, 4) == b"PAR1"


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
