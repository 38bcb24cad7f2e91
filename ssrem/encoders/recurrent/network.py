"""What the networks over a text's words have in common: weights, and texts packed as vectors of their words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from ssrem.encoders.recurrent.word_sequences import Stretches, Words
from ssrem.errors import EvaluatorError

Weights = Mapping[str, NDArray[np.float32]]


class RecurrentNetwork(torch.nn.Module):
    """A network over sequences of word vectors."""

    def take(self, weights: Weights, whose: str, dimensions: int) -> None:
        """Replace the weights; EvaluatorError, naming `whose` they are, if their shapes do not fit."""
        try:
            self.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
        except RuntimeError as error:
            raise EvaluatorError(
                f"{whose} weights do not fit its settings and word vectors of {dimensions} dimensions: "
                f"{' '.join(str(error).split())}"
            ) from error

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Copies of the learned weights, by name."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.state_dict().items()}


def packed(words: Words, texts: Stretches, lengths: NDArray[np.int64]) -> PackedSequence:
    """The vectors of the first words of each text, as many as its length, 1 or more; padding behind is not read."""
    vectors = torch.from_numpy(words.vectors)[torch.from_numpy(texts.padded(words.ids))]
    return pack_padded_sequence(vectors, torch.from_numpy(lengths), batch_first=True, enforce_sorted=False)
