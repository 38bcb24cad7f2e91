"""Tables of token vectors: the packaged one of WordLlama, and tables some of whose rows were learned on a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder, Vectors, as_float16_values, short_hash, unit_length
from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError, one_line
from ssrem.files import package_folder, read_tensors, write_tensors

WORDLLAMA = "wordllama"
DISTILLED = "wordllama-minilm"
_DISTILLED_FOLDER = Path(__file__).parents[1] / "packaged" / DISTILLED
_TOKENIZER, _WEIGHTS = "tokenizers/l2_supercat_tokenizer_config.json", "weights/l2_supercat_256.safetensors"


class LearnedTable(Encoder):
    """The mean of a text's word or token vectors, scaled to unit length; some vectors of the table were learned.

    A text without a known word or token gets the zero vector. start: the table before learning. rows: int32 (k,), the
    learned rows. change: int8 (k, d), by how many steps each number of these rows changed. steps: float32 (k,), the
    size of a row's step. This takes a quarter of the size of float32, with an error of at most 1/254 of the largest
    change in a row. Only the learned rows are saved, and `start` if no spec names it.
    """

    kind: ClassVar[str] = "learned-table"
    saved: ClassVar[tuple[str, ...]] = ("start", "start_signature", "sha256")
    slow = False

    def __init__(
        self,
        start: WordAverage,
        rows: NDArray[np.int32],
        change: NDArray[np.int8],
        steps: NDArray[np.float32],
    ) -> None:
        fits = change.shape == (len(rows), start.dimensions) and steps.shape == rows.shape
        if not fits or (len(rows) and not 0 <= rows.min() <= rows.max() < len(start.vectors)):
            raise EvaluatorError(f"{len(rows)} rows and {change.shape} changes do not fit {start.signature}")
        self.start, self.rows, self.change, self.steps = start, rows, change, steps
        self.unit = start.unit
        self.name, self.dimensions = f"{start.name}-learned", start.dimensions
        vectors = start.vectors.copy()
        vectors[rows] += change * steps[:, None]
        self.table = start.with_vectors(vectors, self.name, None)

    @classmethod
    def of(cls, start: WordAverage, rows: NDArray[Any], vectors: NDArray[Any]) -> Self:
        """The table `start` with `vectors` (k, d) in the rows `rows` (k,), their changes rounded to whole steps."""
        change = vectors - start.vectors[rows]
        steps = (np.abs(change).max(axis=1, initial=0) / 127).astype(np.float32)
        rounded = np.rint(change / np.where(steps > 0, steps, 1)[:, None]).astype(np.int8)
        return cls(start, rows.astype(np.int32), rounded, steps)

    @cached_property
    def signature(self) -> str:
        learned = (part.tobytes() for part in (self.rows, self.change, self.steps))
        return f"{self.name}-d{self.dimensions}-{short_hash(self.start.signature.encode(), *learned)}"

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        return unit_length(self.table._encode(texts))

    def bag(self, text: str) -> tuple[Vectors, NDArray[np.float64]]:
        return self.table.bag(text)

    def units(self, texts: Sequence[str]) -> tuple[list[list[int]], Vectors]:
        return self.table.units(texts)

    def _save(self, folder: Path) -> Mapping[str, Any]:
        start = self.start.save_unless_named(folder / "start")
        tensors: dict[str, NDArray[Any]] = {"rows": self.rows, "change": self.change, "steps": self.steps}
        digest = write_tensors(folder / "encoder.safetensors", tensors)
        return {"start": start["origin"], "start_signature": start["signature"], "sha256": digest}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        from ssrem.encoders import load_again

        names = ("rows", "change", "steps")
        tensors = read_tensors(folder / "encoder.safetensors", described["sha256"], names)
        start = load_again(described["start"], described["start_signature"], folder / "start")
        if not isinstance(start, WordAverage):
            raise EvaluatorError(f"{folder}: {start.signature} is no table of word vectors; train again")
        return cls(start, *(tensors[name] for name in names))


class TokenAverage(WordAverage):
    """The unweighted mean of the vectors of a text's tokens, 256 dimensions (package wordllama, MIT).

    The table has 32,000 rows, cut out of the input embeddings of a language model and trained on pairs of similar
    sentences. Tokens are pieces of words, with upper and lower case and punctuation, so every text that is not blank
    has a vector. Recurrent networks read these tokens (byte-pair encoding), not words.
    """

    unit = "tokens"
    kind: ClassVar[str] = "token-average"
    specs: ClassVar[tuple[str, ...]] = (WORDLLAMA, DISTILLED)
    saved: ClassVar[tuple[str, ...]] = ("origin",)

    def __init__(self) -> None:
        folder = package_folder(WORDLLAMA)
        if folder is None:
            raise EvaluatorError(
                f"encoder {WORDLLAMA}: the package wordllama is missing; pip install wordllama"
            )
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        try:
            self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
            (vectors,) = load_file(folder / _WEIGHTS).values()
        except Exception as error:  # tokenizers raises plain Exception
            raise EvaluatorError(
                f"encoder {WORDLLAMA}: {folder} cannot be read ({one_line(error)}); "
                "pip install --force-reinstall wordllama"
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True  # "</s>" in a text is plain characters
        tokens = [str(self._tokenizer.id_to_token(row)) for row in range(len(vectors))]
        super().__init__(WORDLLAMA, tokens, vectors, weighting="uniform", origin=WORDLLAMA)

    @classmethod
    def from_spec(cls, spec: str, *, train_texts: Sequence[str] | None, seed: int) -> WordAverage | None:
        return {WORDLLAMA: packaged_tokens, DISTILLED: distilled_tokens}.get(spec, lambda: None)()

    def rows(self, texts: Sequence[str]) -> list[list[int]]:
        # The tokenizer needs UTF-8, which cannot represent unpaired surrogates.
        clean = [text.strip().encode("utf-8", "replace").decode("utf-8") for text in texts]
        return [tokens.ids for tokens in self._tokenizer.encode_batch_fast(clean, add_special_tokens=False)]

    def units(self, texts: Sequence[str]) -> tuple[list[list[int]], Vectors]:
        rows = self.rows(texts)
        place = {row: at for at, row in enumerate(dict.fromkeys(chain.from_iterable(rows)))}
        return [[place[row] for row in text] for text in rows], as_float16_values(self.vectors[list(place)])

    def _save(self, folder: Path) -> Mapping[str, Any]:
        """Save only the spec: the table stays in its package, and the signature contains its hash."""
        return {"origin": self.origin}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> WordAverage:  # type: ignore[override]
        return distilled_tokens() if described["origin"] == DISTILLED else packaged_tokens()


@lru_cache(maxsize=1)
def packaged_tokens() -> TokenAverage:
    """The table of WordLlama, read once."""
    return TokenAverage()


@lru_cache(maxsize=1)
def distilled_tokens() -> WordAverage:
    """WordLlama's table, trained to imitate the packaged sentence encoder's similarities of turns; read once.

    `python -m benchmarks.distil` made it from turns of the default corpus.
    """
    learned = LearnedTable.load(_DISTILLED_FOLDER)
    return learned.start.with_vectors(learned.table.vectors, DISTILLED, DISTILLED)
