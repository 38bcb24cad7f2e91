"""Makes what blends are packaged with, from the default corpus: counts of words, and the weights.

python -m benchmarks.blend counts              # ssrem/packaged/word-counts, in a minute
python -m benchmarks.blend fit blend-fast      # ssrem/packaged/blend-fast, in some minutes
python -m benchmarks.blend fit blend           # ssrem/packaged/blend: with the language model, up to an hour

Nothing is learned from human scores. Models run in bf16 where the CPU has it, which is twice as fast. Make
the blends anew if the packaged ssrem changes: it is one of their parts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from datetime import UTC, datetime

import torch

from ssrem.evaluators import PACKAGED, evaluator_class
from ssrem.evaluators.aspects.word_counts import FOLDER, WordCounts
from ssrem.evaluators.blend.blend import Blend
from ssrem.in_memory import conversations
from ssrem.training.hardware import has_bf16

CORPUS = "chitchat"


def main() -> None:
    """Write the counts, or a fitted blend and its card."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["counts", "fit"])
    parser.add_argument("name", nargs="?", choices=["blend-fast", "blend"], default="blend-fast")
    arguments = parser.parse_args()
    corpus = conversations(CORPUS)
    if arguments.what == "counts":
        WordCounts.of(corpus.training_texts).save(FOLDER, f"{CORPUS}, training split")
        return
    blend = evaluator_class(arguments.name)()  # type: ignore[call-arg]
    assert isinstance(blend, Blend)
    with torch.autocast("cpu", torch.bfloat16, enabled=has_bf16(torch.device("cpu"))):
        training = blend.fit(
            corpus.candidates, progress=lambda done, steps: print(f"{done}/{steps}", flush=True)
        )
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
    blend.save(PACKAGED / blend.name, card=card)
    print(json.dumps(dict(blend.weights), indent=1))


if __name__ == "__main__":
    main()
