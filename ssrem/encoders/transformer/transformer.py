"""A text's vector by a transformer: token vectors, pooled."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.encoders.transformer import hub, pretrained
from ssrem.encoders.transformer.pooling import Pooling, pool
from ssrem.errors import EvaluatorError

# Texts tokenized at once.
_CHUNK = 16_384
# Tokens in a batch, by type of device.
_BATCH_TOKENS = {"cpu": 4_096, "mps": 16_384, "cuda": 65_536}


class _SentenceModel(pretrained.Pretrained):
    auto_class: ClassVar[str] = "AutoModel"


class Transformer(Encoder):
    """Token vectors of the last layer, pooled (Reimers and Gurevych 2019, section 3).

    spec: what `hub.model_folder` accepts, and ":bf16" after it for products of bfloat16: other vectors, of another
    signature, in less time where the processor has them. Pooling, maximal length and scaling to unit length are read
    from the model's sentence-transformers files; without them, the mean and no scaling. The length never exceeds what
    the model and its tokenizer take. A batch holds texts with equally many tokens, so nothing is padded, and the other
    texts of a batch change a vector only by the processor's order of addition: by some 1e-7 before the rounding to
    float16, after which one element in thousands may be the neighbouring float16. A text without a known token, empty
    or all unknown, is the zero vector.
    """

    kind: ClassVar[str] = "transformer"
    specs: ClassVar[tuple[str, ...]] = (hub.MINILM, "hf:NAME")
    saved: ClassVar[tuple[str, ...]] = ("origin", "weights")

    def __init__(self, spec: str, *, device: str | None = None) -> None:
        mixed = pretrained.BF16 * spec.endswith(pretrained.BF16)
        spec = spec.removesuffix(pretrained.BF16)
        folder = hub.local_folder(spec)
        self.pooling = Pooling.of(folder)
        self._pretrained: pretrained.Pretrained = _SentenceModel.shared(f"{folder}{mixed}", device)
        self.tokenizer, self.model = self._pretrained.tokenizer, self._pretrained.model
        if self.model.config.is_encoder_decoder:
            raise EvaluatorError(
                f"model {spec!r}: an encoder with a decoder; name a model that is only one of them"
            )
        name = hub.model_folder(spec)
        if spec.removeprefix("hf:") == hub.MINILM:
            self._origin = self.name = hub.MINILM
        else:
            # Absolute, so that the folder is found from any working directory.
            self._origin = f"hf:{folder.resolve() if Path(name).is_dir() else name}"
            self.name = re.sub(r"[^a-z0-9._]+", "-", Path(name).name.lower()).strip("-.") or "transformer"
        self.dimensions = int(self.model.config.hidden_size)
        limits = [self.pooling.max_length, pretrained.max_tokens(self.tokenizer, self.model)]
        self.max_length = min(
            (limit for limit in limits if limit is not None), default=pretrained.USUAL_TOKENS
        )

    @classmethod
    def from_spec(cls, spec: str, *, train_texts: Sequence[str] | None, seed: int) -> Self | None:
        bare = spec.removesuffix(pretrained.BF16)
        mine = bare == hub.MINILM or bare.startswith("hf:") or hub.is_model_folder(bare)
        return cls(spec) if mine else None

    @property
    def origin(self) -> str:
        return self._origin + pretrained.BF16 * self._pretrained.mixed

    @property
    def weights(self) -> str:
        """The hash of the model's weights."""
        return self._pretrained.hashes[0]

    @cached_property
    def signature(self) -> str:
        form = "-unit" * self.pooling.unit + "-lower" * self.pooling.lower + "-bf16" * self._pretrained.mixed
        size = f"l{self.max_length}-d{self.dimensions}"
        return f"{self.name}-{self.pooling.mode}{form}-{size}-{'-'.join(self._pretrained.hashes)}"

    def with_model(self, model: Any, name: str) -> Self:
        """The same tokenizer and pooling with other weights."""
        other = copy.copy(self)
        other.model, other.name = model, name
        other._pretrained = pretrained.Pretrained(name, self.tokenizer, model, mixed=self._pretrained.mixed)
        other.__dict__.pop("signature", None)
        return other

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each text has more than `max_length` tokens, bool (n,): its end is not encoded."""
        chunks = (self.tokens(texts[start : start + _CHUNK]) for start in range(0, len(texts), _CHUNK))
        return np.array([len(ids) > self.max_length for chunk in chunks for ids in chunk], dtype=bool)

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        (vectors,) = self.vectors(texts, lambda **inputs: [self.model(**inputs).last_hidden_state])
        return np.asarray(vectors)

    def vectors(
        self, texts: Sequence[str], states: Callable[..., Sequence[Any]], count: int = 1
    ) -> NDArray[Any]:
        """Pooled vectors (count, n, d) of the texts by `count` models at once.

        states: gives their token vectors, a tensor (b, t, d) each, for `input_ids` (b, t) and `attention_mask`.
        """
        # Zero for a text to which the tokenizer adds no token and in which it finds none.
        result = np.zeros((count, len(texts), self.dimensions), dtype=np.float32)
        budget = _BATCH_TOKENS.get(self.model.device.type, _BATCH_TOKENS["cpu"])
        # Around all batches, so that the weights are rounded once.
        with self._pretrained.precision():
            for start in range(0, len(texts), _CHUNK):
                ids = self.tokens(texts[start : start + _CHUNK], self.max_length)
                for rows in pretrained.equal_lengths(ids, budget):
                    result[:, start + rows] = self._pooled([ids[row] for row in rows], states, count)
        if not np.isfinite(result).all():
            raise EvaluatorError(f"encoder {self.name}: its vectors are not finite; its weights are broken")
        return result

    def tokens(self, texts: Sequence[str], max_length: int | None = None) -> list[list[int]]:
        """Token ids of the texts, cut to `max_length`."""
        lower = [text.lower() for text in texts] if self.pooling.lower else texts
        return pretrained.token_ids(self.tokenizer, lower, max_length)

    def _pooled(
        self, tokens: Sequence[Sequence[int]], states: Callable[..., Sequence[Any]], count: int
    ) -> NDArray[Any]:
        """Vectors (count, b, d) of texts with equally many tokens."""
        import torch

        ids = np.asarray(tokens, dtype=np.int64)
        result = np.zeros((count, len(ids), self.dimensions), dtype=np.float32)
        known = ~np.isin(ids, self.tokenizer.all_special_ids).all(axis=1)
        if not known.any():
            return result
        with torch.inference_mode():
            inputs = torch.from_numpy(ids[known]).to(self.model.device)
            by_model = states(input_ids=inputs, attention_mask=torch.ones_like(inputs))
            for at, token_vectors in enumerate(by_model):
                pooled = pool(token_vectors, self.pooling.mode)
                if self.pooling.unit:
                    pooled = torch.nn.functional.normalize(pooled, dim=1)
                result[at, known] = pooled.float().cpu().numpy()
        return result

    def _save(self, folder: Path) -> Mapping[str, Any]:
        """The spec and the hash of the weights, which stay where they are."""
        return {"origin": self.origin, "weights": self.weights}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        origin, weights = described["origin"], described["weights"]
        if not isinstance(origin, str):
            raise EvaluatorError(
                f"{folder}: origin is {origin!r}, expected a name or a folder; copy or train it again"
            )
        encoder = cls(origin)
        if encoder.weights != weights:
            raise EvaluatorError(
                f"{folder}: saved with weights {weights} of {origin}, which now has {encoder.weights}; "
                "bring those weights back or train again"
            )
        return encoder
