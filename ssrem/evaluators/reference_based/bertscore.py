"""BERTScore: similarity of a response's tokens to the reference's, by contextual vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import hub, pretrained
from ssrem.errors import EvaluatorError
from ssrem.evaluators.core.metric import Scored, check_text
from ssrem.evaluators.reference_based.embedding import PairMetric, nearest

# Tokens in a batch.
_BATCH_TOKENS = 4096


class BertScore(PairMetric):
    """F1 of the greedy matching of the texts' tokens by the cosine of their vectors in one layer of a model.

    model: what `hub.model_folder` accepts: an encoder, a decoder, or a pair of which the encoder is used. layer: 0 is
    the embeddings, 1 the first layer, -1 the last. No idf weights, no rescaling. As in the authors' code, blanks
    around a text are removed, and tokens that the tokenizer adds can be matched but do not count. Precision and recall
    are means of cosines; if one of them is not positive, or a text has no token of its own, the score is 0. Texts with
    more tokens than the model takes are cut at the end. Batches hold texts of equal length, so nothing is padded.
    """

    name: ClassVar[str] = "bertscore"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "Zhang et al. 2020, section 3, without idf weights and rescaling"
    defaults: ClassVar[Mapping[str, Any]] = {"model": hub.MINILM, "layer": -1}

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        chosen = super().check_settings(settings)
        check_text(cls.name, "model", chosen["model"])
        if type(chosen["layer"]) is not int:
            raise EvaluatorError(
                f"{cls.name}: layer is {chosen['layer']!r}; expected a whole number, -1 for the last layer"
            )
        return chosen

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        tokenizer, model = pretrained.load(self.settings["model"], "AutoModel")
        layers, layer = int(model.config.num_hidden_layers), self.settings["layer"]
        if not -layers - 1 <= layer <= layers:
            raise EvaluatorError(
                f"{self.name}: {self.settings['model']} has no layer {layer}; 0 to {layers}, or -1 for the last"
            )
        return tokenizer, model.get_encoder() if model.config.is_encoder_decoder else model

    @cached_property
    def engine(self) -> str:
        tokenizer, model = self._loaded
        return f"{pretrained.weights_hash(model)}-{pretrained.tokenizer_hash(tokenizer)}"

    def _pairs(self, responses: list[str], references: list[str]) -> Scored:
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
        return Scored(scores, truncated)

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
        """Which tokens come from the text, not from the tokenizer."""
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
                layer = states.hidden_states[self.settings["layer"]].float()
                unit = torch.nn.functional.normalize(layer, dim=-1).cpu().numpy()
            if not np.isfinite(unit).all():
                raise EvaluatorError(
                    f"{self.name}: the vectors of {self.settings['model']} are not finite; its weights are broken"
                )
            for number, vectors in zip(batch, unit, strict=True):
                result[number] = vectors
        return result
