"""Makes what blends are packaged with, from the default corpus: counts of words, and the weights.

python -m benchmarks.blend counts         # ssrem/packaged/word-counts, in a minute
python -m benchmarks.blend blend-fast     # ssrem/packaged/blend-fast, in some minutes; blend-base: with ssrem[base]
python -m benchmarks.blend blend          # ssrem/packaged/blend: with the language model, up to an hour
python -m benchmarks.blend lm-sum         # ssrem/packaged/lm-sum, in some minutes

Nothing is learned from human scores. Language models run in bf16 where the CPU has it. Make the blends anew if the
packaged ssrem-minilm changes: it is one of their parts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch

from ssrem.encoders.hub import BF16
from ssrem.evaluators import PACKAGED, evaluator_class
from ssrem.evaluators.aspects import COUNTS, WordCounts
from ssrem.evaluators.blend import Blend
from ssrem.evaluators.language_model.models import GEMMA
from ssrem.files import write_json
from ssrem.in_memory import conversations
from ssrem.samples import VALID, Candidates
from ssrem.training import Training
from ssrem.training.trainer import has_bf16

CORPUS = "chitchat"
SIZES = {
    "blend": {"contexts": 250, "valid_contexts": 80},
    "blend-base": {"contexts": 500, "valid_contexts": 150},
}
"""Settings that are not the defaults: for `blend` more responses than a user would wait for, for `blend-base` fewer."""
STANDARDISED = 300
"""Validation responses whose scores standardise the parts of `lm-sum`."""


def main() -> None:
    """Write the counts, or a blend and its card."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["counts", "blend-fast", "blend-base", "blend", "lm-sum"])
    what = parser.parse_args().what
    corpus = conversations(CORPUS)
    if what == "counts":
        WordCounts.of(corpus.training_texts).save(COUNTS, f"{CORPUS}, training split")
        return
    kind: Any = evaluator_class(what)
    blend: Blend = kind(kind.settings_model(**SIZES.get(what, {})))
    training = (_summed if what == "lm-sum" else _fitted)(blend, corpus.candidates)
    texts = hashlib.sha256("\n".join(corpus.candidates.texts).encode()).hexdigest()
    card = {
        "evaluator": blend.name,
        "signature": blend.signature,
        "corpora": {CORPUS: texts},
        "human_scores": 0,
        "rows": dict(training.rows),
        "seconds": training.seconds,
        "trained_at": f"{datetime.now(UTC):%F %T}",
        "figures": dict(training.figures),
        "notes": list(training.notes),
    }
    shutil.rmtree(PACKAGED / blend.name, ignore_errors=True)
    blend.save(PACKAGED / blend.name)
    write_json(PACKAGED / blend.name / "card.json", card)
    print(json.dumps(dict(blend.weights), indent=1))


def _fitted(blend: Blend, candidates: Candidates) -> Training:
    """Fit a blend whose language models are in bfloat16 if the CPU has it: the weights hold in float32 too."""
    bf16, kind, settings = has_bf16(torch.device("cpu")), type(blend), blend.settings
    parts = [
        part.model_copy(update={"settings": {**part.settings, "model": f"{GEMMA}{BF16}"}})
        if bf16 and part.evaluator.startswith("lm-")
        else part
        for part in settings.parts
    ]
    fitted = kind(settings.model_copy(update={"parts": tuple(parts)}))
    training = fitted.fit(candidates, progress=lambda done, steps: print(f"{done}/{steps}", flush=True))
    blend.take(fitted.tensors, fitted.bounds)
    return training


def _summed(blend: Blend, candidates: Candidates) -> Training:
    """Give each part the weight 1, and the mean and deviation of its scores of validation responses as its scale."""
    rows = np.random.default_rng(0).permutation(candidates.rows(VALID))[:STANDARDISED]
    samples = map(candidates.sample, rows.tolist())
    values, _, _ = blend.part_scores([sample for sample in samples if sample.context])
    # Six digits, since further ones depend on the machine.
    centre, spread = (
        np.array([float(f"{one:.6g}") for one in of(axis=0)]) for of in (values.mean, values.std)
    )
    z = blend.standardised(values, centre, spread)
    blend.learned(np.ones(len(centre)), (centre, spread), 0.0, z, 0)
    return Training((), 0, 0.0, {"valid": len(values)})


if __name__ == "__main__":
    main()
