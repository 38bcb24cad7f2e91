"""A text's vector as the average of its tokens' vectors, from the packaged table of WordLlama."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from ssrem.encoders.base import Vectors, as_float16_values
from ssrem.encoders.static.learned_table import LearnedTable
from ssrem.encoders.static.word_average import WordAverage
from ssrem.errors import EvaluatorError, one_line
from ssrem.files import package_folder

WORDLLAMA = "wordllama"
DISTILLED = "wordllama-minilm"
_FOLDER = Path(__file__).parents[2] / "packaged" / DISTILLED
_TOKENIZER, _WEIGHTS = "tokenizers/l2_supercat_tokenizer_config.json", "weights/l2_supercat_256.safetensors"


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
        # The tokenizer needs UTF-8, which half of a surrogate pair does not have.
        clean = [text.strip().encode("utf-8", "replace").decode("utf-8") for text in texts]
        return [tokens.ids for tokens in self._tokenizer.encode_batch_fast(clean, add_special_tokens=False)]

    def units(self, texts: Sequence[str]) -> tuple[list[list[int]], Vectors]:
        rows = self.rows(texts)
        place = {row: at for at, row in enumerate(dict.fromkeys(chain.from_iterable(rows)))}
        return [[place[row] for row in text] for text in rows], as_float16_values(self.vectors[list(place)])

    def _save(self, folder: Path) -> Mapping[str, Any]:
        """The spec alone: the table stays in its package, and the signature has its hash."""
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
    """WordLlama's table, moved so that turns are as similar as to the packaged sentence encoder; read once.

    `python -m benchmarks.distil` made it from turns of the default corpus.
    """
    learned = LearnedTable.load(_FOLDER)
    return learned.start.with_vectors(learned.table.vectors, DISTILLED, DISTILLED)
