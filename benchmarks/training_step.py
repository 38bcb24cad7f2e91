"""Times SSREM's training step, row by row, against a formulation that multiplies every row with every row.

python benchmarks/training_step.py [--batch 5000] [--dimensions 200] [--repeats 5]

Both compute the same loss of one true response and four negatives a row, forward and backward, on one thread.
The row × row formulation makes a (batch × batch) matrix for each candidate and reads its diagonal.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from ssrem.evaluators.bilinear_training import row_loss, row_scores
from ssrem.training.trainer import one_thread

CANDIDATES = 5


def full_scores(context: torch.Tensor, matrix: torch.Tensor, responses: torch.Tensor) -> torch.Tensor:
    """The scores of `row_scores`, (b, candidates), read from the diagonals of (b, b) products."""
    transformed = context @ matrix
    return torch.stack(
        [torch.diagonal(transformed @ responses[:, column].T) for column in range(responses.shape[1])], dim=1
    )


def main() -> None:
    """Print milliseconds per step and the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=5000)
    parser.add_argument("--dimensions", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    context = torch.randn(options.batch, options.dimensions, generator=generator)
    responses = torch.randn(options.batch, CANDIDATES, options.dimensions, generator=generator)
    present = torch.ones(options.batch, CANDIDATES, dtype=torch.bool)
    start = torch.randn(options.dimensions, options.dimensions, generator=generator) / options.dimensions

    def step(score: Callable[..., torch.Tensor]) -> tuple[float, torch.Tensor]:
        matrix = torch.nn.Parameter(start.clone())
        began = time.perf_counter()
        row_loss(score(context, matrix, responses), present, "raw").backward()  # type: ignore[no-untyped-call]
        taken = time.perf_counter() - began
        assert matrix.grad is not None
        return taken, matrix.grad

    with one_thread():
        assert torch.allclose(step(row_scores)[1], step(full_scores)[1], atol=1e-5)
        # Taken in turns, so that a busy machine slows both alike.
        pairs = [(step(row_scores)[0], step(full_scores)[0]) for _ in range(options.repeats)]
    ours, theirs = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
    print(f"batch {options.batch}, {options.dimensions} dimensions, median of {options.repeats}, one thread")
    print(f"row by row  {ours:9.1f} ms\nrow x row   {theirs:9.1f} ms\nratio       {theirs / ours:9.1f}")


if __name__ == "__main__":
    main()
