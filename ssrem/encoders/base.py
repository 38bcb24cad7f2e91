"""The base class of encoders, which turn texts into vectors, and an encoder that concatenates the vectors of others."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.files import expanded, read_json, write_json
from ssrem.tokenize import sentences, words
from ssrem.trusted_sources import without_prefix

Vectors = NDArray[np.float32]

_FLOAT16_MAX = float(np.finfo(np.float16).max)


def as_float16_values(vectors: NDArray[Any]) -> Vectors:
    """The vectors as float32, rounded to values that float16 represents, so that cached and new vectors are equal."""
    clipped = np.clip(vectors, -_FLOAT16_MAX, _FLOAT16_MAX)
    return np.asarray(clipped, dtype=np.float16).astype(np.float32)


def unit_length(vectors: NDArray[Any]) -> NDArray[Any]:
    """The vectors (n, d) scaled to unit length; a zero vector stays as it is."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[Any] = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return unit


def padded(rows: Sequence[Sequence[int]], value: int = 0) -> NDArray[np.int64]:
    """The rows, such as token ids, as one array (n, t), padded with `value` at the end to the longest row's length."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    within = np.arange(lengths.max()) < lengths[:, None]
    result = np.full(within.shape, value, dtype=np.int64)
    result[within] = np.concatenate(rows)
    return result


def short_hash(*contents: bytes) -> str:
    """BLAKE2b hash of the joined contents as 8 hex digits, for signatures."""
    digest = hashlib.blake2b(digest_size=4)
    for content in contents:
        digest.update(content)
    return digest.hexdigest()


class Encoder(ABC):
    """Base class of encoders, which turn each text into a vector.

    Encoding is deterministic, and a text's vector does not depend on the texts that are encoded with it. A text without
    a word or token that the encoder knows becomes the zero vector.
    """

    kind: ClassVar[str]
    """The class's key in ssrem.encoders.ENCODERS."""
    specs: ClassVar[tuple[str, ...]] = ()
    """Specs that `from_spec` accepts, for checks and messages: names, and patterns with a colon such as "file:PATH"."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """What may follow a spec after a colon, such as "bf16"."""
    saved: ClassVar[tuple[str, ...]] = ()
    """The keys that `_save` returns and `_load` needs."""

    unit: str = "words"
    """What `units` splits a text into, for signatures and messages."""

    name: str
    dimensions: int
    slow: bool = True
    """Whether it takes longer to encode a text than to read a stored vector."""
    cache: Callable[[Sequence[str]], Vectors] | None = None
    """What `encode` calls instead of `compute`, such as a store of vectors that calls `compute` for new texts."""

    @classmethod
    def from_spec(cls, spec: str, *, train_texts: Sequence[str] | None, seed: int) -> Encoder | None:
        """The encoder that `spec` names, or None if the spec is not for this class; see `load_encoder`.

        Raises EvaluatorError if the spec is for this class but the encoder cannot be loaded.
        """
        return None

    @property
    @abstractmethod
    def signature(self) -> str:
        """Identifies the weights (by their hash) and the settings; usable as a folder name."""

    @property
    def origin(self) -> str | None:
        """The spec from which `load_encoder` builds the same encoder without the corpus, or None."""
        return None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The texts' vectors, float32 (n, d) with values that float16 represents; from the `cache` if there is one."""
        return self.cache(texts) if self.cache and len(texts) else self.compute(texts)

    def compute(self, texts: Sequence[str]) -> Vectors:
        """The texts' vectors as `encode` returns them, but computed without the cache."""
        if len(texts) == 0:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        return as_float16_values(self._encode(texts))

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """Vectors of one or more texts, floats (n, d), before they are rounded to values of float16."""

    def bag(self, text: str) -> tuple[Vectors, NDArray[np.float64]]:
        """The units of a text between which sentence mover's similarity moves weight: vectors (k, d) and weights (k,).

        Units are sentences, weighted by their number of words; encoders of word vectors also give the words.
        """
        parts = sentences(text)
        vectors = self.compute(parts)
        weights = np.array([len(words(part)) for part in parts], dtype=np.float64)
        known = vectors.any(axis=1) & (weights > 0)
        return vectors[known], weights[known]

    def units(self, texts: Sequence[str]) -> tuple[list[list[int]], Vectors]:
        """Each text as a sequence for recurrent networks: the rows of its words in the vectors, float32 (v, d).

        A word's vector is what `compute` returns for the word alone; it is zero for an unknown word.
        """
        rows: dict[str, int] = {}
        split = [[rows.setdefault(word, len(rows)) for word in words(text)] for text in texts]
        return split, self.compute(list(rows))

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Whether the encoder ignores the end of each text, bool (n,); all False if it has no limit of length."""
        return np.zeros(len(texts), dtype=bool)

    def save(self, folder: Path) -> None:
        """Write encoder.json and, where the encoder has some, tensors into `folder`, which is created if missing."""
        folder.mkdir(parents=True, exist_ok=True)
        described = self._save(folder)
        write_json(folder / "encoder.json", {"kind": self.kind, **described, "signature": self.signature})

    def save_unless_named(self, folder: Path) -> dict[str, Any]:
        """Return `origin` and `signature` for `load_again`; save the encoder into `folder` if it has no origin."""
        if self.origin is None:
            self.save(folder)
        return {"origin": self.origin, "signature": self.signature}

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The encoder that `save` wrote; EvaluatorError if the folder is incomplete or gives another encoder."""
        described = read_json(folder / "encoder.json", ("signature", *cls.saved))
        encoder = cls._load(folder, described)
        if encoder.signature != described["signature"]:
            raise EvaluatorError(
                f"{folder}: the encoder loads as {encoder.signature}, but was saved as {described['signature']}; its "
                "settings or tokenizer were changed or this is another version of ssrem: restore them or train again"
            )
        return encoder

    def _save(self, folder: Path) -> Mapping[str, Any]:
        """Write what JSON cannot hold into the existing `folder`; return the values of `saved` for encoder.json."""
        return {}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        """The encoder in `folder`; `described` is its encoder.json. EvaluatorError if a part is missing or changed."""
        return cls()


def parts_of(spec: str) -> list[str]:
    """The specs that `+` joins in `spec`; the path of an existing file or folder is one spec even with a `+` in it."""
    return [spec] if expanded(without_prefix(spec)).exists() else spec.split("+")


class Concatenation(Encoder):
    """Concatenates the vectors of `parts` in their order; sentence mover's similarity uses the first part's bag."""

    kind: ClassVar[str] = "concatenation"
    saved: ClassVar[tuple[str, ...]] = ("parts",)

    def __init__(self, parts: Sequence[Encoder]) -> None:
        self.parts = list(parts)
        self.name = "+".join(part.name for part in parts)
        self.dimensions = sum(part.dimensions for part in parts)
        self.slow = any(part.slow for part in parts)

    @classmethod
    def from_spec(cls, spec: str, *, train_texts: Sequence[str] | None, seed: int) -> Self | None:
        from ssrem.encoders import load_encoder

        if len(parts := parts_of(spec)) == 1:
            return None
        return cls([load_encoder(part, train_texts=train_texts, seed=seed) for part in parts])

    @property
    def signature(self) -> str:
        joined = "\n".join(part.signature for part in self.parts)
        return f"{self.name}-d{self.dimensions}-{short_hash(joined.encode())}"

    @property
    def origin(self) -> str | None:
        origins = [part.origin for part in self.parts if part.origin is not None]
        return "+".join(origins) if len(origins) == len(self.parts) else None

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        return np.concatenate([part.encode(texts) for part in self.parts], axis=1)

    def bag(self, text: str) -> tuple[Vectors, NDArray[np.float64]]:
        return self.parts[0].bag(text)

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        return np.asarray(np.any([part.truncated(texts) for part in self.parts], axis=0))

    def _save(self, folder: Path) -> Mapping[str, Any]:
        saved = [part.save_unless_named(folder / f"part{number}") for number, part in enumerate(self.parts)]
        return {"parts": saved}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        from ssrem.encoders import load_again

        saved = enumerate(described["parts"])
        return cls([load_again(one["origin"], one["signature"], folder / f"part{n}") for n, one in saved])
