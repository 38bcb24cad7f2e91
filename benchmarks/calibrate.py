"""`python -m benchmarks.calibrate HOME`: the means and deviations of `lm-sum` for the packaged model."""

from __future__ import annotations

import sys

import numpy as np

from ssrem.evaluators.language_model.likelihood import LmSum
from ssrem.samples import VALID, Sample
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.warehouse.home import Warehouse

RESPONSES = 300


def main() -> None:
    """Print the scales over validation responses of the default corpus, drawn with seed 0."""
    with Warehouse.at(sys.argv[1]).reader() as connection:
        candidates = load_candidates(connection, ["chitchat"])
    rows = np.random.default_rng(0).permutation(candidates.rows(VALID))[:RESPONSES]
    samples = [
        Sample(
            tuple(candidates.texts[candidates.context_start[row] : candidates.context_stop[row]]),
            candidates.texts[candidates.response[row]],
        )
        for row in rows
    ]
    settings = LmSum().calibrate(samples).settings
    print({name: value for name, value in settings.items() if name.endswith(("_mean", "_deviation"))})


if __name__ == "__main__":
    main()
