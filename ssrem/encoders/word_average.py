"""A text's vector as the average of its words' vectors (V of Bak and Oh 2020, section 5.1)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem import files
from ssrem.encoders.base import Encoder, Vectors, as_float16_values
from ssrem.encoders.tokenize import TOKENIZER_VERSION, sentences, words
from ssrem.errors import EvaluatorError

WEIGHTINGS = ("sif", "uniform")

_CHUNK = 20_000
# Arora, Liang and Ma (2017), section 4: the results hardly move between 1e-4 and 1e-3.
_SIF_A = 1e-3
_ZIPF_OFFSET = 2.7


class WordAverage(Encoder):
    """The mean of the vectors of a text's known words; each occurrence counts.

    vocabulary: words, one for each row. vectors: float32 (v, d), finite. weighting: 'uniform', the papers'
    plain mean, or 'sif', the mean weighted by a / (a + p(word)), a = .001 (Arora, Liang and Ma 2017, without
    their removal of the common component), in which frequent words say less. frequencies: p, float (v,);
    without them, Zipf's law over the rows, for the usual files list words from frequent to rare.
    """

    kind: ClassVar[str] = "word-average"

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

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        result = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _CHUNK):
            result[start : start + _CHUNK] = self._average(texts[start : start + _CHUNK])
        return result

    def _average(self, texts: Sequence[str]) -> NDArray[Any]:
        from scipy.sparse import csr_array

        rows: list[int] = []
        ends = np.zeros(len(texts) + 1, dtype=np.int64)
        find = self._row.get
        for position, text in enumerate(texts, start=1):
            rows.extend(row for word in words(text) if (row := find(word)) is not None)
            ends[position] = len(rows)
        # A row of this product is summed in the order of its words, whatever the other rows are.
        chosen = np.asarray(rows, dtype=np.int64)
        shape = (len(texts), len(self.vectors))
        weights = csr_array((self.weights[chosen], chosen, ends), shape=shape)
        totals = weights @ np.ones(len(self.vectors), dtype=np.float32)
        totals[totals == 0] = 1
        return np.asarray((weights @ self.vectors) / totals[:, None])

    def bag(self, text: str) -> tuple[Vectors, NDArray[np.float64]]:
        """Words, weighted by how often they occur, and sentences, weighted by their known words."""
        counts: dict[int, int] = {}
        parts: list[NDArray[np.float32]] = []
        sizes: list[int] = []
        for sentence in sentences(text):
            found = [self._row[word] for word in words(sentence) if word in self._row]
            for row in found:
                counts[row] = counts.get(row, 0) + 1
            if found:
                weights = self.weights[found]
                parts.append(weights @ self.vectors[found] / weights.sum())
                sizes.append(len(found))
        if not counts:
            return np.zeros((0, self.dimensions), dtype=np.float32), np.zeros(0)
        vectors = np.concatenate([self.vectors[list(counts)], np.stack(parts)])
        return as_float16_values(vectors), np.array([*counts.values(), *sizes], dtype=np.float64)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        text = np.frombuffer("\n".join(self.vocabulary).encode(), dtype=np.uint8)
        digest = files.write_tensors(
            folder / "encoder.safetensors",
            {"vectors": self.vectors, "weights": self.weights, "vocabulary": text},
        )
        files.write_json(
            folder / "encoder.json",
            {
                "kind": self.kind,
                "name": self.name,
                "weighting": self.weighting,
                "origin": self.origin,
                "signature": self.signature,
                "sha256": digest,
            },
        )

    @classmethod
    def load(cls, folder: Path) -> WordAverage:
        about = files.read_json(folder / "encoder.json", ("kind", "name", "weighting", "signature", "sha256"))
        tensors = files.read_tensors(
            folder / "encoder.safetensors", about["sha256"], ("vectors", "weights", "vocabulary")
        )
        vocabulary = tensors["vocabulary"].tobytes().decode().split("\n")
        encoder = cls(
            about["name"],
            vocabulary,
            tensors["vectors"],
            weighting=about["weighting"],
            origin=about.get("origin"),
        )
        encoder.weights = tensors["weights"]
        if encoder.signature != about["signature"]:
            raise EvaluatorError(
                f"{folder}: the encoder reads as {encoder.signature}, saved as {about['signature']}; "
                "it was made by another version of ssrem, train again"
            )
        return encoder


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
