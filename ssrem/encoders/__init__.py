"""Encoders, which turn texts into vectors: averages of word vectors, transformers, and concatenations of both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ssrem.encoders.base import Encoder, parts_of
from ssrem.errors import EvaluatorError
from ssrem.files import expanded, read_json
from ssrem.registry import nearest, object_at, usable, with_installed
from ssrem.settings import DEFAULT_ENCODER

__all__ = ["DEFAULT_ENCODER", "ENCODERS", "Encoder", "check_spec", "load_again", "load_encoder", "load_saved"]

_OWN = {
    "concatenation": "ssrem.encoders.base:Concatenation",
    "token-average": "ssrem.encoders.tables:TokenAverage",
    "learned-table": "ssrem.encoders.tables:LearnedTable",
    "word-average": "ssrem.encoders.words:WordAverage",
    "transformer": "ssrem.encoders.transformer:Transformer",
    "adapted-transformer": "ssrem.encoders.transformer:AdaptedTransformer",
}
ENCODERS: dict[str, str] = with_installed("ssrem.encoders", _OWN)
"""Maps each kind of encoder to its class, as module:class. A spec goes to the first class that accepts it."""


def load_encoder(spec: str, *, train_texts: Sequence[str] | None = None, seed: int = 0) -> Encoder:
    """The encoder that `spec` names.

    wordllama: the packaged table of token vectors · wordllama-minilm: the same table, trained to imitate the packaged
    sentence encoder · word2vec: trained on `train_texts` · glove-6b-50d: packaged GloVe · file:PATH or an existing
    path: a file in GloVe or word2vec format, or the folder of a transformer · all-minilm-l6-v2: the packaged sentence
    encoder · minilm-mpnet: the packaged sentence encoder, trained to imitate all-mpnet-base-v2 · all-mpnet-base-v2: a
    larger sentence encoder, from ssrem[base] or the hub · hf:NAME_OR_PATH: any other transformer, by its name on the
    hub or its folder · a name known to gensim's downloader · A+B: the vectors of both, concatenated.
    After a transformer other than minilm-mpnet, ":bf16" selects products in bfloat16, which are faster where the
    processor has them, and ":int8" products of integers, which are faster on any processor.
    After a spec of word vectors, ":uniform" selects the unweighted mean of the words and ":sif" (the default) gives
    frequent words less weight. Without a corpus to count words in, rows are assumed to go from frequent to rare words.
    Raises EvaluatorError with the nearest names for an unknown spec.
    """
    if not spec:
        raise EvaluatorError("an encoder has no name; a + stands between two")
    for _, encoder_class in usable(ENCODERS, _OWN):
        encoder: Encoder | None = encoder_class.from_spec(spec, train_texts=train_texts, seed=seed)
        if encoder is not None:
            return encoder
    names, patterns = _specs()
    near = nearest(spec.rpartition(":")[0] or spec, names, cutoff=0.3)
    hint = "there are" if near == ", ".join(names) else "did you mean"
    raise EvaluatorError(f"no encoder or file {spec!r}; {hint} {near}, or {', '.join(patterns)}")


def check_spec(spec: str) -> None:
    """Raise EvaluatorError if `spec` names no encoder, or a file or folder that does not exist. An encoder is loaded
    only for a spec that is not recognised without loading it, such as file:PATH:uniform."""
    names, patterns = _specs()
    kinds = dict(pattern.split(":", 1) for pattern in patterns)  # such as "file" to "PATH"
    for _, encoder_class in usable(ENCODERS, _OWN):
        names += [f"{name}:{suffix}" for name in encoder_class.specs for suffix in encoder_class.suffixes]
    for part in parts_of(spec):
        kind, _, value = part.partition(":")
        exists = kind in kinds and (kinds[kind] == "NAME" or _is_path(value))
        if not (exists or part in names or _is_path(part) or _is_path(part.rpartition(":")[0])):
            load_encoder(part)


def _specs() -> tuple[list[str], list[str]]:
    """The names of encoders, and the patterns of specs, such as "file:PATH"."""
    specs = [spec for _, encoder_class in usable(ENCODERS, _OWN) for spec in encoder_class.specs]
    return [spec for spec in specs if ":" not in spec], [spec for spec in specs if ":" in spec]


def _is_path(text: str) -> bool:
    return bool(text) and expanded(text).exists()


def load_saved(folder: Path) -> Encoder:
    """The encoder that `Encoder.save` wrote into `folder`; EvaluatorError if it is damaged or of an unknown kind."""
    kind = read_json(folder / "encoder.json", ("kind",))["kind"]
    if kind not in ENCODERS:
        raise EvaluatorError(f"{folder}: an encoder of kind {kind!r}; this ssrem knows {', '.join(ENCODERS)}")
    encoder_class: type[Encoder] = object_at(ENCODERS[kind])
    return encoder_class.load(folder)


def load_again(origin: str | None, signature: str, folder: Path) -> Encoder:
    """The encoder that an evaluator was saved with, loaded by its spec `origin` or, if that is None, from `folder`.

    Raises EvaluatorError if its signature is not `signature`.
    """
    encoder = load_encoder(origin) if origin else load_saved(folder)
    if encoder.signature != signature:
        raise EvaluatorError(
            f"{folder.parent}: trained with encoder {signature}, but {origin or 'the one beside it'} is now "
            f"{encoder.signature}; install the version it was trained with or train again"
        )
    return encoder
