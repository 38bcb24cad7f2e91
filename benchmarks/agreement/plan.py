"""What is trained and scored, and what the papers report of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ssrem.encoders import DEFAULT_ENCODER

# Pearson and Spearman on dailydialog-zhao and persona-zhao, as Park et al. 2021 (their table 1) report them.
PARK = {
    "bleu-2": (".08 / .05", ".19 / .23"),
    "meteor": (".11 / .33", ".23 / .18"),
    "rouge-l": (".12 / .09", ".25 / .21"),
    "emb-average": (".09 / .08", ".16 / .17"),
    "emb-greedy": (".18 / .18", ".25 / .24"),
    "emb-extrema": (".16 / .15", ".28 / .27"),
    "bertscore": (".13 / .12", ".28 / .26"),
    "ruber": (".28 / .26", ".07 / .04"),
    "mlm-likelihood": (".32 / .38", ".35 / .35"),
    "lm-coherence": (".47 / .47", ".48 / .48"),
    "random-1": (".47 / .47", ".56 / .60"),
    "random-2": (".49 / .48", ".55 / .58"),
    "random-1+mask-and-fill": (".55 / .56", ".64 / .66"),
    "drop-golden": (".49 / .48", ".54 / .57"),
    "shuffle-golden": (".46 / .45", ".55 / .59"),
    "score-without-history": (".51 / .52", ".58 / .58"),
    "select-random": (".54 / .55", ".57 / .59"),
    "replace-with-history": (".52 / .52", ".57 / .57"),
}
# On 90 test responses of DailyDialog, and trained and tested on PersonaChat (Zhao et al. 2020).
ZHAO = {
    "adem": (".34 / .36", "–"),
    "ruber semi-supervised": (".45 / .41", "–"),
    "roberta-eval": (".64 / .66", ".75 / .76"),
    "DD→PC": ("–", ".69 / .69"),
    "PC→DD": (".50 / .47", "–"),
}
NONE = ("–", "–")

FOLDS = 5
"""Of cross-validation."""

# Epochs of some minutes on one core.
_RUBER = {"epochs": 6}
# A sentence encoder of BERT-base's size, beside the packaged one of a fifth of it.
_LARGER = "sentence-transformers/all-mpnet-base-v2"
_LARGER_BLEND = {"settings": json.dumps({"cosine": {"encoder": f"hf:{_LARGER}"}})}

SECTIONS = {
    "untrained": "Without training",
    "corpus": "Trained on the corpus, without a human score",
    "negatives": "Negatives of the retrieval evaluator, at one budget (Park et al. 2021, section 4.2.2)",
    "labels": "With human scores, cross-validated by context",
    "transfer": "Human scores of one set, tested on the other",
    "few": "Few human scores: a share of the training contexts of each fold",
}


@dataclass(frozen=True)
class Entry:
    """One row of the page.

    learn: 'nothing', 'corpus', 'labels' (human scores alone), 'both' (corpus first). share: of the training contexts
    whose human scores are learned from. source, target: of transfer, annotated sets by name. paper: as printed there.
    """

    section: str
    label: str
    evaluator: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    encoder: str | None = None
    learn: str = "nothing"
    share: float = 1.0
    source: str | None = None
    target: str | None = None
    seeds: int = 1
    paper: tuple[str, str] = NONE

    def tuned(self, seed: int) -> str:
        """In place of a signature where human scores are learned from, as each fold has its own."""
        settings = "".join(f"|{key}:{value}" for key, value in sorted(self.settings.items()))
        how = f"learned from {self.source}" if self.source else f"{FOLDS} folds by context"
        share = f", {self.share:.0%} of the training contexts" if self.share < 1 else ""
        return f"{self.evaluator}{settings}|{how}{share}|seed:{seed}"

    @property
    def key(self) -> str:
        """What determines the row, but for the seed and the data."""
        about = {
            name: value
            for name, value in vars(self).items()
            if name not in ("section", "label", "seeds", "paper")
        }
        return json.dumps(about, sort_keys=True)


def entries(contexts: int, seeds: int, masked_model: str | None) -> Iterator[Entry]:
    """All rows. contexts: responses that a transformer learns from. seeds: of what trains in minutes.

    masked_model: the masked language model of mask-and-fill; rows that need one are left out where there is none.
    """
    yield from _untrained(masked_model)
    yield from _labelled()
    yield from _trained(contexts, seeds)
    yield from _negatives(contexts, masked_model)
    yield Entry("corpus", "`ssrem-paper` over MiniLM", "ssrem-paper", {}, "all-minilm-l6-v2", "corpus")


def _untrained(masked_model: str | None) -> Iterator[Entry]:
    overlap = ("bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-l", "meteor")
    embedding = ("emb-average", "emb-greedy", "emb-extrema", "sms", "bertscore", "ruber-ref")
    for name in ("length", *overlap, *embedding, "cosine", "lm-coherence", "lm-pmi", "lm-sum"):
        yield Entry("untrained", f"`{name}`", name, paper=PARK.get(name, NONE))
    yield Entry("untrained", "`cosine` (all-mpnet-base-v2)", "cosine", {"encoder": f"hf:{_LARGER}"})
    if masked_model is not None:
        label = "`mlm-likelihood` (tied head over MiniLM)"
        yield Entry(
            "untrained", label, "mlm-likelihood", {"model": masked_model}, paper=PARK["mlm-likelihood"]
        )


def _trained(contexts: int, seeds: int) -> Iterator[Entry]:
    for name in ("ssrem", "ssrem-paper", "rsrem"):
        yield Entry("corpus", f"`{name}`", name, {}, DEFAULT_ENCODER, "corpus", seeds=seeds)
    label, ranking = "`ssrem-paper`, ranking loss", {"loss": "ranking"}
    yield Entry("corpus", label, "ssrem-paper", ranking, DEFAULT_ENCODER, "corpus", seeds=seeds)
    yield Entry("corpus", "`ruber-unref`", "ruber-unref", _RUBER, "glove-6b-50d", "corpus")
    semi, label = ZHAO["ruber semi-supervised"], "`ruber-unref`, semi-supervised"
    yield Entry("labels", label, "ruber-unref", _RUBER, "glove-6b-50d", "both", paper=semi)
    yield Entry("corpus", "`ruber`", "ruber", _RUBER, "glove-6b-50d", "corpus", paper=PARK["ruber"])
    yield Entry("corpus", "`roberta-eval` (MiniLM)", "roberta-eval", {"contexts": contexts}, None, "corpus")
    yield Entry("corpus", "`blend`", "blend", {}, None, "corpus")
    yield Entry("corpus", "`blend` (all-mpnet-base-v2)", "blend", _LARGER_BLEND, None, "corpus")


def _negatives(contexts: int, masked_model: str | None) -> Iterator[Entry]:
    plain = ("random-1", "random-2", "random-1+sc", "sc+sp+ss+random-1", "random-1+drop-golden")
    masked = ("mask-and-fill", "score-without-history", "select-random", "replace-with-history")
    specs = [*plain, "random-1+shuffle-golden", *(f"random-1+{name}" for name in masked if masked_model)]
    for spec in specs:
        settings: dict[str, Any] = {"negatives": spec, "contexts": contexts}
        if any(name in spec for name in masked):
            settings["negatives_model"] = masked_model
        paper = PARK.get(spec) or PARK.get(spec.removeprefix("random-1+"), NONE)
        yield Entry("negatives", f"`retrieval`, {spec}", "retrieval", settings, None, "corpus", paper=paper)
    bare = {"negatives": "random-1", "contexts": contexts, "prior": "none"}
    yield Entry("negatives", "`retrieval`, random-1, no prior", "retrieval", bare, None, "corpus")


def _labelled() -> Iterator[Entry]:
    yield Entry("labels", "`blend`", "blend", {}, None, "labels")
    yield Entry("labels", "`blend` (all-mpnet-base-v2)", "blend", _LARGER_BLEND, None, "labels")
    yield Entry("labels", "`blend-ref`", "blend-ref", {}, None, "labels")
    tuned = {"tune_epochs": 3}
    paper = ZHAO["roberta-eval"]
    yield Entry("labels", "`roberta-eval` (MiniLM)", "roberta-eval", tuned, None, "labels", paper=paper)
    yield Entry("labels", "`adem`", "adem", {}, "glove-6b-50d", "both", paper=ZHAO["adem"])
    sets = {"DD": "dailydialog-zhao", "PC": "persona-zhao"}
    for name in ("blend", "roberta-eval"):
        for one, other in (("DD", "PC"), ("PC", "DD")):
            label, paper = (
                f"`{name}`, {one}→{other}",
                ZHAO[f"{one}→{other}"] if name == "roberta-eval" else NONE,
            )
            yield Entry(
                "transfer", label, name, {}, None, "labels", source=sets[one], target=sets[other], paper=paper
            )
    for share in (0.1, 0.2, 0.5):
        yield Entry("few", f"`blend`, {share:.0%}", "blend", {}, None, "labels", share=share)
