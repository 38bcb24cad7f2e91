"""Times the figures of agreement of one annotated set with three evaluators and two criteria, the scores given.

python -m benchmarks.figures [--responses 9500]

The set has two responses to each context and three raters, as HUMOD has (Merdivan et al. 2020). Each score is compared
with four aggregations of the ratings, as `ssrem correlate` does. Prints CPU seconds, and their ratio to those of half
as many responses: about 2 where time grows as n log n, 4 where it grows with the square.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from ssrem.agreement.correlate import ScoredResponses
from ssrem.agreement.figures import figures
from ssrem.agreement.raters import rater_figures

EVALUATORS, CRITERIA, RATERS = 3, 2, 3


def seconds(n: int) -> float:
    """CPU seconds of all figures of n responses."""
    draw = np.random.default_rng(0)
    contexts = [f"context {number // 2}" for number in range(n)]
    start = time.process_time()
    for _ in range(CRITERIA):
        quality = draw.normal(size=n)
        ratings = np.clip(np.round(3 + quality + draw.normal(size=(RATERS, n))), 1, 5)
        humans = {
            "mean": ratings.mean(axis=0),
            "median": np.median(ratings, axis=0),
            "two raters": ratings[:2].mean(axis=0),
            "one rater": ratings[0],
        }
        for _ in range(EVALUATORS):
            scores = quality + draw.normal(size=n)
            for aggregation, human in humans.items():
                list(figures(ScoredResponses(scores, human, contexts), slow=aggregation == "mean"))
        list(rater_figures(ratings))
    return time.process_time() - start


def main() -> None:
    """Print the seconds and the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--responses", type=int, default=9500)
    responses = parser.parse_args().responses
    seconds(100)  # imports
    with threadpool_limits(1, "blas"):
        half, whole = seconds(responses // 2), seconds(responses)
    print(f"{responses} responses: {whole:.1f} s CPU, {whole / half:.2f} times those of {responses // 2}")


if __name__ == "__main__":
    main()
