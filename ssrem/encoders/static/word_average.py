"""A text's vector as the average of its words' vectors (V of Bak and Oh 2020, section 5.1)."""

from __future__ import annotations

import copy
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder, Vectors, as_float16_values
from ssrem.encoders.static import word_vectors
from ssrem.encoders.static.word_vectors import DOWNLOADS, GLOVE, WORD2VEC
from ssrem.errors import EvaluatorError
from ssrem.files import expanded, read_tensors, write_tensors
from ssrem.tokenize import TOKENIZER_VERSION, sentences, words

WEIGHTINGS = ("sif", "uniform")

_CHUNK = 20_000
# Arora, Liang and Ma (2017), section 4: the results hardly move between 1e-4 and 1e-3.
_SIF_A = 1e-3
_ZIPF_OFFSET = 2.7


class WordAverage(Encoder):
    """The mean of the vectors of a text's known words; each occurrence counts.

    vocabulary: words, one a row. vectors: float32 (v, d), finite. weighting: 'uniform', the papers' unweighted
    mean, or 'sif', the mean weighted by a / (a + p(word)), a = .001 (Arora, Liang and Ma 2017, without their removal
    of the common component), which gives frequent words less weight. frequencies: p, float (v,); None assumes
    Zipf's law over the rows, because files usually list words from frequent to rare.
    """

    kind: ClassVar[str] = "word-average"
    specs: ClassVar[tuple[str, ...]] = (WORD2VEC, GLOVE, *DOWNLOADS, "file:PATH")
    saved: ClassVar[tuple[str, ...]] = ("name", "weighting", "origin", "sha256")

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
        self.name = name
        self.dimensions = matrix.shape[1]
        self.vocabulary = vocabulary
        self.vectors = matrix
        self.weighting = weighting
        self.weights = _weights(name, weighting, frequencies, len(matrix))
        self._origin = origin
        self._row = {word: row for row, word in reversed(list(enumerate(vocabulary)))}

    @classmethod
    def from_spec(cls, spec: str, *, train_texts: Sequence[str] | None, seed: int) -> WordAverage | None:
        name, _, weighting = spec.rpartition(":")
        if weighting not in WEIGHTINGS or expanded(spec).is_file():
            # conceptnet-numberbatch sorts its words by the alphabet, so a row number is no rank of frequency.
            name, weighting = spec, "uniform" if spec.startswith("conceptnet-") else "sif"
        path = expanded(name.removeprefix("file:"))
        if path.is_file() or (name.startswith("file:") and not path.is_dir()):
            vectors = word_vectors.read_file(path)
            return cls(path.name.split(".")[0] or path.name, *vectors, weighting=weighting)
        if name in DOWNLOADS:
            return cls(name, *word_vectors.download(name), weighting=weighting, origin=f"{name}:{weighting}")
        if name == WORD2VEC:
            vocabulary, matrix, frequencies = word_vectors.train_word2vec(train_texts, seed=seed)
            return cls(name, vocabulary, matrix, weighting=weighting, frequencies=frequencies)
        return packaged_glove(weighting) if name == GLOVE else None

    @property
    def origin(self) -> str | None:
        return self._origin

    @cached_property
    def signature(self) -> str:
        digest = hashlib.blake2b(digest_size=4)
        digest.update("\n".join(self.vocabulary).encode())
        digest.update(self.vectors.tobytes())
        digest.update(self.weights.tobytes())
        slug = re.sub(r"[^A-Za-z0-9._]+", "-", self.name).strip("-.") or "vectors"
        return f"{slug}-{self.weighting}-d{self.dimensions}-t{TOKENIZER_VERSION}-{digest.hexdigest()}"

    def with_vectors(self, vectors: NDArray[np.float32], name: str, origin: str | None) -> Self:
        """The same words or tokens with other vectors (v, d)."""
        other = copy.copy(self)
        other.vectors, other.name, other._origin = vectors, name, origin
        other.__dict__.pop("signature", None)  # computed for these vectors
        return other

    @property
    def slow(self) -> bool:
        return False

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        result = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _CHUNK):
            result[start : start + _CHUNK] = self._average(texts[start : start + _CHUNK])
        return result

    def _average(self, texts: Sequence[str]) -> NDArray[Any]:
        from scipy.sparse import csr_array

        rows = self.rows(texts)
        ends = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        # A row of this product is summed in the order of its words, whatever the other rows are.
        chosen = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(ends[-1]))
        shape = (len(texts), len(self.vectors))
        weights = csr_array((self.weights[chosen], chosen, ends), shape=shape)
        totals = weights @ np.ones(len(self.vectors), dtype=np.float32)
        totals[totals == 0] = 1
        return np.asarray((weights @ self.vectors) / totals[:, None])

    def rows(self, texts: Sequence[str]) -> list[list[int]]:
        """The rows of each text's known words, in their order."""
        find = self._row.get
        return [[row for word in words(text) if (row := find(word)) is not None] for text in texts]

    def bag(self, text: str) -> tuple[Vectors, NDArray[np.float64]]:
        """Words, weighted by how often they occur, and sentences, weighted by their known words."""
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
        tensors = read_tensors(
            folder / "encoder.safetensors", described["sha256"], ("vectors", "weights", "vocabulary")
        )
        encoder = cls(
            described["name"],
            tensors["vocabulary"].tobytes().decode().split("\n"),
            tensors["vectors"],
            weighting=described["weighting"],
            origin=described["origin"],
        )
        encoder.weights = tensors["weights"]
        return encoder


@lru_cache(maxsize=1)  # Every stage of a run loads it, and reading it takes a second.
def packaged_glove(weighting: str = "sif") -> WordAverage:
    """The average of the packaged GloVe vectors; see `word_vectors.packaged_glove`."""
    vectors = word_vectors.packaged_glove()
    return WordAverage(GLOVE, *vectors, weighting=weighting, origin=f"{GLOVE}:{weighting}")


def _weights(name: str, weighting: str, frequencies: NDArray[Any] | None, size: int) -> NDArray[np.float32]:
    if weighting == "uniform":
        return np.ones(size, dtype=np.float32)
    if weighting != "sif":
        raise EvaluatorError(f"encoder {name}: no weighting {weighting!r}; one of {', '.join(WEIGHTINGS)}")
    if frequencies is None:
        frequencies = 1 / (np.arange(size) + _ZIPF_OFFSET)
        frequencies = frequencies / frequencies.sum()
    if frequencies.shape != (size,) or not (np.isfinite(frequencies).all() and (frequencies >= 0).all()):
        raise EvaluatorError(
            f"encoder {name}: frequencies of shape {frequencies.shape} do not fit {size} words"
        )
    return (_SIF_A / (_SIF_A + frequencies)).astype(np.float32)
