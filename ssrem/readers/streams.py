"""Files as byte blocks: plain, gzip or zstd by their first bytes, with the stored bytes counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from ssrem.errors import DumpError

_CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
UTF8_BOM = b"\xef\xbb\xbf"


def codec(path: Path) -> str | None:
    """'gzip', 'zstd' or None, by the file's first bytes."""
    with path.open("rb") as file:
        head = file.read(4)
    return next((name for magic, name in _CODECS.items() if head.startswith(magic)), None)


def chunks(path: Path, size: int, progress: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """The file's content, unpacked, in pieces of at most `size` bytes.

    progress: called with the stored bytes read so far. Raises DumpError where a compressed file is damaged.
    """
    name = codec(path)
    with pa.OSFile(str(path), "rb") as stored:
        stream = pa.CompressedInputStream(stored, name) if name else stored
        while True:
            try:
                piece = stream.read(size)
            except OSError as error:
                raise DumpError(
                    f"{path}: the {name or 'file'} data is damaged or cut off near byte {stored.tell():,}; "
                    "fetch or pack the file again"
                ) from error
            if not piece:
                return
            if progress:
                progress(stored.tell())
            yield piece


def blocks(path: Path, size: int, progress: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """The file's content in blocks of about `size` bytes that end with a line; a longer line makes a longer
    block.

    A byte order mark at the start is left out. Only the last block may lack the final newline.
    """
    held: list[bytes] = []
    first = True
    for chunk in chunks(path, size, progress):
        piece = chunk.removeprefix(UTF8_BOM) if first else chunk
        first = False
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join([*held, memoryview(piece)[:cut]])  # one copy, not two
            held = []
        if cut < len(piece):
            held.append(piece[cut:])
    if held:
        yield b"".join(held)


def head(path: Path, size: int = 65_536) -> bytes:
    """The first `size` bytes of the content, unpacked, or all there are; damage counts as the end."""
    try:
        return next(chunks(path, size), b"").removeprefix(UTF8_BOM)
    except DumpError:
        return b""


def head_lines(path: Path, size: int = 65_536) -> list[bytes]:
    """The non-blank lines among the first `size` bytes; the last may be cut."""
    return [line for line in head(path, size).split(b"\n") if line.strip()]
