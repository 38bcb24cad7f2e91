"""A text's vector by a transformer: token vectors, pooled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem import files
from ssrem.encoders import hub
from ssrem.encoders.base import Encoder
from ssrem.encoders.pooling import Pooling
from ssrem.errors import EvaluatorError

_CHUNK = 16_384
"""Texts tokenized at once."""
_BATCH_TOKENS = {"cpu": 4_096, "mps": 16_384, "cuda": 65_536}
"""Tokens that go through the model at once."""


class Transformer(Encoder):
    """Token vectors of the last layer, pooled (Reimers and Gurevych 2019, section 3).

    spec: what `hub.model_folder` takes. Pooling, length and unit length are those of the model's
    sentence-transformers files, or the mean and no unit length where it has none; the length is never more than
    the model and its tokenizer take. A batch holds texts of one
    length in tokens, so nothing is padded and a vector depends on its neighbours only through the order in
    which the processor adds: before the rounding to float16 by some 1e-7, after it an element in thousands may
    fall on the neighbouring float16. A text without a token of its own, empty or all unknown, is the zero vector.
    """

    kind: ClassVar[str] = "transformer"

    def __init__(self, spec: str, *, device: str | None = None) -> None:
        folder = hub.local_folder(spec)
        self.pooling = Pooling.of(folder)
        self.tokenizer, self.model = hub.load(str(folder), "AutoModel", device=device)
        if self.model.config.is_encoder_decoder:
            raise EvaluatorError(
                f"model {spec!r}: an encoder with a decoder; name one that is an encoder or a decoder alone"
            )
        name = hub.model_folder(spec)
        if spec.removeprefix("hf:") == hub.MINILM:
            self._origin = self.name = hub.MINILM
        else:
            # A path must lead to the same folder from anywhere.
            self._origin = f"hf:{folder.resolve() if Path(name).is_dir() else name}"
            self.name = re.sub(r"[^a-z0-9._]+", "-", Path(name).name.lower()).strip("-.") or "transformer"
        self.dimensions = int(self.model.config.hidden_size)
        limits = [self.pooling.max_length, hub.max_tokens(self.tokenizer, self.model)]
        self.max_length = min((limit for limit in limits if limit is not None), default=hub.USUAL_TOKENS)

    @property
    def origin(self) -> str:
        return self._origin

    @cached_property
    def weights(self) -> str:
        """The hash of the model's weights."""
        return hub.weights_hash(self.model)

    @cached_property
    def signature(self) -> str:
        form = [self.pooling.mode, *(["unit"] if self.pooling.unit else [])]
        lower = ["lower"] if self.pooling.lower else []
        known = [self.weights, hub.tokenizer_hash(self.tokenizer)]
        return "-".join([self.name, *form, *lower, f"l{self.max_length}", f"d{self.dimensions}", *known])

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Which texts have more than `max_length` tokens, bool (n,): their ends are not encoded."""
        lengths = [len(tokens) for chunk in self._tokens(texts, cut=False) for tokens in chunk]
        return np.asarray(lengths, dtype=np.int64) > self.max_length

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        result = np.empty((len(texts), self.dimensions), dtype=np.float32)
        start = 0
        for tokens in self._tokens(texts, cut=True):
            for rows in self._batches([len(one) for one in tokens]):
                result[start + rows] = self._pooled([tokens[row] for row in rows])
            start += len(tokens)
        if not np.isfinite(result).all():
            raise EvaluatorError(
                f"encoder {self.name}: gives vectors that are not finite; its weights are broken"
            )
        return result

    def _tokens(self, texts: Sequence[str], *, cut: bool) -> Iterator[list[list[int]]]:
        for start in range(0, len(texts), _CHUNK):
            # A lone half of a surrogate pair has no UTF-8, which the tokenizer works on.
            chunk = [
                text.encode("utf-8", "replace").decode("utf-8") for text in texts[start : start + _CHUNK]
            ]
            if self.pooling.lower:
                chunk = [text.lower() for text in chunk]
            with hub.quiet():
                found = self.tokenizer(
                    chunk, truncation=cut, max_length=self.max_length if cut else None, padding=False
                )
            yield found["input_ids"]

    def _batches(self, lengths: Sequence[int]) -> Iterator[NDArray[np.int64]]:
        """Positions of texts of one length, batch by batch, short texts first."""
        sizes = np.asarray(lengths, dtype=np.int64)
        order = np.argsort(sizes, kind="stable")
        budget = _BATCH_TOKENS.get(self.model.device.type, _BATCH_TOKENS["cpu"])
        for group in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
            step = max(1, budget // max(int(sizes[group[0]]), 1))
            yield from (group[start : start + step] for start in range(0, len(group), step))

    def _pooled(self, tokens: Sequence[Sequence[int]]) -> NDArray[Any]:
        """Vectors (b, d) of texts with equally many tokens."""
        import torch

        ids = np.asarray(tokens, dtype=np.int64)
        result = np.zeros((len(ids), self.dimensions), dtype=np.float32)
        known = ~np.isin(ids, self.tokenizer.all_special_ids).all(axis=1)
        if not known.any():
            return result
        with torch.inference_mode():
            given = torch.from_numpy(ids[known]).to(self.model.device)
            states = self.model(input_ids=given, attention_mask=torch.ones_like(given)).last_hidden_state
            pooled = {
                "mean": lambda: states.mean(dim=1),
                "cls": lambda: states[:, 0],
                "max": lambda: states.amax(dim=1),
            }[self.pooling.mode]()
            if self.pooling.unit:
                pooled = torch.nn.functional.normalize(pooled, dim=1)
            result[known] = pooled.float().cpu().numpy()
        return result

    def save(self, folder: Path) -> None:
        """The spec and the hashes; the weights stay where they are."""
        folder.mkdir(parents=True, exist_ok=True)
        files.write_json(
            folder / "encoder.json",
            {
                "kind": self.kind,
                "origin": self.origin,
                "weights": self.weights,
                "signature": self.signature,
            },
        )

    @classmethod
    def load(cls, folder: Path) -> Transformer:
        about = files.read_json(folder / "encoder.json", ("kind", "origin", "weights", "signature"))
        if not isinstance(about["origin"], str):
            raise EvaluatorError(
                f"{folder}: origin is {about['origin']!r}, expected a name or a folder; copy or train it again"
            )
        encoder = cls(about["origin"])
        if encoder.weights != about["weights"]:
            raise EvaluatorError(
                f"{folder}: made with weights {about['weights']} of {about['origin']}, which now has "
                f"{encoder.weights}; bring those weights back or train again"
            )
        if encoder.signature != about["signature"]:
            raise EvaluatorError(
                f"{folder}: the encoder reads as {encoder.signature}, saved as {about['signature']}; "
                "its settings or tokenizer were changed, bring them back or train again"
            )
        return encoder
