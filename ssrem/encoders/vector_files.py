"""Reads word vectors in the formats of GloVe and word2vec."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError

WordVectors = tuple[list[str], NDArray[np.float32]]
"""Words and their vectors (v, d), one a row."""

_BLOCK = 50_000
_WORD_LIMIT = 10_000


def read_vectors(path: Path) -> WordVectors:
    """Words and vectors float32 (v, d) of a text or binary file, plain or .gz, whichever the content shows.

    A word that occurs twice gets its first vector. Raises EvaluatorError with the file and the line (text) or entry
    (binary) that cannot be read.
    """
    if not path.is_file():
        raise EvaluatorError(f"{path}: no such file of word vectors")
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path, "rb") if zipped else path.open("rb") as stream:
            return _read(path, stream)  # type: ignore[arg-type]
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise EvaluatorError(f"{path}: the gzip stream is damaged ({error}); fetch the file again") from error


def _read(path: Path, stream: IO[bytes]) -> WordVectors:
    first = stream.readline(1_000_000)
    if not first.strip():
        raise EvaluatorError(f"{path}:1: empty; expected word vectors in GloVe or word2vec format")
    header = first.split()
    if len(header) == 2 and all(field.isdigit() for field in header):
        count, dimensions = int(header[0]), int(header[1])
        if dimensions < 1:
            raise EvaluatorError(f"{path}:1: the header says {dimensions} dimensions; expected 1 or more")
        opening = stream.readline(1_000_000)
        if _is_text(opening, dimensions):
            words, vectors = _read_text(path, chain([opening], stream), dimensions, first_line=2)
        else:
            words, vectors = _read_binary(path, opening, stream, count, dimensions)
        if len(words) != count:
            raise EvaluatorError(f"{path}: the header promises {count} words, the file has {len(words)}")
    else:
        words, vectors = _read_text(path, chain([first], stream), len(header) - 1, first_line=1)
    return _without_repeats(words, vectors)


def _is_text(line: bytes, dimensions: int) -> bool:
    fields = line.rstrip(b"\r\n ").split(b" ")
    if len(fields) < dimensions:
        # A text line that lacks numbers is still text, as long as only numbers follow the word.
        return len(fields) > 1 and all(_is_number(field) for field in fields[1:])
    return all(_is_number(field) for field in fields[-dimensions:])


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_text(path: Path, lines: Iterator[bytes], dimensions: int, first_line: int) -> WordVectors:
    if dimensions < 1:
        raise EvaluatorError(f"{path}:{first_line}: expected a word and its numbers, separated by blanks")
    words: list[str] = []
    blocks: list[NDArray[np.float32]] = []
    block = np.empty((_BLOCK, dimensions), dtype=np.float32)
    for number, line in enumerate(lines, start=first_line):
        fields = line.rstrip(b"\r\n ").split(b" ")
        try:
            # The word is everything before the last d fields: some of GloVe's words contain blanks.
            vector = np.array(fields[-dimensions:], dtype=np.float32)
        except ValueError:
            vector = np.empty(0, dtype=np.float32)
        if len(fields) <= dimensions or len(vector) != dimensions or not np.isfinite(vector).all():
            raise EvaluatorError(f"{path}:{number}: expected a word and {dimensions} finite numbers")
        if words and len(words) % _BLOCK == 0:
            blocks.append(block)
            block = np.empty((_BLOCK, dimensions), dtype=np.float32)
        block[len(words) % _BLOCK] = vector
        words.append(b" ".join(fields[:-dimensions]).decode("utf-8", errors="replace"))
    return words, np.concatenate([*blocks, block[: len(words) - len(blocks) * _BLOCK]])


def _read_binary(path: Path, opening: bytes, stream: IO[bytes], count: int, dimensions: int) -> WordVectors:
    size = dimensions * 4
    words: list[str] = []
    blocks: list[bytes] = []
    rest = opening
    for entry in range(1, count + 1):
        while (end := rest.find(b" ")) < 0 or len(rest) < end + 1 + size:
            more = stream.read(1 << 20)
            if not more or (end < 0 and len(rest) > _WORD_LIMIT):
                raise EvaluatorError(
                    f"{path}: entry {entry} of {count} is cut short or not in word2vec's binary format"
                )
            rest += more
        words.append(rest[:end].lstrip(b"\n").decode("utf-8", errors="replace"))
        blocks.append(rest[end + 1 : end + 1 + size])
        rest = rest[end + 1 + size :]
    vectors = np.frombuffer(b"".join(blocks), dtype="<f4").reshape(len(words), dimensions)
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(broken):
        raise EvaluatorError(f"{path}: entry {broken[0] + 1} of {count} holds numbers that are not finite")
    return words, vectors.astype(np.float32)


def _without_repeats(words: list[str], vectors: NDArray[np.float32]) -> WordVectors:
    first: dict[str, int] = {}
    for row, word in enumerate(words):
        first.setdefault(word, row)
    if len(first) == len(words):
        return words, vectors
    return list(first), vectors[list(first.values())]
