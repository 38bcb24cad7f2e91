"""Texts and dialogues as sequences of word vectors, and their encoder: a hierarchical GRU that an adem has learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem import trusted_sources
from ssrem.encoders.base import Encoder, short_hash
from ssrem.errors import EvaluatorError
from ssrem.files import expanded, read_json, read_tensors, write_tensors
from ssrem.samples import Floats, Rows

if TYPE_CHECKING:
    from torch.nn.utils.rnn import PackedSequence

    from ssrem.encoders.gru import GruNetwork, Weights

PREFIX = "encoder."
"""Prefix of this encoder's weights in the file of a saved adem."""
_WEIGHTS = "weights.safetensors"
_WORDS = "words"
_TURNS = 256
_DIALOGUES = 2_048


@dataclass(frozen=True)
class Words:
    """The known words of m texts, in order; tokens, if the encoder has vectors of tokens.

    ids: int32 (w,), rows of `vectors`; text t has ids[ends[t] : ends[t + 1]], so that neighbouring texts are
    one stretch. vectors: float32 (v + 1, d); row 0 is the padding, which no text contains.
    """

    ids: NDArray[np.int32]
    ends: Rows
    vectors: NDArray[np.float32]

    @classmethod
    def of(cls, texts: Sequence[str], encoder: Encoder, needed: NDArray[np.bool_] | None = None) -> Words:
        """The `units` of the encoder; one with a zero vector is left out.

        needed: bool (m,), the texts that are split; the others become empty.
        """
        if needed is not None:
            texts = [text if split else "" for text, split in zip(texts, needed.tolist(), strict=True)]
        rows, vectors = encoder.units(texts)
        ends = np.concatenate([[0], np.cumsum([len(text) for text in rows], dtype=np.int64)])
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(ends[-1]))
        known = vectors.any(axis=1)
        renamed = (np.cumsum(known, dtype=np.int32) * known)[ids]
        before = np.concatenate([[0], np.cumsum(renamed > 0)])
        padding = np.zeros((1, vectors.shape[1]), dtype=np.float32)
        known_ids = renamed[renamed > 0].astype(np.int32)
        return cls(known_ids, before[ends], np.concatenate([padding, vectors[known]]))

    def text(self, row: int) -> Floats:
        """Vectors of one text's words, float64 (k, d)."""
        return self.vectors[self.ids[self.ends[row] : self.ends[row + 1]]].astype(np.float64)

    def first(self, count: int, limit: int) -> Stretches:
        """The first `limit` words of each of the first `count` texts."""
        first, last = self.ends[:count], self.ends[1 : count + 1]
        stop = np.minimum(last, first + limit)
        return Stretches(first, stop, stop < last)


@dataclass(frozen=True)
class Stretches:
    """Stretches of `Words.ids`, ids[start:stop] each; int64 (n,). cut: bool (n,), whether words were cut off."""

    start: Rows
    stop: Rows
    cut: NDArray[np.bool_]

    def of(self, rows: Rows) -> Stretches:
        """The stretches at `rows`."""
        return Stretches(self.start[rows], self.stop[rows], self.cut[rows])

    @property
    def lengths(self) -> Rows:
        """Words in each, int64 (n,)."""
        return self.stop - self.start

    def padded(self, ids: NDArray[np.int32]) -> NDArray[np.int64]:
        """Their word ids, int64 (n, t), t the length of the longest, at least 1; 0 after the end of a stretch."""
        at = self.start[:, None] + np.arange(max(int(self.lengths.max(initial=0)), 1))
        taken = np.append(ids, np.int32(0)).astype(np.int64)[np.minimum(at, len(ids))]
        return np.where(at < self.stop[:, None], taken, 0)

    def packed(self, words: Words) -> PackedSequence:
        """The vectors of their words, of the padding for a stretch without words; padding behind is not read."""
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence

        vectors = torch.from_numpy(words.vectors)[torch.from_numpy(self.padded(words.ids))]
        lengths = torch.from_numpy(np.maximum(self.lengths, 1))
        return pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)


@dataclass(frozen=True)
class Dialogues:
    """Dialogues to encode: contexts, and responses or references as dialogues of one turn.

    texts: distinct. turns: int64 (n, t), rows of `texts` in order, -1 after the last turn.
    """

    texts: Sequence[str]
    turns: Rows

    @classmethod
    def of(cls, dialogues: Sequence[tuple[str, ...]]) -> Dialogues:
        """From dialogues as tuples of turns."""
        places: dict[str, int] = {}
        turns = np.full((len(dialogues), max(map(len, dialogues), default=1) or 1), -1, dtype=np.int64)
        for row, dialogue in enumerate(dialogues):
            for column, turn in enumerate(dialogue):
                turns[row, column] = places.setdefault(turn, len(places))
        return cls(list(places), turns)

    @classmethod
    def among(cls, texts: Sequence[str], turns: Rows) -> Dialogues:
        """From rows of `texts`, int64 (n, t), -1 where there is no turn; texts that no row uses are left out."""
        used, places = np.unique(turns[turns >= 0], return_inverse=True)
        renamed = np.full_like(turns, -1)
        renamed[turns >= 0] = places
        return cls([texts[row] for row in used.tolist()], renamed)

    def mask(self, true: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """`true`, bool (texts,), of each turn's text; bool (n, t), False where there is no turn."""
        result = np.zeros(self.turns.shape, dtype=bool)
        result[self.turns >= 0] = true[self.turns[self.turns >= 0]]
        return result


@dataclass(frozen=True)
class Encoded:
    """Dialogues as vectors, float64 (n, h).

    known: bool (n,), whether there is a known word; otherwise the vector is zero. cut: bool (n,), whether
    known words were cut off.
    """

    vectors: Floats
    known: NDArray[np.bool_]
    cut: NDArray[np.bool_]

    def and_then(self, other: Encoded) -> Encoded:
        """These dialogues followed by the others."""
        pairs = [(getattr(self, name), getattr(other, name)) for name in ("vectors", "known", "cut")]
        return Encoded(*(np.concatenate(pair) for pair in pairs))


def encode_dialogues(dialogues: Dialogues, encoder: Encoder, net: GruNetwork, turn_words: int) -> Encoded:
    """The network's last state of each dialogue (Lowe et al. 2017, section 4), of the first known words of each turn.

    A turn without a known word is skipped. No dialogue's vector depends on the others: each text is read once, in
    batches of about equal length without padding.
    """
    import torch

    from ssrem.training.trainer import one_thread

    turns = dialogues.turns
    words = Words.of(list(dialogues.texts) or [""], encoder)
    texts = words.first(len(words.ends) - 1, turn_words)
    known = dialogues.mask(texts.lengths > 0)
    vectors = torch.zeros(len(texts.lengths), net.norm.normalized_shape[0])
    order = np.argsort(texts.lengths, kind="stable")
    order = order[texts.lengths[order] > 0]
    states = np.zeros((len(turns), net.turns.hidden_size))
    with torch.no_grad(), one_thread():
        for first in range(0, len(order), _TURNS):
            batch = order[first : first + _TURNS]
            vectors[torch.from_numpy(batch)] = net.utterances(texts.of(batch).packed(words))
        for first in range(0, len(turns), _DIALOGUES):
            at = slice(first, first + _DIALOGUES)
            read = vectors[torch.from_numpy(np.maximum(turns[at], 0))]
            states[at] = net.states(read, torch.from_numpy(known[at]))[:, -1].numpy()
    some = (np.asarray(true.any(axis=1)) for true in (known, dialogues.mask(texts.cut)))
    return Encoded(states, *some)


class HierarchicalGru(Encoder):
    """The state of a hierarchical GRU after a text of one turn (Lowe et al. 2017, section 4), before ADEM's projection.

    words: the encoder of single words. weights: of `GruNetwork`. turn_words: how many known words of a text are read.
    """

    kind: ClassVar[str] = "hierarchical-gru"
    specs: ClassVar[tuple[str, ...]] = ("adem:FOLDER",)
    saved: ClassVar[tuple[str, ...]] = ("turn_words", "words", "sha256")
    name = "adem"

    def __init__(self, words: Encoder, weights: Weights, turn_words: int) -> None:
        """EvaluatorError if the weights are not those of such a network over these words."""
        from ssrem.encoders.gru import GruNetwork

        self.words, self.weights, self.turn_words = words, dict(weights), turn_words
        try:
            utterance, self.dimensions = len(weights["norm.weight"]), weights["turns.weight_hh"].shape[1]
        except (KeyError, TypeError, IndexError) as error:
            raise EvaluatorError(f"the weights are not those of a recurrent encoder ({error})") from error
        self.net = GruNetwork.of(weights, words.dimensions, utterance, self.dimensions)

    @classmethod
    def from_spec(cls, spec: str, *, train_texts: Sequence[str] | None, seed: int) -> Self | None:
        """The encoder of a trained adem's folder; EvaluatorError if it holds none."""
        if not spec.startswith("adem:"):
            return None
        folder = expanded(spec.removeprefix("adem:"))
        trusted_sources.check(folder)
        about = read_json(folder / "evaluator.json", ("name",))
        if about["name"].split("-")[0] != "adem":
            raise EvaluatorError(f"encoder adem:{folder}: holds {about['name']}, not adem; train one first")
        about = read_json(folder / "evaluator.json", ("name", "config", "encoder", "sha256"))
        tensors = read_tensors(folder / _WEIGHTS, about["sha256"][_WEIGHTS], ())
        weights = {
            name.removeprefix(PREFIX): array for name, array in tensors.items() if name.startswith(PREFIX)
        }
        if not weights:
            raise EvaluatorError(
                f"{about['name']} was trained with pretrained={about['config']['pretrained']}, so it has no recurrent "
                "encoder; train it with pretrained=vhred, or name its encoder itself"
            )
        words = _words(folder / "encoder", about["encoder"])
        return cls(words, weights, int(about["config"]["turn_words"]))

    @cached_property
    def signature(self) -> str:
        weights = (self.weights[name].tobytes() for name in sorted(self.weights))
        digest = short_hash(f"{self.words.signature} {self.turn_words}".encode(), *weights)
        return f"adem-gru-d{self.dimensions}-{digest}"

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        return self._read(texts).vectors

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        return self._read(texts).cut

    def _read(self, texts: Sequence[str]) -> Encoded:
        turns = Dialogues.of([(text,) for text in texts])
        return encode_dialogues(turns, self.words, self.net, self.turn_words)

    def _save(self, folder: Path) -> Mapping[str, Any]:
        words = self.words.save_unless_named(folder / _WORDS)
        digest = write_tensors(folder / _WEIGHTS, self.weights)
        return {"turn_words": self.turn_words, "words": words, "sha256": digest}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        weights = read_tensors(folder / _WEIGHTS, described["sha256"], ())
        return cls(_words(folder / _WORDS, described["words"]), weights, int(described["turn_words"]))


def _words(folder: Path, about: Any) -> Encoder:
    """The encoder of words that `about` names, or that is saved in the folder."""
    from ssrem.encoders import load_again

    try:
        return load_again(about["origin"], about["signature"], folder)
    except (KeyError, TypeError) as error:
        raise EvaluatorError(
            f"{folder.parent}: does not name the words' encoder ({error}); copy it again"
        ) from error
