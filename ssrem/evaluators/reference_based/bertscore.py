"""BERTScore: how near a response's tokens are to the reference's, each in its context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.hub import MINILM
from ssrem.errors import EvaluatorError
from ssrem.evaluators.core.metric import Scored
from ssrem.evaluators.reference_based.embedding import PairMetric, check_text, nearest

# Tokens that go through the model together.
_BATCH_TOKENS = 4096


class BertScore(PairMetric):
    """F1 of the greedy matching of the texts' tokens by the cosine of their vectors in a model's layer.

    model: what `hub.model_folder` takes, an encoder, a decoder or the encoder of a pair. layer: 0 the embeddings,
    1 the first layer, -1 the last. No idf weights, no rescaling. As in the authors' code, blanks around a text
    are dropped, and tokens that the tokenizer adds can be matched but do not count. Precision and recall are
    means of cosines; where one is not positive, or a text has no token of its own, the score is 0. Texts of more
    tokens than the model takes are cut at the end. Tokens go through the model in batches of equally long texts,
    so nothing is padded.
    """

    name: ClassVar[str] = "bertscore"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "Zhang et al. 2020, section 3, without idf weights and rescaling"
    defaults: ClassVar[Mapping[str, Any]] = {"model": MINILM, "layer": -1}

    @classmethod
    def check(cls, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        check_text(cls.name, "model", {**cls.defaults, **settings}["model"])
        layer = settings.get("layer", -1)
        if isinstance(layer, bool) or not isinstance(layer, int):
            raise EvaluatorError(f"{cls.name}: layer {layer!r} is no whole number; -1 is the last layer")

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        from ssrem.encoders import hub

        tokenizer, model = hub.load(self.settings["model"], "AutoModel")
        layers, layer = int(model.config.num_hidden_layers), self.settings["layer"]
        if not -layers - 1 <= layer <= layers:
            raise EvaluatorError(
                f"{self.name}: {self.settings['model']} has no layer {layer}; 0 to {layers}, or -1 for the last"
            )
        return tokenizer, model.get_encoder() if model.config.is_encoder_decoder else model

    @cached_property
    def engine(self) -> str:
        from ssrem.encoders import hub

        tokenizer, model = self._loaded
        return f"{hub.weights_hash(model)}-{hub.tokenizer_hash(tokenizer)}"

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
        from ssrem.encoders import hub

        tokenizer, model = self._loaded
        most = hub.max_tokens(tokenizer, model) or hub.USUAL_TOKENS
        # A lone half of a surrogate pair has no UTF-8, which the tokenizer works on.
        clean = [text.strip().encode("utf-8", "replace").decode("utf-8") for text in texts]
        with hub.quiet():
            ids: list[list[int]] = tokenizer(clean, truncation=False, padding=False)["input_ids"]
            long = [len(some) > most for some in ids]
            for number in np.flatnonzero(long):
                ids[number] = tokenizer(clean[number], truncation=True, max_length=most)["input_ids"]
        return ids, long

    def _own(self, ids: Sequence[Sequence[int]]) -> list[NDArray[np.bool_]]:
        """Which of the tokens stand for the text: all but those that the tokenizer adds."""
        tokenizer, _ = self._loaded
        added = [number for number in tokenizer.all_special_ids if number != tokenizer.unk_token_id]
        return [~np.isin(some, added) for some in ids]

    def _vectors(self, ids: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """Each text's token vectors in the layer, float32 (k, d), of unit length."""
        import torch

        _, model = self._loaded
        lengths = np.array([len(some) for some in ids])
        result: list[NDArray[np.float32]] = [np.zeros((0, 1), dtype=np.float32)] * len(ids)
        for length in np.unique(lengths[lengths > 0]):
            same, step = np.flatnonzero(lengths == length), max(1, _BATCH_TOKENS // length)
            for batch in (same[start : start + step] for start in range(0, len(same), step)):
                given = torch.tensor([ids[number] for number in batch], device=model.device)
                with torch.inference_mode():
                    states = model(given, attention_mask=torch.ones_like(given), output_hidden_states=True)
                    layer = states.hidden_states[self.settings["layer"]].float()
                    unit = torch.nn.functional.normalize(layer, dim=-1).cpu().numpy()
                if not np.isfinite(unit).all():
                    raise EvaluatorError(
                        f"{self.name}: {self.settings['model']} gives vectors that are not finite; "
                        "its weights are broken"
                    )
                for number, vectors in zip(batch, unit, strict=True):
                    result[number] = vectors
        return result
