"""Makes what blends are packaged with, from the default corpus: counts of words, and the weights.

python -m benchmarks.blend counts              # ssrem/packaged/word-counts, in a minute
python -m benchmarks.blend fit blend-fast      # ssrem/packaged/blend-fast, in some minutes
python -m benchmarks.blend fit blend           # ssrem/packaged/blend: with the language model, up to an hour

Nothing is learned from human scores. Models run in bf16 where the CPU has it, which is twice as fast. Make
the blends anew if the packaged ssrem-minilm changes: it is one of their parts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from datetime import UTC, datetime
from typing import Any

import torch

from ssrem.encoders.pretrained import BF16
from ssrem.evaluators import PACKAGED, evaluator_class
from ssrem.evaluators.aspects import COUNTS, WordCounts
from ssrem.evaluators.blend.blend import Blend
from ssrem.evaluators.language_model.models import GEMMA
from ssrem.files import write_json
from ssrem.in_memory import conversations
from ssrem.training.trainer import has_bf16

CORPUS = "chitchat"
SIZES = {"blend": {"contexts": 500, "valid_contexts": 150}}
"""Settings beside the default ones: more responses than a user would wait for."""


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
        WordCounts.of(corpus.training_texts).save(COUNTS, f"{CORPUS}, training split")
        return
    kind: Any = evaluator_class(arguments.name)
    bf16, settings = has_bf16(torch.device("cpu")), dict(SIZES.get(arguments.name, {}))
    blend, fitted = kind(None, kind.config_class(**settings)), kind(None, _config(kind, settings, bf16))
    assert isinstance(blend, Blend)
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        training = fitted.fit(
            corpus.candidates, progress=lambda done, steps: print(f"{done}/{steps}", flush=True)
        )
    blend.set_state(fitted.state)
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


def _config(kind: Any, settings: dict[str, Any], bf16: bool) -> Any:
    """With language models in bfloat16 if wanted: the weights that are learned hold for the models in float32 too."""
    config = kind.config_class(**settings)
    parts = [part.name for part in config.members if part.evaluator.startswith("lm-")] if bf16 else []
    models = {part: {"model": f"{GEMMA}{BF16}"} for part in parts}
    return kind.config_class.of({**settings, "settings": models})


if __name__ == "__main__":
    main()
