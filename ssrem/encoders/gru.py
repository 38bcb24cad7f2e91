"""Recurrent networks over sequences of word vectors, and that of the hierarchical GRU (Lowe et al. 2017, section 4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import PackedSequence

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


class GruNetwork(RecurrentNetwork):
    """A recurrent network over the words of a turn, and one over the turns (Lowe et al. 2017, section 4, appendix C).

    Layer normalisation stands between the two; the paper has it inside the recurrence.
    """

    def __init__(self, dimensions: int, utterance: int, context: int) -> None:
        super().__init__()
        self.words = torch.nn.GRU(dimensions, utterance, batch_first=True)
        self.norm = torch.nn.LayerNorm(utterance)
        self.turns = torch.nn.GRUCell(utterance, context)

    @classmethod
    def of(cls, weights: Weights, dimensions: int, utterance: int, context: int) -> GruNetwork:
        """The network with these weights; EvaluatorError if their shapes do not fit."""
        with torch.random.fork_rng(devices=[]):
            net = cls(dimensions, utterance, context)
        net.take(weights, "the recurrent encoder's", dimensions)
        return net

    def utterances(self, words: PackedSequence) -> torch.Tensor:
        """float32 (n, utterance) of turns with at least one known word, given as `Stretches.packed`."""
        _, last = self.words(words)
        normalised: torch.Tensor = self.norm(last[0])
        return normalised

    def states(self, utterances: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        """The state after each turn, float32 (n, t, context), from (n, t, utterance).

        A turn that is not `known`, bool (n, t), is skipped: the state stays as it was.
        """
        state = utterances.new_zeros(len(utterances), self.turns.hidden_size)
        states = []
        for turn in range(utterances.shape[1]):
            following = self.turns(utterances[:, turn], state)
            state = torch.where(known[:, turn, None], following, state)
            states.append(state)
        return torch.stack(states, dim=1)
