"""Makes the packaged encoders that learn from a larger encoder, from turns of the default corpus.

python -m benchmarks.distil wordllama-minilm [--vectors FOLDER]   # in seconds once the vectors are there
python -m benchmarks.distil minilm-mpnet [--vectors FOLDER]       # with ssrem[base], in minutes on a GPU

The larger encoder, all-minilm-l6-v2 or all-mpnet-base-v2, is the teacher. --vectors keeps its vectors, which take an
hour or more on two cores, for the next time. Texts are cut after 64 tokens. For wordllama-minilm the vectors of tokens
that occur five times or more are learned, for minilm-mpnet adapters of all layers.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import kl_div, normalize

from benchmarks.encoders import read_turns
from ssrem.encoders import load_encoder
from ssrem.encoders.base import padded
from ssrem.encoders.hub import MINILM, MPNET
from ssrem.encoders.layers import add_adapters, layers
from ssrem.encoders.store import VectorStore
from ssrem.encoders.tables import DISTILLED, LearnedTable, packaged_tokens
from ssrem.encoders.transformer import DOWN, MOVED, UP, AdaptedTransformer, Transformer, adapter_factors, pool
from ssrem.evaluators import PACKAGED
from ssrem.evaluators.bilinear_training import LearnedRows, Texts
from ssrem.in_memory import conversations
from ssrem.samples import TRAIN, VALID, Candidates, Rows
from ssrem.training.trainer import Group, Loss, Schedule, Step, has_bf16, shuffled_epochs, train

CORPUS, TOKENS, BATCH = "chitchat", 64, 512
TEXTS, HELD_OUT, MIN_COUNT = 32_768, 2_048, 5
"""For wordllama-minilm: turns, drawn once; how many of them pick the epoch; fewest occurrences of a learned token."""
RANK, KEPT, NEIGHBOURS, TEMPERATURE, SQUARES = 32, 8, 8, 0.05, 100.0
"""For minilm-mpnet: rank of the adapters; the rank they are cut to afterwards; how many consecutive responses are in
one batch together; what cosines are divided by before the softmax; weight of the squared error."""


class Table:
    """Learns the token vectors of wordllama from the vectors (n, d) that a teacher gives the n texts.

    The loss of a batch is 1 - r, where r is Pearson's correlation between the cosines of all pairs of its texts by the
    token vectors and by the teacher.
    """

    def __init__(self, texts: Sequence[str], teacher: NDArray[np.float32]) -> None:
        self.teacher = normalize(torch.from_numpy(teacher), dim=1)
        self.count = len(texts) - HELD_OUT
        self.rows = LearnedRows(
            packaged_tokens(), Texts(packaged_tokens(), texts), np.arange(self.count), MIN_COUNT
        )

    def groups(self) -> Sequence[Group]:
        return [Group({"table": self.rows.table}, 2e-3)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        return (
            [rows for rows in epoch if len(rows) == BATCH]
            for epoch in shuffled_epochs(self.count, BATCH, [0])
        )

    def loss(self, rows: Rows, step: Step) -> Loss:
        return Loss.averaged(self._distance(rows), len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        return {"valid_loss": float(self._distance(np.arange(self.count, self.count + HELD_OUT)))}

    def _distance(self, rows: Rows) -> torch.Tensor:
        """1 - Pearson's r between the cosines of all pairs of these texts by the token vectors and by the teacher."""
        other = ~torch.eye(len(rows), dtype=torch.bool)
        vectors, teacher = self.rows.vectors(rows), self.teacher[torch.from_numpy(rows)]
        cosines = torch.stack([(vectors @ vectors.T)[other], (teacher @ teacher.T)[other]])
        return 1 - torch.corrcoef(cosines)[0, 1]


class Adapters:
    """Learns adapters of a sentence encoder from the vectors (n, d) that a teacher gives the n texts.

    learned, valid (m, 3): positions of the texts that `cosine` reads of a response: the last turn, the last two turns
    joined, the response. The loss of a batch is SQUARES times the mean squared error of the cosines of all pairs of its
    texts, plus the mean over texts of the Kullback-Leibler divergence of softmax(cosine / TEMPERATURE) over the others
    from the teacher's (Hinton et al. 2015, section 2). Neighbours are in one batch, so that it has pairs of one topic.
    """

    def __init__(
        self,
        start: Transformer,
        texts: Sequence[str],
        teacher: NDArray[np.float32],
        learned: Rows,
        valid: Rows,
    ) -> None:
        self.learned, self.valid, self.tokens = learned, valid, start.tokens(texts, TOKENS)
        self.model = copy.deepcopy(start.model).requires_grad_(False)
        self.adapters = add_adapters(*layers(self.model), rank=RANK, freeze=0, seed=0)
        self.device = start.model.device
        self.teacher = normalize(torch.from_numpy(teacher), dim=1)

    def groups(self) -> Sequence[Group]:
        return [Group(adapter_factors(self.adapters), 1e-3)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        """Batches of stretches of NEIGHBOURS consecutive responses; the rest, which fill no stretch, are left out."""
        stretches = np.arange(len(self.learned) // NEIGHBOURS * NEIGHBOURS).reshape(-1, NEIGHBOURS)
        for epoch in shuffled_epochs(len(stretches), BATCH // NEIGHBOURS, [1]):
            yield [stretches[rows].ravel() for rows in epoch]

    def loss(self, rows: Rows, step: Step) -> Loss:
        self.model.train()
        return Loss.averaged(self._distance(self.learned[rows]), len(rows))

    @torch.no_grad()
    def validate(self, epoch: int) -> dict[str, float]:
        self.model.eval()
        parts = np.array_split(self.valid, max(1, len(self.valid) // BATCH))
        return {"valid_loss": float(np.mean([float(self._distance(rows)) for rows in parts]))}

    def factors(self) -> dict[str, NDArray[np.float16]]:
        """Factors of the adapters at rank `KEPT`, as `AdaptedTransformer` takes them."""
        factors = adapter_factors(self.adapters)
        return cut({name: value.detach().cpu().numpy() for name, value in factors.items()})

    def _distance(self, rows: Rows) -> torch.Tensor:
        texts = np.unique(rows)
        lengths = np.array([len(self.tokens[text]) for text in texts])
        ids = torch.from_numpy(padded([self.tokens[text] for text in texts])).to(self.device)
        mask = torch.from_numpy(np.arange(ids.shape[1]) < lengths[:, None]).to(self.device)
        states = self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        with torch.autocast(self.device.type, enabled=False):
            vectors = normalize(pool(states.float(), "mean", mask), dim=1)
            teacher = self.teacher[torch.from_numpy(texts)].to(self.device)
            own, wanted = vectors @ vectors.T, teacher @ teacher.T
            itself = torch.eye(len(texts), dtype=torch.bool, device=self.device)
            shares = [
                (cosines / TEMPERATURE).masked_fill(itself, -1e4).log_softmax(1) for cosines in (own, wanted)
            ]
            divergence = kl_div(*shares, log_target=True, reduction="batchmean")
            return SQUARES * (own - wanted)[~itself].square().mean() + divergence


def cut(factors: Mapping[str, NDArray[np.floating]]) -> dict[str, NDArray[np.float16]]:
    """Factors of the nearest products of rank `KEPT`, by singular values: a quarter of the size, similar cosines."""
    kept = {}
    for name in sorted({name.rpartition(".")[0] for name in factors}):
        up, down = (factors[name + side].astype(np.float32) for side in (UP, DOWN))
        left, sizes, right = np.linalg.svd(up @ down, full_matrices=False)
        root = np.sqrt(sizes[:KEPT])
        kept[name + UP] = (left[:, :KEPT] * root).astype(np.float16)
        kept[name + DOWN] = (root[:, None] * right[:KEPT]).astype(np.float16)
    return kept


def main() -> None:
    """Learn an encoder and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("encoder", choices=[DISTILLED, MOVED])
    parser.add_argument("--vectors", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    made = _table(options.vectors) if options.encoder == DISTILLED else _adapted(options.vectors)
    made.save(PACKAGED / options.encoder)
    print(made.signature)


def _table(folder: Path | None) -> LearnedTable:
    turns = read_turns(CORPUS)  # not the split of the tables: the packaged encoder was made with this one
    distinct = sorted({text for text, split in zip(turns.text, turns.split, strict=True) if split == TRAIN})
    drawn = np.random.default_rng(0).permutation(len(distinct))[:TEXTS]
    texts = [distinct[at] for at in drawn.tolist()]
    objective = Table(texts, _teacher_vectors(MINILM, texts, folder))
    _train(objective, Schedule(4, 0, clip=None, from_0=True))
    rows, vectors = objective.rows.learned()
    return LearnedTable.of(packaged_tokens(), rows, vectors)


def _adapted(folder: Path | None) -> AdaptedTransformer:
    candidates, row = conversations(CORPUS).candidates, dict[str, int]()
    learned, valid = (cosine_texts(candidates, candidates.rows(split), row) for split in (TRAIN, VALID))
    start = load_encoder(MINILM)
    assert isinstance(start, Transformer)
    texts = list(row)
    objective = Adapters(start, texts, _teacher_vectors(MPNET, texts, folder), learned, valid)
    _train(objective, Schedule(12, 0, warmup=0.06, bf16=objective.device, one_thread=False))
    return AdaptedTransformer(start, objective.factors())


def cosine_texts(candidates: Candidates, rows: Rows, row: dict[str, int]) -> Rows:
    """Positions (m, 3) of the texts that `cosine` reads of responses with a context; new texts are added to `row`."""
    read = []
    for response, first, last in zip(
        *(column[rows].tolist() for column in (candidates.response, candidates.context_start, candidates.context_stop)),
        strict=True,
    ):  # fmt: skip
        turns = [turn for turn in candidates.texts[first:last] if turn.strip()][-2:]
        if turns:
            texts = (turns[-1], " ".join(turns), candidates.texts[response])
            read.append([row.setdefault(text, len(row)) for text in texts])
    return np.array(read, dtype=np.int64)


def _teacher_vectors(name: str, texts: Sequence[str], folder: Path | None) -> NDArray[np.float32]:
    """The teacher's vectors of the texts; `folder` keeps them for later runs."""
    encoder = load_encoder(name)
    assert isinstance(encoder, Transformer)
    encoder.max_length = TOKENS
    device = encoder.model.device
    with torch.autocast(device.type, torch.bfloat16, enabled=has_bf16(device)):
        return VectorStore(folder).encode(encoder, texts) if folder else encoder.encode(texts)


def _train(objective: Table | Adapters, schedule: Schedule) -> None:
    for epoch in train(objective, schedule).history:
        print({name: round(value, 4) for name, value in epoch.items()})


if __name__ == "__main__":
    main()
