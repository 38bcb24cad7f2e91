"""A hierarchical GRU over frozen word vectors: dialogues, or texts of one turn, to the vectors that it learned."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem import trusted_sources
from ssrem.encoders import load_again
from ssrem.encoders.base import Encoder
from ssrem.encoders.recurrent.word_sequences import Stretches, Words, first_words
from ssrem.errors import EvaluatorError
from ssrem.files import expanded, read_json, read_tensors, write_tensors
from ssrem.samples import Floats, Rows

if TYPE_CHECKING:
    from ssrem.encoders.recurrent.gru_network import GruNetwork
    from ssrem.encoders.recurrent.network import Weights

PREFIX = "encoder."
"""Prefix of this encoder's weights in the file of a saved adem."""
_WEIGHTS = "weights.safetensors"
_WORDS = "words"
_TURNS = 256
_DIALOGUES = 2_048


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
        from ssrem.encoders.recurrent.gru_network import GruNetwork

        self.words, self.weights, self.turn_words = words, dict(weights), turn_words
        try:
            utterance, self.dimensions = len(weights["norm.weight"]), weights["turns.weight_hh"].shape[1]
        except (KeyError, TypeError, IndexError) as error:
            raise EvaluatorError(f"the weights are not those of a recurrent encoder ({error})") from error
        self.net = GruNetwork.of(weights, words.dimensions, utterance, self.dimensions)

    @classmethod
    def from_spec(cls, spec: str, *, train_texts: Sequence[str] | None, seed: int) -> Self | None:
        return cls.of(expanded(spec.removeprefix("adem:"))) if spec.startswith("adem:") else None

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The encoder of a trained adem's folder; EvaluatorError if it holds none."""
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
        digest = hashlib.blake2b(f"{self.words.signature} {self.turn_words}".encode(), digest_size=4)
        for name in sorted(self.weights):
            digest.update(self.weights[name].tobytes())
        return f"adem-gru-d{self.dimensions}-{digest.hexdigest()}"

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        return self._read(texts).vectors

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        return self._read(texts).cut

    def _read(self, texts: Sequence[str]) -> Encoded:
        turns = Dialogues.of([(text,) for text in texts])
        return encode_dialogues(turns, self.words, self.net, self.turn_words)

    def _save(self, folder: Path) -> Mapping[str, Any]:
        if self.words.origin is None:
            self.words.save(folder / _WORDS)
        return {
            "turn_words": self.turn_words,
            "words": {"signature": self.words.signature, "origin": self.words.origin},
            "sha256": write_tensors(folder / _WEIGHTS, self.weights),
        }

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        weights = read_tensors(folder / _WEIGHTS, described["sha256"], ())
        return cls(_words(folder / _WORDS, described["words"]), weights, int(described["turn_words"]))


def _words(folder: Path, about: Any) -> Encoder:
    """The encoder of words that `about` names, or that is saved in the folder."""
    try:
        return load_again(about["origin"], about["signature"], folder)
    except (KeyError, TypeError) as error:
        raise EvaluatorError(
            f"{folder.parent}: does not name the words' encoder ({error}); copy it again"
        ) from error


@dataclass(frozen=True)
class Dialogues:
    """Dialogues to encode: contexts, and responses or references as dialogues of one turn.

    texts: distinct turns. turns: int64 (n, t), rows of `texts`, oldest first, -1 behind the last turn.
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
        return Encoded(
            np.concatenate([self.vectors, other.vectors]),
            np.concatenate([self.known, other.known]),
            np.concatenate([self.cut, other.cut]),
        )


def encode_dialogues(dialogues: Dialogues, encoder: Encoder, net: GruNetwork, turn_words: int) -> Encoded:
    """The network's last state of each dialogue (Lowe et al. 2017, section 4), of the first known words of each turn.

    A turn without a known word is skipped. No dialogue's vector depends on the others.
    """
    turns = dialogues.turns
    words = Words.of(list(dialogues.texts) or [""], encoder)
    texts = first_words(words, len(words.ends) - 1, turn_words)
    known = holds_of(turns, texts.lengths > 0)
    cut = holds_of(turns, texts.cut)
    states = _last_states(net, words, texts, turns, known)
    return Encoded(states, np.asarray(known.any(axis=1)), np.asarray(cut.any(axis=1)))


def holds_of(turns: Rows, true: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where there is a turn for whose text `true`, bool (texts,), holds; bool (n, t)."""
    result = np.zeros(turns.shape, dtype=bool)
    result[turns >= 0] = true[turns[turns >= 0]]
    return result


def _last_states(
    net: GruNetwork, words: Words, texts: Stretches, turns: Rows, known: NDArray[np.bool_]
) -> Floats:
    """Last state of each dialogue, float64 (n, h). Each text is read once, in batches of about equal length."""
    import torch

    from ssrem.training.hardware import one_thread

    vectors = torch.zeros(len(texts.lengths), net.norm.normalized_shape[0])
    order = np.argsort(texts.lengths, kind="stable")
    order = order[texts.lengths[order] > 0]
    states = np.zeros((len(turns), net.turns.hidden_size))
    with torch.no_grad(), one_thread():
        for first in range(0, len(order), _TURNS):
            batch = order[first : first + _TURNS]
            vectors[torch.from_numpy(batch)] = net.utterances(words, texts.of(batch))
        for first in range(0, len(turns), _DIALOGUES):
            at = slice(first, first + _DIALOGUES)
            read = vectors[torch.from_numpy(np.maximum(turns[at], 0))]
            states[at] = net.states(read, torch.from_numpy(known[at]))[:, -1].numpy()
    return states
