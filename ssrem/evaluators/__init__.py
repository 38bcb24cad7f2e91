"""The registry of evaluators, which give a response a score from its context, its reference or both."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem.errors import EvaluatorError, SsremError
from ssrem.extras import OF_GEMMA, OF_MINILM, OF_MPNET, not_installed, way_out
from ssrem.files import read_json
from ssrem.registry import did_you_mean, object_at, with_installed

if TYPE_CHECKING:
    from ssrem.evaluators.base import Evaluator

_OWN = {  # evaluators that come with ssrem: their signatures need no `source_hash`; add others to EVALUATORS
    "ssrem": "ssrem.evaluators.bilinear:SSREM",
    "ssrem-minilm": "ssrem.evaluators.bilinear:SSREMMiniLM",
    "ssrem-base": "ssrem.evaluators.bilinear:SSREMBase",
    "ssrem-paper": "ssrem.evaluators.bilinear:SSREMPaper",
    "rsrem": "ssrem.evaluators.bilinear:RSREM",
    "ruber": "ssrem.evaluators.ruber:Ruber",
    "ruber-unref": "ssrem.evaluators.ruber:RuberUnref",
    "ruber-ref": "ssrem.evaluators.ruber:RuberRef",
    "adem": "ssrem.evaluators.adem:Adem",
    "adem-unref": "ssrem.evaluators.adem:AdemUnref",
    "adem-ref": "ssrem.evaluators.adem:AdemRef",
    "retrieval": "ssrem.evaluators.cross_encoder:Retrieval",
    "roberta-eval": "ssrem.evaluators.cross_encoder:RobertaEval",
    "blend": "ssrem.evaluators.blend:Blend",
    "blend-fast": "ssrem.evaluators.blend:BlendFast",
    "blend-base": "ssrem.evaluators.blend:BlendBase",
    "blend-ref": "ssrem.evaluators.blend:BlendRef",
    "cosine": "ssrem.evaluators.baselines:Cosine",
    "novelty": "ssrem.evaluators.aspects:Novelty",
    "own-turn": "ssrem.evaluators.aspects:OwnTurn",
    "repetition": "ssrem.evaluators.aspects:Repetition",
    "fluency": "ssrem.evaluators.aspects:Fluency",
    "lm-coherence": "ssrem.evaluators.language_model.likelihood:LmCoherence",
    "lm-pmi": "ssrem.evaluators.language_model.likelihood:LmPmi",
    "lm-sum": "ssrem.evaluators.blend:LmSum",
    "mlm-likelihood": "ssrem.evaluators.language_model.likelihood:MlmLikelihood",
    "bleu-1": "ssrem.evaluators.reference_based.overlap:Bleu1",
    "bleu-2": "ssrem.evaluators.reference_based.overlap:Bleu2",
    "bleu-3": "ssrem.evaluators.reference_based.overlap:Bleu3",
    "bleu-4": "ssrem.evaluators.reference_based.overlap:Bleu4",
    "bleu-1-of-1": "ssrem.evaluators.reference_based.overlap:Bleu1Of1",
    "bleu-2-of-2": "ssrem.evaluators.reference_based.overlap:Bleu2Of2",
    "bleu-3-of-3": "ssrem.evaluators.reference_based.overlap:Bleu3Of3",
    "rouge-l": "ssrem.evaluators.reference_based.overlap:RougeL",
    "meteor": "ssrem.evaluators.reference_based.overlap:Meteor",
    "emb-average": "ssrem.evaluators.reference_based.embedding:EmbeddingAverage",
    "emb-greedy": "ssrem.evaluators.reference_based.embedding:EmbeddingGreedy",
    "emb-extrema": "ssrem.evaluators.reference_based.embedding:EmbeddingExtrema",
    "sms": "ssrem.evaluators.reference_based.embedding:SentenceMovers",
    "bertscore": "ssrem.evaluators.reference_based.embedding:BertScore",
    "judge": "ssrem.evaluators.judge.judge:Judge",
    "judge-ref": "ssrem.evaluators.judge.judge:JudgeRef",
    "length": "ssrem.evaluators.baselines:Length",
}
EVALUATORS: dict[str, str] = with_installed("ssrem.evaluators", _OWN)
"""Name of each evaluator → module:class. The module is imported when the evaluator is first used."""

MANIFEST = "evaluator.json"
"""Name of the file in a saved evaluator's folder that names and describes the evaluator."""

PARTS = ("f", "g", "h")
"""The parts of a score: f unreferenced, g referenced, h mixed."""

PACKAGED = Path(__file__).parent.parent / "packaged"

BEST_PACKAGED = {
    "blend": (*OF_MINILM, *OF_MPNET, *OF_GEMMA),
    "blend-base": (*OF_MINILM, *OF_MPNET),
    "blend-fast": OF_MINILM,
    "ssrem": (),
}
"""The packaged evaluators that `ssrem score` and `ssrem correlate` choose from, best first by their agreement with
human ratings (docs/agreement.md), and the modules that each needs."""

BASELINES = {"cosine": OF_MINILM, "length": ()}
"""The untrained evaluators that others are compared with, and the modules that each needs."""

DEFAULT_EVALUATORS = ("ssrem", "rsrem")
"""The evaluators that are trained unless others are named."""


def check_name(name: str) -> None:
    """Raise EvaluatorError if no evaluator has this name, with similar names or else all; no evaluator is imported."""
    if name not in EVALUATORS:
        hint = did_you_mean(str(name), EVALUATORS) or f"; the evaluators are {', '.join(EVALUATORS)}"
        raise EvaluatorError(f"no evaluator {name!r}{hint}")


def evaluator_class(name: str) -> type[Evaluator]:
    """The class registered under `name`.

    EvaluatorError for an unknown name, or if a package registers what is no evaluator, lacks a class variable or has
    another `name`; SsremError if a module that the class needs is not installed.
    """
    check_name(name)
    try:
        evaluator: type[Evaluator] = object_at(EVALUATORS[name])
    except SsremError as error:
        if missing := not_installed(*BEST_PACKAGED.get(name, ())):
            raise EvaluatorError(f"{name} needs {way_out(*missing)}") from error
        raise
    lacking = [field for field in ("name", "range", "source", "components") if not hasattr(evaluator, field)]
    if lacking:
        raise EvaluatorError(f"{EVALUATORS[name]} is no evaluator: it lacks `{'`, `'.join(lacking)}`")
    if evaluator.name != name:
        raise EvaluatorError(
            f"{EVALUATORS[name]} is registered as {name!r}, but its `name` is {evaluator.name!r}; make them equal"
        )
    return evaluator


@cache
def source_hash(kind: type[Evaluator]) -> str:
    """The end of an evaluator's signature: `|source:HASH`, or "" for an evaluator that comes with ssrem.

    The hash covers the source files of the class and of its base classes outside ssrem. After an edit of one of them
    the signature differs, so the scores are computed anew.
    """
    if _OWN.get(kind.name) == f"{kind.__module__}:{kind.__qualname__}":
        return ""
    outside = [one for one in kind.__mro__ if one is kind or not f"{one.__module__}.".startswith("ssrem.")]
    digest = hashlib.sha256()
    for module in sorted({one.__module__ for one in outside} - {"builtins", "abc", "typing"}):
        file = getattr(sys.modules.get(module), "__file__", None)
        if file and Path(file).is_file():  # a class that was typed into a shell has none
            digest.update(Path(file).read_bytes())
    return f"|source:{digest.hexdigest()[:8]}"


def load_evaluator(where: Path | str) -> Evaluator:
    """The packaged evaluator, if `where` is the name of one; otherwise the evaluator saved in the folder `where`.

    EvaluatorError if there is none, or it is damaged.
    """
    folder = PACKAGED / where if where in packaged() else Path(where)
    return evaluator_class(str(read_json(folder / MANIFEST, ("name",))["name"])).load(folder)


def packaged() -> list[str]:
    """Names of the trained evaluators that come with the package."""
    return sorted(path.parent.name for path in PACKAGED.glob(f"*/{MANIFEST}"))


def best_packaged() -> tuple[str, dict[str, list[str]]]:
    """The first of BEST_PACKAGED whose modules are installed, and each one before it → the modules that it lacks."""
    missing = {name: not_installed(*modules) for name, modules in BEST_PACKAGED.items()}
    best = next(name for name, lacking in missing.items() if not lacking)
    return best, dict(takewhile(lambda item: item[0] != best, missing.items()))


def usable_baselines() -> tuple[str, ...]:
    """Names of those BASELINES whose modules are installed."""
    return tuple(name for name, modules in BASELINES.items() if not not_installed(*modules))


def comes_packaged(name: str, signature: str) -> bool:
    """Whether an evaluator of that name and signature comes with the package."""
    return (
        name in packaged() and read_json(PACKAGED / name / MANIFEST, ("signature",))["signature"] == signature
    )


def overall_part(counts: Mapping[str, int]) -> str:
    """The part that is an evaluator's score: h if at least as many samples have h as have f, else f.

    It is g for an evaluator that has neither. counts: part → number of samples that have it. A sample without a
    reference has no h and g; a blank sample has no part.
    """
    h, f = counts.get("h", 0), counts.get("f", 0)
    if not (h or f):
        return "g" if counts.get("g") else "f"
    return "h" if h >= f else "f"


def route(names: Sequence[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Map each evaluator to those of the `settings` that it has; their values are checked.

    EvaluatorError for an unknown evaluator, for a setting that none of them has (except seed, which evaluators that
    draw nothing ignore) and for a value that a setting cannot have.
    """
    has = {name: evaluator_class(name).settings_model.model_fields for name in names}
    known = sorted({setting for own in has.values() for setting in own})
    if unknown := next((setting for setting in settings if setting not in (*known, "seed")), None):
        hint = did_you_mean(unknown, known) or f"; there are {', '.join(known) or 'none'}"
        raise EvaluatorError(f"{', '.join(names)}: no setting {unknown}{hint}")
    routed = {name: {key: settings[key] for key in settings if key in has[name]} for name in names}
    for name, own in routed.items():
        evaluator_class(name).settings_model(**own)
    return routed
