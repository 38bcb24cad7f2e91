"""The encoding of a text file: what the user says, else UTF-8, or Windows-1252 (cp1252) if its bytes suggest that."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from ssrem.errors import DumpError
from ssrem.readers.files.streams import GUESSED, blocks, declare, head, is_utf8, text_name

_BLOCK = 1 << 20
_ENOUGH = 1_000
"""A file is UTF-8 if this many of its lines have letters beyond ASCII and all lines so far are UTF-8."""
_START_OF_JSON = 8 << 20
"""JSON is UTF-8 by its standard, and large dumps are JSON: it is if this many bytes have no line that is not UTF-8."""
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c\x7f\x81\x8d\x8f\x90\x9d]")
"""Bytes that text in cp1252 does not contain; control characters with which IRC formats text are allowed."""
_OF_IRC = re.compile(rb"[\x02\x03\x0f\x11\x16]")
_SIGNS = frozenset("€‚„…‘’“”•–—™œŒšŠžŽŸ\xa0¡£§©ª«°²³´·º»¿½¼¾®")


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
    """Read a file from now on in the encoding that its bytes suggest: returns why it is cp1252, None if it is not."""
    declare(path, None)  # the guess is made from the bytes as they are stored
    why = _why_cp1252(path)
    if why is not None:
        declare(path, GUESSED)
    return why


def _why_cp1252(path: Path) -> str | None:
    """Why a text file with lines in cp1252 is taken for one; None for UTF-8 and files that are not text.

    Lines in cp1252 must outnumber those in UTF-8 with letters beyond ASCII, and look like a western language: few of
    their letters are beyond ASCII, and all of these are common; lines with other bytes must be rare. The whole file is
    read if necessary, of JSON without such lines the start.
    """
    if not path.is_file() or _is_binary(start := head(path, 1 << 12)):
        return None
    enough = _START_OF_JSON if _is_json(start) else float("inf")
    first: tuple[int, bytes] | None = None
    wide = broken = faulty = letters = beyond = number = size = 0
    try:
        for block in blocks(path, _BLOCK):
            if not block.isascii():
                for at, line in enumerate(block.split(b"\n"), number + 1):
                    if line.isascii():
                        continue
                    if is_utf8(line):
                        wide += 1
                        continue
                    if _CONTROLS.search(_OF_IRC.sub(b"", line)):
                        faulty += 1
                        continue
                    broken += 1
                    first = first or (at, line)
                    text = line.decode("cp1252")
                    letters += sum(map(str.isalpha, text))
                    others = [sign for sign in text if ord(sign) > 127]
                    beyond += sum(map(str.isalpha, others))
                    if not all("À" <= sign <= "þ" or sign in _SIGNS for sign in others):
                        return None
            number += block.count(b"\n")
            size += len(block)
            if (wide >= _ENOUGH or size >= enough) and not broken:
                return None
    except DumpError:  # damaged; whoever reads the file says so
        return None
    if first is None or broken <= max(wide, 20 * faulty) or beyond > 0.3 * letters:
        return None
    at, line = first
    place = next(i for i, byte in enumerate(line) if byte > 127 and not is_utf8(line[: i + 1] + b" "))
    example = line[max(0, place - 20) : place + 20].decode("cp1252", "replace").strip()
    where = f"line {at:,} of {text_name(path)}"
    return f"lines that are not UTF-8 are read as cp1252, such as {where}: {example!r}"


def _is_binary(start: bytes) -> bool:
    """Whether a file begins like Parquet, PDF or an archive, or contains null bytes, which text does not."""
    return b"\x00" in start or start.lstrip().startswith((b"PK", b"PAR1", b"%PDF"))


def _is_json(start: bytes) -> bool:
    """Whether a file begins like JSON, and not like a log, whose lines may begin with `[10:00]`."""
    return start.lstrip().startswith((b"{", b"[{", b"[\n", b"[\r"))
