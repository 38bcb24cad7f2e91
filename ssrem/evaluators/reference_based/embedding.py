"""Similarity of a response to the reference, by vectors of texts, sentences, words or, for BERTScore, tokens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ssrem.encoders import hub, pretrained
from ssrem.encoders.base import unit_length
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import EvaluatorSettings
from ssrem.evaluators.metric import EncodedMetric, EncoderSettings, Metric, MetricScores
from ssrem.evaluators.similarity import average_similarity, movers_similarity
from ssrem.samples import Floats, Sample
from ssrem.tokenize import sentences, words

Spec = Annotated[str, Field(min_length=1)]

# Rows of a matrix of cosines that are computed together.
_ROWS = 1024
# Tokens in a batch.
_BATCH_TOKENS = 4096


class PairMetric(Metric):
    """A metric of pairs (response, reference), in batches of a bounded number of characters."""

    needs: ClassVar[frozenset[str]] = frozenset({"reference"})
    batch_samples: ClassVar[int] = 2_048
    batch_characters: ClassVar[float] = 2**18

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        return self._pairs([s.response for s in samples], [s.reference or "" for s in samples])

    @abstractmethod
    def _pairs(self, responses: list[str], references: list[str]) -> MetricScores:
        """The score of each pair, independent of the other pairs; there is at least one."""


class EncoderMetricSettings(EncoderSettings):
    """Settings of a metric over an encoder's vectors."""

    encoder: Spec = "glove-6b-50d:uniform"
    """a spec for `load_encoder`; the default needs no corpus and takes the papers' unweighted mean of words"""


class EncoderMetric(PairMetric, EncodedMetric):
    """A metric over an encoder's vectors; 0 if the encoder knows nothing in one of the texts."""

    settings_model: ClassVar[type[EvaluatorSettings]] = EncoderMetricSettings

    def _pairs(self, responses: list[str], references: list[str]) -> MetricScores:
        pieces = {text: self._encoded(text) for text in (*responses, *references)}
        distinct = list(dict.fromkeys(piece for some in pieces.values() for piece in some))
        long = {piece for piece, cut in zip(distinct, self.encoder.truncated(distinct), strict=True) if cut}
        cut = {text: not long.isdisjoint(some) for text, some in pieces.items()}
        truncated = [cut[one] or cut[other] for one, other in zip(responses, references, strict=True)]
        return MetricScores(self._similarity(responses, references), np.array(truncated))

    @abstractmethod
    def _encoded(self, text: str) -> list[str]:
        """The parts of `text` that are encoded."""

    @abstractmethod
    def _similarity(self, responses: list[str], references: list[str]) -> Floats:
        """The score of each pair, float64 (n,)."""


class EmbeddingAverage(EncoderMetric):
    """Cosine of the two texts' vectors."""

    name: ClassVar[str] = "emb-average"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    source: ClassVar[str] = "Liu et al. 2016, section 3.2.2"

    def _encoded(self, text: str) -> list[str]:
        return [text]

    def _similarity(self, responses: list[str], references: list[str]) -> Floats:
        return average_similarity(self.encoder, responses, references)


class SentenceMovers(EncoderMetric):
    """exp(-d), d the lowest cost of moving one text's words and sentences to the other's."""

    name: ClassVar[str] = "sms"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "Clark et al. 2019, words and sentences; vectors of unit length"

    def _encoded(self, text: str) -> list[str]:
        return sentences(text)

    def _similarity(self, responses: list[str], references: list[str]) -> Floats:
        return movers_similarity(self.encoder, responses, references)


class _WordMetric(EncoderMetric):
    """A metric over the vectors of words, each encoded on its own."""

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def _encoded(self, text: str) -> list[str]:
        return words(text)

    def _similarity(self, responses: list[str], references: list[str]) -> Floats:
        words_of = {text: words(text) for text in (*responses, *references)}
        vocabulary = list(dict.fromkeys(word for some in words_of.values() for word in some))
        vectors = self.encoder.encode(vocabulary).astype(np.float64)
        row = {word: at for at, word in enumerate(vocabulary) if vectors[at].any()}
        # The distinct known words of each text, and how often each occurs.
        bags = {
            text: np.unique([row[word] for word in some if word in row], return_counts=True)
            for text, some in words_of.items()
        }
        scores = np.zeros(len(responses))
        for at, (response, reference) in enumerate(zip(responses, references, strict=True)):
            (one, count), (other, other_count) = bags[response], bags[reference]
            if len(one) and len(other):
                scores[at] = self._score((vectors[one], count), (vectors[other], other_count))
        return scores

    @abstractmethod
    def _score(self, one: _Bag, other: _Bag) -> float:
        """The score of two texts that have known words."""


_Bag = tuple[Floats, NDArray[np.int64]]
"""Vectors of distinct words (k, d), none of them zero, and how often each occurs (k,)."""


class EmbeddingGreedy(_WordMetric):
    """Mean over a text's words of the highest cosine with a word of the other, averaged over both directions."""

    name: ClassVar[str] = "emb-greedy"
    source: ClassVar[str] = "Liu et al. 2016, section 3.2.1; Rus and Lintean 2012"

    def _score(self, one: _Bag, other: _Bag) -> float:
        (a, a_count), (b, b_count) = one, other
        nearest_a, nearest_b = nearest(unit_length(a), unit_length(b))
        return float(np.average(nearest_a, weights=a_count) + np.average(nearest_b, weights=b_count)) / 2


class EmbeddingExtrema(_WordMetric):
    """Cosine of the two texts' extremes: in each dimension, the value of a text's words that is farthest from 0."""

    name: ClassVar[str] = "emb-extrema"
    source: ClassVar[str] = "Liu et al. 2016, section 3.2.3; Forgues et al. 2014"

    def _score(self, one: _Bag, other: _Bag) -> float:
        ends = [(vectors.max(axis=0), vectors.min(axis=0)) for vectors, _ in (one, other)]
        a, b = (unit_length(np.where(top > -bottom, top, bottom)[None])[0] for top, bottom in ends)
        return float(a @ b)


class BertScoreSettings(EvaluatorSettings):
    """Settings of BERTScore."""

    model: Spec = hub.MINILM
    """what `hub.model_folder` accepts: an encoder, a decoder, or an encoder with a decoder, of which the encoder is
    used"""
    layer: int = -1
    """0 is the embeddings, 1 the first layer, -1 the last"""


class BertScore(PairMetric):
    """F1 of the greedy matching of the texts' tokens by the cosine of their vectors in one layer of a model.

    No idf weights, no rescaling. As in the authors' code, blanks around a text are removed, and tokens that the
    tokenizer adds can be matched but do not count. Precision and recall are means of cosines; if one of them is not
    positive, or a text has no token of its own, the score is 0. Texts with more tokens than the model takes are cut at
    the end. Batches hold texts of equal length, so nothing is padded.
    """

    name: ClassVar[str] = "bertscore"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "Zhang et al. 2020, section 3, without idf weights and rescaling"
    settings_model: ClassVar[type[EvaluatorSettings]] = BertScoreSettings

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        tokenizer, model = pretrained.load(self.settings.model, "AutoModel")
        layers, layer = int(model.config.num_hidden_layers), self.settings.layer
        if not -layers - 1 <= layer <= layers:
            raise EvaluatorError(
                f"{self.name}: {self.settings.model} has no layer {layer}; 0 to {layers}, or -1 for the last"
            )
        return tokenizer, model.get_encoder() if model.config.is_encoder_decoder else model

    @cached_property
    def engine(self) -> str:
        tokenizer, model = self._loaded
        return f"{pretrained.weights_hash(model)}-{pretrained.tokenizer_hash(tokenizer)}"

    def _pairs(self, responses: list[str], references: list[str]) -> MetricScores:
        texts = list(dict.fromkeys((*responses, *references)))
        ids, cut = self._tokens(texts)
        vectors, own = self._vectors(ids), self._own(ids)
        at = {text: number for number, text in enumerate(texts)}
        scores = np.zeros(len(responses))
        truncated = np.zeros(len(responses), dtype=bool)
        for number, (response, reference) in enumerate(zip(responses, references, strict=True)):
            one, other = at[response], at[reference]
            truncated[number] = cut[one] or cut[other]
            if own[one].any() and own[other].any():
                nearest_one, nearest_other = nearest(vectors[one], vectors[other])
                precision, recall = nearest_one[own[one]].mean(), nearest_other[own[other]].mean()
                if precision > 0 and recall > 0:
                    scores[number] = 2 * precision * recall / (precision + recall)
        return MetricScores(scores, truncated)

    def _tokens(self, texts: Sequence[str]) -> tuple[list[list[int]], list[bool]]:
        """Each text's token ids and whether its end was cut off."""
        tokenizer, model = self._loaded
        most = pretrained.max_tokens(tokenizer, model) or pretrained.USUAL_TOKENS
        ids = pretrained.token_ids(tokenizer, [text.strip() for text in texts])
        long = [len(some) > most for some in ids]
        for number in np.flatnonzero(long).tolist():
            (ids[number],) = pretrained.token_ids(tokenizer, [texts[number].strip()], most)
        return ids, long

    def _own(self, ids: Sequence[Sequence[int]]) -> list[NDArray[np.bool_]]:
        """For each text, which of its tokens come from the text, not from the tokenizer, bool (k,)."""
        tokenizer, _ = self._loaded
        added = [number for number in tokenizer.all_special_ids if number != tokenizer.unk_token_id]
        return [~np.isin(some, added) for some in ids]

    def _vectors(self, ids: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """Each text's token vectors in the layer, float32 (k, d), of unit length."""
        import torch

        _, model = self._loaded
        result: list[NDArray[np.float32]] = [np.zeros((0, 1), dtype=np.float32)] * len(ids)
        for batch in pretrained.equal_lengths(ids, _BATCH_TOKENS):
            inputs = torch.tensor([ids[number] for number in batch], device=model.device)
            with torch.inference_mode():
                states = model(inputs, attention_mask=torch.ones_like(inputs), output_hidden_states=True)
                layer = states.hidden_states[self.settings.layer].float()
                unit = torch.nn.functional.normalize(layer, dim=-1).cpu().numpy()
            if not np.isfinite(unit).all():
                raise EvaluatorError(
                    f"{self.name}: the vectors of {self.settings.model} are not finite; its weights are broken"
                )
            for number, vectors in zip(batch, unit, strict=True):
                result[number] = vectors
        return result


def nearest(a: NDArray[Any], b: NDArray[Any]) -> tuple[Floats, Floats]:
    """The highest product of each row of a with a row of b, and of each row of b with a row of a."""
    nearest_a, nearest_b = np.empty(len(a)), np.full(len(b), -np.inf)
    for start in range(0, len(a), _ROWS):
        products = a[start : start + _ROWS] @ b.T
        nearest_a[start : start + _ROWS] = products.max(axis=1)
        np.maximum(nearest_b, products.max(axis=0), out=nearest_b)
    return nearest_a, nearest_b
