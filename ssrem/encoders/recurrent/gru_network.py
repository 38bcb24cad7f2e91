"""The network of the hierarchical GRU (Lowe et al. 2017, section 4 and appendix C)."""

from __future__ import annotations

import torch

from ssrem.encoders.recurrent.network import RecurrentNetwork, Weights, packed
from ssrem.encoders.recurrent.word_sequences import Stretches, Words


class GruNetwork(RecurrentNetwork):
    """A recurrent network over the words of a turn, and one over the turns.

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

    def utterances(self, words: Words, texts: Stretches) -> torch.Tensor:
        """float32 (n, utterance) of turns with at least one known word; padding is not read."""
        _, last = self.words(packed(words, texts, texts.lengths))
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
