"""Fine-tunes a masked language model; a sentence encoder gets a head that is tied to its embeddings."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path

from ssrem.encoders.transformer import hub, pretrained
from ssrem.errors import EvaluatorError
from ssrem.files import write_json
from ssrem.negatives.tied_head.settings import TiedHeadSettings
from ssrem.samples import TRAIN, Candidates, Progress

CARD = "tied_head.json"
SETTINGS = TiedHeadSettings
_STEPS_A_STATE = 100
"""After how many steps the state of an unfinished training is written."""


@dataclass(frozen=True)
class Tuned:
    """Losses of a training: mean -log p of the masked tokens. losses: one a step of this call. before, after: on the
    held-out responses; NaN without a valid split. before is measured with a new head's bias at the log frequencies.
    """

    folder: Path
    losses: tuple[float, ...]
    before: float
    after: float
    seconds: float


def fine_tune(
    candidates: Candidates,
    folder: Path,
    settings: TiedHeadSettings | None = None,
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Tuned:
    """Fine-tune the encoder and its head on the responses of the training split; save both into `folder`.

    A new head is BERT's (dense, GELU, norm, then the input embeddings transposed, and a bias), its dense layer the
    identity at first and its bias the log frequency of each token. The loss is that of the masked tokens; the optimiser
    is Adam with decoupled weight decay, in bf16 where the hardware has it. The draws depend on the seed; the weights
    depend on it and, in the last digits, on hardware and number of threads. transformers' AutoModelForMaskedLM loads
    the folder. checkpoint: a folder for the unfinished training, from which the next call with equal settings and data
    goes on. Raises EvaluatorError if the encoder is no BERT, there is nothing to learn from, or training diverges; the
    folder is then not written.
    """
    import torch

    from ssrem.negatives.tied_head.objective import TiedHead
    from ssrem.training.checkpoint import Checkpoint
    from ssrem.training.trainer import Plan, train

    settings = settings or TiedHeadSettings()
    if len(candidates.rows(TRAIN)) == 0:
        raise EvaluatorError("tied head: the training split has no response; build the speaker tables first")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        head = TiedHead(candidates, settings)
        before = head.held_out_loss()
        plan = Plan(
            1,
            settings.seed,
            weight_decay=0.01,
            decoupled=True,
            warmup=0.1,
            bf16=head.model.device,
            one_thread=False,
        )
        unfinished = None
        if checkpoint is not None:
            made_of = [asdict(settings), pretrained.weights_hash(head.model)]
            unfinished = Checkpoint(checkpoint, made_of, head.data(), every=_STEPS_A_STATE)
        curve = train(head, plan, progress=progress, checkpoint=unfinished)
        after = curve.best.get("valid_loss", math.nan)
        head.model.eval()
    folder.mkdir(parents=True, exist_ok=True)
    with hub.quiet():
        head.model.save_pretrained(folder)
        head.tokenizer.save_pretrained(folder)
    tuned = Tuned(folder, tuple(head.losses), before, after, curve.seconds)
    figures = {"before": before, "after": after, "seconds": tuned.seconds}
    figures["train_loss"] = curve.best["train_loss"]
    about = {
        "settings": asdict(settings),
        "responses": len(head.rows),
        **{name: value for name, value in figures.items() if math.isfinite(value)},
        "weights": pretrained.weights_hash(head.model),
    }
    write_json(folder / CARD, about)
    return tuned
