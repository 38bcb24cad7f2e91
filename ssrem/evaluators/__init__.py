"""(context, response, reference) → score. Evaluators are found by name and loaded when used."""

from __future__ import annotations

import difflib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ssrem.errors import EvaluatorError

if TYPE_CHECKING:
    from ssrem.evaluators.base import Evaluator

EVALUATORS: dict[str, str] = {
    "ssrem": "ssrem.evaluators.bilinear.bilinear:SSREM",
    "rsrem": "ssrem.evaluators.bilinear.bilinear:RSREM",
    "ruber": "ssrem.evaluators.ruber.ruber:Ruber",
    "ruber-unref": "ssrem.evaluators.ruber.ruber:RuberUnref",
    "ruber-ref": "ssrem.evaluators.ruber.referenced:RuberRef",
    "adem": "ssrem.evaluators.adem.adem:Adem",
    "adem-unref": "ssrem.evaluators.adem.adem:AdemUnref",
    "adem-ref": "ssrem.evaluators.adem.adem:AdemRef",
    "retrieval": "ssrem.evaluators.cross_encoder.retrieval:Retrieval",
    "roberta-eval": "ssrem.evaluators.cross_encoder.roberta_eval:RobertaEval",
    "blend": "ssrem.evaluators.blend.blend:Blend",
    "blend-ref": "ssrem.evaluators.blend.blend:BlendRef",
    "cosine": "ssrem.evaluators.baselines.cosine:Cosine",
    "lm-coherence": "ssrem.evaluators.language_model.likelihood:LmCoherence",
    "lm-pmi": "ssrem.evaluators.language_model.likelihood:LmPmi",
    "lm-sum": "ssrem.evaluators.language_model.likelihood:LmSum",
    "mlm-likelihood": "ssrem.evaluators.language_model.likelihood:MlmLikelihood",
    "bleu-1": "ssrem.evaluators.reference_based.overlap:Bleu1",
    "bleu-2": "ssrem.evaluators.reference_based.overlap:Bleu2",
    "bleu-3": "ssrem.evaluators.reference_based.overlap:Bleu3",
    "bleu-4": "ssrem.evaluators.reference_based.overlap:Bleu4",
    "rouge-l": "ssrem.evaluators.reference_based.overlap:RougeL",
    "meteor": "ssrem.evaluators.reference_based.overlap:Meteor",
    "emb-average": "ssrem.evaluators.reference_based.embedding:EmbeddingAverage",
    "emb-greedy": "ssrem.evaluators.reference_based.embedding:EmbeddingGreedy",
    "emb-extrema": "ssrem.evaluators.reference_based.embedding:EmbeddingExtrema",
    "sms": "ssrem.evaluators.reference_based.embedding:SentenceMovers",
    "bertscore": "ssrem.evaluators.reference_based.bertscore:BertScore",
    "length": "ssrem.evaluators.baselines.length:Length",
}
"""Name → where the class is, as module:class."""

PACKAGED = Path(__file__).parent.parent / "packaged"

DEFAULT_EVALUATORS = ("ssrem", "rsrem")
"""What is trained where nothing else is asked for."""


def evaluator_class(name: str) -> type[Evaluator]:
    """The class registered under `name`; EvaluatorError with the nearest names where there is none."""
    if name not in EVALUATORS:
        near = difflib.get_close_matches(name, EVALUATORS, n=3, cutoff=0.3) or list(EVALUATORS)
        raise EvaluatorError(f"no evaluator {name!r}; did you mean {', '.join(near)}?")
    module, _, attribute = EVALUATORS[name].partition(":")
    evaluator: type[Evaluator] = getattr(import_module(module), attribute)
    return evaluator


def load_evaluator(where: Path | str) -> Evaluator:
    """The evaluator saved in a folder, or the one of that name that comes with the package.

    EvaluatorError where there is none, or it is damaged.
    """
    from ssrem.files import read_json

    folder = PACKAGED / where if where in packaged() else Path(where)
    return evaluator_class(read_json(folder / "evaluator.json", ("name",))["name"]).load(folder)


def packaged() -> list[str]:
    """Names of the trained evaluators that come with the package."""
    return sorted(path.parent.name for path in PACKAGED.glob("*/evaluator.json"))
