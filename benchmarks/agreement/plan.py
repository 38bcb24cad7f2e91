"""What is trained and scored, and what the papers report of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ssrem.encoders import DEFAULT_ENCODER
from ssrem.encoders.hub import MPNET
from ssrem.evaluators import MANIFEST, PACKAGED, evaluator_class
from ssrem.evaluators.language_model.fine_tune import LmSettings
from ssrem.files import read_json
from ssrem.negatives.tied_head import TiedHeadSettings

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
# Pearson and Spearman on 90 test responses of DailyDialog, and on PersonaChat (Zhao et al. 2020). DD→PC: trained on
# DailyDialog and tested on PersonaChat; the first three are trained and tested on the same set.
ZHAO = {
    "adem": (".34 / .36", "–"),
    "ruber-unref semi-supervised": (".43 / .39", "–"),
    "roberta-eval": (".64 / .66", ".75 / .76"),
    "DD→PC": ("–", ".69 / .69"),
    "PC→DD": (".50 / .47", "–"),
}
NONE = ("–", "–")

FOLDS = 5
"""Number of folds of cross-validation."""
SEEDS = 3
"""Number of seeds of what trains in minutes, and of rows that tell whether mask-and-fill negatives beat random ones."""
CONTEXTS = 10_000
"""Number of responses that a cross-encoder learns from, each once with one or two negatives: 20,000 pairs or more."""

CHITCHAT, RESPONSES = "chitchat", "responses"
"""Names of what is learned from: the home folder's corpus; responses to DailyDialog's contexts (Sai et al. 2020)."""

MASKED = "masked-lm"
"""Stands in settings for the masked language model: the one that the command line names, or one trained here."""
MASKED_SETTINGS = TiedHeadSettings(steps=5000, batch_size=16, freeze=2, max_tokens=96)
LANGUAGE = "tuned-lm"
"""Stands in settings for the packaged language model, fine-tuned on the responses here."""
LANGUAGE_SETTINGS = LmSettings(steps=800, batch_size=16, rank=16, freeze=4, learning_rate=3e-4, max_tokens=96)

LOCAL = "http://localhost:8080/v1"
"""Where llama.cpp's server listens unless told otherwise."""

_GLOVE, _TOKENS = "glove-6b-50d", "wordllama"
# With 300 units, training at a rate of .001 may stay at chance.
_RUBER = {"epochs": 8, "max_train": 10_000, "hidden": 300, "learning_rate": 0.0003}
# 102,400 stretches, each once; the weight of the KL divergence rises over 60,000 batches as published.
_ADEM = {"max_train": 12_800, "epochs": 8, "anneal_steps": 60_000, "pca_rows": 20_000}
# The papers' form as far as two cores can afford it: the lowest layers are frozen, and each pair is seen once.
_CROSS = {
    "contexts": CONTEXTS,
    "valid_contexts": 500,
    "epochs": 1,
    "batch_size": 32,
    "freeze": 2,
    "learning_rate": 1e-4,
}
_PLAIN = {**_CROSS, "prior": "none"}
# A model of the papers' size, all layers of which learn: minutes on a GPU, hours on two cores.
_BASE = {**_CROSS, "model": MPNET, "freeze": 0}
_ALL = 40_000
"""More responses than the training split of DailyDialog++ has, so all 37,400."""

SECTIONS = {
    "untrained": "Without training",
    "corpus": "Trained on the corpus, without a human score",
    "negatives": "Negatives of the retrieval evaluator, at one budget (Park et al. 2021, section 4.2.2)",
    "labels": "With human scores, cross-validated by context",
    "transfer": "Human scores of other sets",
    "few": "Few human scores: a share of the training contexts of each fold",
}


@dataclass(frozen=True)
class Entry:
    """One row of the page.

    name: its name on the command line and that of its file. learn: what it learns from: 'nothing', 'packaged' (as it
    comes with ssrem), 'corpus', 'labels' (human scores alone), 'both' (corpus first). learns_from: which corpus it is,
    CHITCHAT or RESPONSES. share: share of the training contexts whose human scores are learned from. target: the only
    annotated set that is tested on; None: all. sources: another annotated set whose human scores are learned from;
    '*': all sets but the one that is tested on. minutes: rough time on one core, of cross-encoders over mpnet on a GPU.
    paper: the paper's figures as printed, on dailydialog-zhao and persona-zhao.
    """

    section: str
    name: str
    label: str
    evaluator: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    encoder: str | None = None
    learn: str = "nothing"
    learns_from: str = CHITCHAT
    share: float = 1.0
    sources: str = ""
    target: str | None = None
    seeds: int = 1
    minutes: float = 1
    paper: tuple[str, str] = NONE

    def tuned(self, seed: int) -> str:
        """Text in place of a signature if human scores are learned from, since each fold has its own signature."""
        settings = "".join(f"|{key}:{value}" for key, value in sorted(self.settings.items()))
        folds = f"{FOLDS} folds by context"
        how = {"": folds, "*": "learned from the other sets"}.get(
            self.sources, f"learned from {self.sources}"
        )
        share = f", {self.share:.0%} of the training contexts" if self.share < 1 else ""
        return f"{self.evaluator}{settings}|{how}{share}|seed:{seed}"

    @property
    def made_by(self) -> dict[str, Any]:
        """What determines the row, apart from the data; a kept row that was made by anything else is out of date.

        Settings include defaults, so that a changed default counts; a packaged evaluator adds its signature.
        """
        kind: Any = evaluator_class(self.evaluator)
        about: dict[str, Any] = {
            "evaluator": self.evaluator,
            "settings": kind.settings_model(**self.settings).model_dump(mode="json"),
            "encoder": self.encoder,
            "learn": self.learn,
            "learns_from": self.learns_from,
            "share": self.share,
            "sources": self.sources,
            "target": self.target,
        }
        if self.learn == "packaged":
            about["signature"] = read_json(PACKAGED / self.evaluator / MANIFEST, ("signature",))["signature"]
        return dict(json.loads(json.dumps(about, sort_keys=True)))


def entries() -> list[Entry]:
    """All rows, in order of the page."""
    rows = [*_untrained(), *_trained(), *_negatives(), *_labelled()]
    assert len({entry.name for entry in rows}) == len(rows)
    return rows


def _untrained() -> Iterator[Entry]:
    overlap = ("bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-l", "meteor")
    embedding = ("emb-average", "emb-greedy", "emb-extrema", "sms", "bertscore", "ruber-ref")
    aspects = ("novelty", "own-turn", "repetition", "fluency")
    for name in ("length", *overlap, *embedding, *aspects, "cosine"):
        yield Entry("untrained", name, f"`{name}`", name, paper=PARK.get(name, NONE))
    for name in ("lm-coherence", "lm-pmi"):
        yield Entry("untrained", name, f"`{name}`", name, minutes=30)
    yield Entry("untrained", "lm-sum", "`lm-sum`", "lm-sum", learn="packaged", minutes=30)
    local = {"model": "gemma3-270m", "base_url": LOCAL, "prompt": "relevance"}
    yield Entry(
        "untrained", "judge-gemma", "`judge` (Gemma 3 270M, 4 bits)", "judge", local, target="dailydialog-grade",
        minutes=8,
    )  # fmt: skip
    larger = {"encoder": MPNET}
    yield Entry("untrained", "cosine-mpnet", "`cosine` (all-mpnet-base-v2)", "cosine", larger, minutes=5)
    label = "`mlm-likelihood` (tied head over MiniLM)"
    yield Entry(
        "untrained", "mlm-likelihood", label, "mlm-likelihood", {"model": MASKED}, minutes=60,
        paper=PARK["mlm-likelihood"],
    )  # fmt: skip


def _trained() -> Iterator[Entry]:
    for name in ("ssrem", "ssrem-paper", "rsrem"):
        yield Entry("corpus", name, f"`{name}`", name, {}, DEFAULT_ENCODER, "corpus", seeds=SEEDS, minutes=5)
    yield Entry(
        "corpus", "ssrem-paper-ranking", "`ssrem-paper`, ranking loss", "ssrem-paper", {"loss": "ranking"},
        DEFAULT_ENCODER, "corpus", seeds=SEEDS, minutes=5,
    )  # fmt: skip
    names = ("ssrem-minilm", "ssrem-base", "retrieval", "blend-fast", "blend-base", "blend")
    for name, minutes in zip(names, (1, 5, 6, 2, 10, 30), strict=True):
        yield Entry("corpus", name, f"`{name}`, packaged", name, learn="packaged", minutes=minutes)
    for name in ("lm-coherence", "lm-pmi"):
        tuned = {"model": LANGUAGE}
        paper = PARK.get(name, NONE)
        yield Entry("corpus", f"{name}-tuned", f"`{name}`, fine-tuned", name, tuned, minutes=120, paper=paper)
    yield Entry("corpus", "ruber-unref", "`ruber-unref`", "ruber-unref", _RUBER, _GLOVE, "corpus", minutes=60)
    ruber = PARK["ruber"]
    yield Entry("corpus", "ruber", "`ruber`", "ruber", _RUBER, _GLOVE, "corpus", minutes=60, paper=ruber)
    for more, settings, minutes in (("", _PLAIN, 30), ("-mpnet", _BASE | {"prior": "none"}, 2)):
        label = f"`roberta-eval` ({'mpnet' if more else 'MiniLM'})"
        yield Entry(
            "corpus", f"roberta-eval{more}", label, "roberta-eval", settings, None, "corpus", RESPONSES,
            minutes=minutes,
        )  # fmt: skip


def _negatives() -> Iterator[Entry]:
    def entry(
        spec: str, more: str, settings: Mapping[str, Any], source: str, minutes: float, seeds: int = 1
    ) -> Entry:
        name = "retrieval-" + spec.removeprefix("random-1+").replace("+", "-")
        masked = {"negatives_model": MASKED} if spec.removeprefix("random-1+") in _MASKED else {}
        paper = PARK.get(spec) or PARK.get(spec.removeprefix("random-1+"), NONE)
        return Entry(
            "negatives", name + more.replace(", ", "-").replace(" ", "-"), f"`retrieval`, {spec}{more}", "retrieval",
            {"negatives": spec, **masked, **settings}, None, "corpus", source, seeds=seeds, minutes=minutes,
            paper=NONE if more else paper,
        )  # fmt: skip

    for spec, seeds in (("random-1", SEEDS), ("random-2", 1), ("random-1+mask-and-fill", SEEDS)):
        yield entry(spec, "", _PLAIN, RESPONSES, 30, seeds)
    for spec in ("drop-golden", "shuffle-golden", *_MASKED[1:]):
        yield entry(f"random-1+{spec}", "", _PLAIN, RESPONSES, 45)
    for spec in ("random-1", "random-1+mask-and-fill"):
        yield entry(spec, ", with the prior", _CROSS, RESPONSES, 30, SEEDS)
    for spec, seeds in (("random-1", SEEDS), ("random-2", SEEDS), ("random-1+mask-and-fill", 2)):
        yield entry(spec, ", mpnet", {**_BASE, "prior": "none"}, RESPONSES, 2, seeds)
    for spec, seeds in (("random-2", SEEDS), ("random-1+mask-and-fill", 1)):
        yield entry(spec, ", with the prior, mpnet", _BASE, RESPONSES, 2, seeds)
    every = {**_BASE, "prior": "none", "contexts": _ALL}
    yield entry("random-2", ", mpnet, all responses", every, RESPONSES, 4)
    # Speakers of DailyDialog are seats of one conversation; only chitchat tells what a speaker says in other ones.
    for spec in ("random-1+sc", "sc+sp+ss+random-1"):
        yield entry(spec, "", _PLAIN, CHITCHAT, 45)


_MASKED = ("mask-and-fill", "score-without-history", "select-random", "replace-with-history")
"""Generators that need a masked language model."""


def _labelled() -> Iterator[Entry]:
    for name, minutes in (("blend-fast", 3), ("blend", 30)):
        yield Entry("labels", f"{name}-labels", f"`{name}`", name, learn="labels", minutes=minutes)
    yield Entry("labels", "blend-ref-labels", "`blend-ref`", "blend-ref", learn="labels", minutes=30)
    base = {**_BASE, "prior": "none"}
    for name, label, settings, learn, source, minutes in (
        ("labels", "(MiniLM)", _PLAIN, "labels", CHITCHAT, 60),
        ("labels-mpnet", "(mpnet)", base, "labels", CHITCHAT, 7),
        ("both", "(MiniLM), after the corpus", _PLAIN, "both", RESPONSES, 60),
    ):
        yield Entry(
            "labels", f"roberta-eval-{name}", f"`roberta-eval` {label}", "roberta-eval", settings, None, learn, source,
            minutes=minutes, paper=ZHAO["roberta-eval"],
        )  # fmt: skip
    adem = ZHAO["adem"]
    yield Entry(
        "labels", "adem", "`adem`, byte pairs", "adem", _ADEM, _TOKENS, "both", minutes=90, paper=adem
    )
    semi, label = ZHAO["ruber-unref semi-supervised"], "`ruber-unref`, semi-supervised"
    yield Entry(
        "labels", "ruber-labels", label, "ruber-unref", _RUBER, _GLOVE, "both", minutes=70, paper=semi
    )
    for name, minutes in (("blend-fast", 2), ("blend", 30)):
        label = f"`{name}`, every other set"
        yield Entry("transfer", f"{name}-others", label, name, learn="labels", sources="*", minutes=minutes)
    sets = {"DD": "dailydialog-zhao", "PC": "persona-zhao"}
    for name, minutes in (("blend", 20), ("roberta-eval", 15)):
        for one, other in (("DD", "PC"), ("PC", "DD")):
            paper = ZHAO[f"{one}→{other}"] if name == "roberta-eval" else NONE
            settings = _PLAIN if name == "roberta-eval" else {}
            yield Entry(
                "transfer", f"{name}-{one}-{other}".lower(), f"`{name}`, {one}→{other}", name, settings, None, "labels",
                sources=sets[one], target=sets[other], minutes=minutes, paper=paper,
            )  # fmt: skip
    for share in (0.1, 0.2, 0.5):
        for name, minutes in (("blend-fast", 3), ("blend", 30)):
            yield Entry(
                "few", f"{name}-{share:.0%}".rstrip("%"), f"`{name}`, {share:.0%}", name, learn="labels", share=share,
                minutes=minutes,
            )  # fmt: skip
