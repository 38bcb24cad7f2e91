"""Encoders that pool the token vectors of a transformer as the model's files say, with or without learned adapters."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import hub, pretrained
from ssrem.encoders.base import Encoder, short_hash, unit_length
from ssrem.errors import EvaluatorError, one_line
from ssrem.files import read_tensors, write_tensors

# Texts tokenized at once.
_CHUNK = 16_384
# Tokens in a batch, by type of device.
_BATCH_TOKENS = {"cpu": 4_096, "mps": 16_384, "cuda": 65_536}
_MODES = ("mean", "cls", "max")
MOVED = "minilm-mpnet"
"""The packaged sentence encoder, trained to imitate all-mpnet-base-v2."""
_MOVED_FOLDER = Path(__file__).parents[1] / "packaged" / MOVED
# Older versions of sentence-transformers wrote flags such as pooling_mode_mean_tokens instead of "pooling_mode".
_FLAG = "pooling_mode_"
UP, DOWN = ".up", ".down"


@dataclass(frozen=True)
class Pooling:
    """How the vectors of a text's tokens become its vector. mode: mean, cls or max. unit: whether it gets unit length.

    lower: whether texts are lower-cased first. max_length: largest number of tokens, including those that the tokenizer
    adds; None if the folder does not say.
    """

    mode: str = "mean"
    unit: bool = False
    lower: bool = False
    max_length: int | None = None

    @classmethod
    def of(cls, folder: Path) -> Pooling:
        """The pooling that the sentence-transformers files in `folder` describe; the mean if there are none.

        Raises EvaluatorError for a pipeline with other modules, poolings or prompts: ignoring them would give
        vectors that are not the model's.
        """

        def read(file: str, kind: type[Any]) -> Any:
            """The JSON object or list in a file of the model; empty if there is no such file."""
            if ".." in Path(file).parts:
                raise EvaluatorError(
                    f"model {folder}: modules.json names {file!r}, which is outside the folder"
                )
            try:
                content = json.loads((folder / file).read_text(encoding="utf-8"))
            except FileNotFoundError:
                return kind()
            except (OSError, ValueError, RecursionError) as error:
                raise EvaluatorError(
                    f"model {folder}: {file} is not JSON ({one_line(error)}); copy it again"
                ) from error
            if not isinstance(content, kind):
                raise EvaluatorError(
                    f"model {folder}: {file} is not a JSON {'object' if kind is dict else 'list'}; copy it again"
                )
            return content

        if not (folder / "modules.json").is_file():
            return cls()
        try:
            modules = [
                (one["type"].rpartition(".")[2], one["path"].lstrip("/"))
                for one in read("modules.json", list)
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise EvaluatorError(f"model {folder}: modules.json is no list of modules ({error!r})") from error
        kinds = [kind for kind, _ in modules]
        if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
            raise EvaluatorError(
                f"model {folder}: its modules are {', '.join(kinds)}; only a Transformer with Pooling "
                "and an optional Normalize can be used"
            )
        prompt = read("config_sentence_transformers.json", dict).get("default_prompt_name")
        if prompt is not None:
            raise EvaluatorError(
                f"model {folder}: expects its prompt {prompt!r} before every text; name another model"
            )
        transformer, pooling = (
            read(str(Path(modules[at][1]) / file), dict)
            for at, file in enumerate(("sentence_bert_config.json", "config.json"))
        )
        length = transformer.get("max_seq_length")
        if length is not None and (type(length) is not int or length < 1):
            raise EvaluatorError(f"model {folder}: its max_seq_length is {length!r}, expected a whole number")
        flags = [name for name, value in sorted(pooling.items()) if name.startswith(_FLAG) and value]
        named = pooling.get("pooling_mode") or [flag.removeprefix(_FLAG) for flag in flags]
        modes = [
            re.sub("_tokens?$", "", str(mode)) for mode in (named if isinstance(named, list) else [named])
        ]
        if len(modes) != 1 or modes[0] not in _MODES:
            raise EvaluatorError(
                f"model {folder}: its pooling is {' with '.join(modes) or 'not said'}; one of {', '.join(_MODES)} "
                "can be used"
            )
        return cls(modes[0], "Normalize" in kinds, bool(transformer.get("do_lower_case", False)), length)


def pool(states: Any, mode: str, mask: Any = None) -> Any:
    """Pool token vectors (b, t, d) to one vector per text (b, d); both are torch tensors.

    mask: bool (b, t), False for padding at the end.
    """
    if mode == "cls":
        return states[:, 0]
    if mode == "max":
        return (states if mask is None else states.masked_fill(~mask[:, :, None], float("-inf"))).amax(dim=1)
    if mask is None:
        return states.mean(dim=1)
    return (states * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1)[:, None]


class SentenceModel(pretrained.Pretrained):
    """A transformer without a head, shared by encoders and cross-encoders."""

    auto_class: ClassVar[str] = "AutoModel"


class Transformer(Encoder):
    """The pooled token vectors of a transformer's last layer (Reimers and Gurevych 2019, section 3).

    spec: what `hub.model_folder` accepts; after it ":bf16" selects products in bfloat16, and ":int8" products of
    integers on the CPU (`layers.Int8Linear`). Both give other vectors, with another signature, in less time. Pooling,
    maximal length and scaling to unit length are read from the model's sentence-transformers files; without these files
    the mean is taken and not scaled. The length never exceeds what the model and its tokenizer take. A batch holds
    texts with equally many tokens, so nothing is padded, and the other texts of a batch change a vector only through
    the processor's order of addition: by about 1e-7 before the rounding to float16, after which one element in
    thousands may be the neighbouring float16. A text without a known token, empty or all unknown, has a zero vector.
    """

    kind: ClassVar[str] = "transformer"
    specs: ClassVar[tuple[str, ...]] = (*hub.NAMED, "hf:NAME")
    suffixes: ClassVar[tuple[str, ...]] = tuple(form.strip(":") for form in (hub.BF16, hub.INT8))
    saved: ClassVar[tuple[str, ...]] = ("origin", "weights")

    def __init__(self, spec: str, *, device: str | None = None) -> None:
        spec, self.form = hub.without_form(spec)
        folder = hub.local_folder(spec)
        self.pooling = Pooling.of(folder)
        self._pretrained: pretrained.Pretrained = SentenceModel.shared(f"{folder}{self.form}", device)
        self.tokenizer, self.model = self._pretrained.tokenizer, self._pretrained.model
        if self.model.config.is_encoder_decoder:
            raise EvaluatorError(
                f"model {spec!r}: an encoder with a decoder; name a model that is only one of them"
            )
        if spec.removeprefix("hf:") in hub.NAMED:
            self._origin = self.name = spec.removeprefix("hf:")
        else:
            name = hub.model_folder(spec)
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
        bare, _ = hub.without_form(spec)
        mine = bare in hub.NAMED or bare.startswith("hf:") or hub.is_model_folder(bare)
        return cls(spec) if mine else None

    @property
    def origin(self) -> str:
        return self._origin + self.form

    @property
    def weights(self) -> str:
        """The hash of the model's weights."""
        return self._pretrained.hashes[0]

    @cached_property
    def signature(self) -> str:
        form = "-unit" * self.pooling.unit + "-lower" * self.pooling.lower + self.form.replace(":", "-")
        size = f"l{self.max_length}-d{self.dimensions}"
        return f"{self.name}-{self.pooling.mode}{form}-{size}-{'-'.join(self._pretrained.hashes)}"

    def with_model(self, model: Any, name: str) -> Self:
        """A copy of the encoder with another model, but the same tokenizer, pooling and kind of products."""
        from ssrem.encoders.layers import use_int8

        if self.form == hub.INT8:
            use_int8(model)
        other = copy.copy(self)
        other.model, other.name, other.cache = model, name, None
        other._pretrained = pretrained.Pretrained(name, self.tokenizer, model, mixed=self._pretrained.mixed)
        other.__dict__.pop("signature", None)
        return other

    def in_int8(self) -> Self:
        """A copy of the encoder that multiplies integers (`layers.Int8Linear`)."""
        other = copy.copy(self)
        other.form = hub.INT8
        return other.with_model(copy.deepcopy(self.model), self.name)

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each text has more than `max_length` tokens, bool (n,): its end is not encoded."""
        chunks = (self.tokens(texts[start : start + _CHUNK]) for start in range(0, len(texts), _CHUNK))
        return np.array([len(ids) > self.max_length for chunk in chunks for ids in chunk], dtype=bool)

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        import torch

        # A text that has no token, or only special tokens, keeps the zero vector.
        result = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        budget = _BATCH_TOKENS.get(self.model.device.type, _BATCH_TOKENS["cpu"])
        # The precision is set around all batches, so that the weights are rounded once.
        with torch.inference_mode(), self._pretrained.precision():
            for start in range(0, len(texts), _CHUNK):
                tokens = self.tokens(texts[start : start + _CHUNK], self.max_length)
                for rows in pretrained.equal_lengths(tokens, budget):
                    ids = np.array([tokens[row] for row in rows], dtype=np.int64)
                    known = ~np.isin(ids, self.tokenizer.all_special_ids).all(axis=1)
                    if not known.any():
                        continue
                    inputs = torch.from_numpy(ids[known]).to(self.model.device)
                    states = self.model(input_ids=inputs, attention_mask=torch.ones_like(inputs))
                    pooled = pool(states.last_hidden_state, self.pooling.mode)
                    if self.pooling.unit:
                        pooled = torch.nn.functional.normalize(pooled, dim=1)
                    result[start + rows[known]] = pooled.float().cpu().numpy()
        if not np.isfinite(result).all():
            raise EvaluatorError(f"encoder {self.name}: its vectors are not finite; its weights are broken")
        return result

    def tokens(self, texts: Sequence[str], max_length: int | None = None) -> list[list[int]]:
        """The token ids of each text, cut to `max_length` if it is not None."""
        lower = [text.lower() for text in texts] if self.pooling.lower else texts
        return pretrained.token_ids(self.tokenizer, lower, max_length)

    def _save(self, folder: Path) -> Mapping[str, Any]:
        """Save only the spec and the hash of the weights; the weights stay where they are."""
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


def adapter_factors(adapters: Mapping[str, Any]) -> dict[str, Any]:
    """The torch parameters of adapters, by the names that `AdaptedTransformer` uses.

    adapters: as `layers.add_adapters` returns them."""
    return {
        name + side: value
        for name, adapter in adapters.items()
        for side, value in ((UP, adapter.up), (DOWN, adapter.down))
    }


class AdaptedTransformer(Encoder):
    """A transformer with low-rank adapters in some of its matrices (Hu et al. 2022, section 4.1).

    Its vectors have unit length. start: the transformer without adapters. factors: for each adapted matrix NAME (o, i)
    of its model the tensors NAME.up (o, r) and NAME.down (r, i), whose product is added to the matrix. Only the factors
    are saved. The products are added once, so that encoding takes no longer than by `start`.

    The spec minilm-mpnet is the packaged sentence encoder, adapted so that similarities of turns are about those
    of all-mpnet-base-v2; `python -m benchmarks.distil minilm-mpnet` made it from turns of the default corpus.
    """

    kind: ClassVar[str] = "adapted-transformer"
    specs: ClassVar[tuple[str, ...]] = (MOVED,)
    saved: ClassVar[tuple[str, ...]] = ("start", "start_signature", "sha256")
    origin: str | None = None

    def __init__(self, start: Transformer, factors: Mapping[str, NDArray[np.float16]]) -> None:
        import torch

        self.start, self.factors = start, factors
        self.name, self.dimensions = f"{start.name}-adapted", start.dimensions
        model = copy.deepcopy(start.model)
        weights = dict(model.named_parameters())
        with torch.no_grad():
            for name in sorted({name.rpartition(".")[0] for name in factors}):
                try:
                    up, down = (
                        torch.from_numpy(factors[name + side].astype(np.float32)) for side in (UP, DOWN)
                    )
                    weights[name].add_((up @ down).to(weights[name].device))
                except (KeyError, RuntimeError) as error:
                    raise EvaluatorError(f"adapters of {name} do not fit {start.signature}") from error
        self.adapted = start.with_model(model, self.name)

    @classmethod
    def from_spec(cls, spec: str, *, train_texts: Sequence[str] | None, seed: int) -> Self | None:
        if spec != MOVED:
            return None
        encoder = cls.load(_MOVED_FOLDER)
        encoder.origin = MOVED
        return encoder

    @cached_property
    def signature(self) -> str:
        factors = (name.encode() + self.factors[name].tobytes() for name in sorted(self.factors))
        return f"{self.name}-d{self.dimensions}-{short_hash(self.start.signature.encode(), *factors)}"

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        return self.start.truncated(texts)

    def in_int8(self) -> Self:
        """A copy of the encoder that multiplies integers; its signature is the same."""
        other = copy.copy(self)
        other.adapted = self.adapted.in_int8()
        return other

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        return unit_length(self.adapted._encode(texts))

    def _save(self, folder: Path) -> Mapping[str, Any]:
        digest = write_tensors(folder / "encoder.safetensors", self.factors)
        return {"start": self.start.origin, "start_signature": self.start.signature, "sha256": digest}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        from ssrem.encoders import load_again

        factors = read_tensors(folder / "encoder.safetensors", described["sha256"], ())
        start = load_again(described["start"], described["start_signature"], folder / "start")
        if not isinstance(start, Transformer):
            raise EvaluatorError(f"{folder}: {start.signature} is no transformer; train again")
        return cls(start, factors)
