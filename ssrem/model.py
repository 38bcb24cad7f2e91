"""Evaluators for use in notebooks: trained on conversations in memory, and applied to tuples of texts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ssrem.annotated_sets.columns import turns
from ssrem.encoders import DEFAULT_ENCODER, Encoder, load_encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators import EVALUATORS, MANIFEST, evaluator_class, load_evaluator, packaged, route
from ssrem.in_memory import Conversations, conversations
from ssrem.readers.python_data import is_null
from ssrem.registry import did_you_mean
from ssrem.samples import Floats, Sample

if TYPE_CHECKING:
    from ssrem.evaluators.base import Evaluator
    from ssrem.samples import Progress
    from ssrem.training import Training


class Model:
    """The evaluator of a given name, such as ruber; one that learns is trained by `fit`.

    name: a name that docs/evaluators.md lists. encoder: spec of the encoder of its texts, by default the evaluator's
    own. settings: those of `--set` of `ssrem train`, such as epochs=10. Raises EvaluatorError for an unknown name or
    setting.
    """

    _evaluator: Evaluator | None

    def __init__(self, name: str, *, encoder: str | None = None, **settings: Any) -> None:
        kind = evaluator_class(name)
        if encoder and not kind.learns_from:
            if "encoder" not in kind.settings_model.model_fields:
                raise EvaluatorError(f"{name} takes no encoder; leave it out")
            settings["encoder"] = encoder
        settings = {
            key: value.item() if isinstance(value, np.generic) else value for key, value in settings.items()
        }
        route([name], settings)
        self._set(name, settings, encoder)
        if not kind.learns_from:
            self._evaluator = kind.create(settings, _Provider(None, self._spec, 0))

    def _set(self, name: str, settings: Mapping[str, Any] | None, encoder: str | None = None) -> None:
        """Initialise the attributes. settings: None for a loaded evaluator, which cannot be trained again."""
        self.name, self.settings = name, settings
        self._spec = encoder or evaluator_class(name).default_encoder or DEFAULT_ENCODER
        self._evaluator = None

    @property
    def evaluator(self) -> Evaluator:
        """The underlying evaluator; raises EvaluatorError if it has to be trained first."""
        if self._evaluator is None:
            ready = f", or ssrem.load({self.name!r}), which is trained" if self.name in packaged() else ""
            raise EvaluatorError(f"{self.name} is not trained yet; call fit(conversations){ready}")
        return self._evaluator

    @property
    def training(self) -> Training:
        """How it was trained, with the losses and `figures`, which are of the validation split; raises EvaluatorError
        if it has to be trained first, or learns nothing."""
        training: Training | None = getattr(self.evaluator, "training", None)
        if training is None:
            raise EvaluatorError(f"{self.name} has no record of a training")
        return training

    def fit(self, data: Any, *, progress: Progress | None = None) -> Self:
        """Learn from conversations, which `ssrem.conversations` has returned or can read; returns this model.

        progress: called with (steps done, steps in all). Warns if the trained evaluator ranks true responses of the
        validation split no better than chance. Raises EvaluatorError if there is too little to learn from, or if the
        evaluator learns nothing, learns from human ratings alone, or was loaded.
        """
        kind: Any = evaluator_class(self.name)
        if "candidates" not in kind.learns_from:
            what = "human ratings alone: ssrem train --labels" if kind.learns_from else "nothing; call score"
            raise EvaluatorError(f"{self.name} learns from {what}")
        if self.settings is None:
            raise EvaluatorError(
                f"this {self.name} was loaded, and is trained; call fit of a new ssrem.Model({self.name!r}, …)"
            )
        known = data if isinstance(data, Conversations) else conversations(data)
        settings = kind.settings_model(**self.settings)
        evaluator = kind.create(self.settings, _Provider(known, self._spec, settings.seed))
        training = evaluator.fit(known.candidates, progress=progress)
        if training.warning:
            warnings.warn(f"{self.name}: {training.warning}", stacklevel=2)
        self._evaluator = evaluator
        return self

    def score(self, responses: Iterable[Any]) -> Floats:
        """A score for each response, float64 (n,); NaN where what the evaluator needs is missing, such as a reference,
        or the response is null.

        responses: `(context, response)` or `(context, response, reference)`, or dicts with these keys, or a frame with
        these columns. A context is a text with one turn per line, or a list of turns, oldest first; as in `ssrem score`
        blank turns are left out. A reference of None or NaN counts as missing. Raises EvaluatorError for responses of
        another shape.
        """
        return self.evaluator.score(_samples(responses))

    def save(self, folder: Path | str) -> None:
        """Write the evaluator into a folder, for `ssrem.load`; raises EvaluatorError if that fails."""
        try:
            self.evaluator.save(Path(folder))
        except OSError as error:
            raise EvaluatorError(
                f"{folder} cannot be written ({error.strerror or error}); give the path of a folder"
            ) from error


class SSREM(Model):
    """The evaluator of Bak and Oh (2020), which learns to tell a response from others of the same speaker."""

    def __init__(self, *, encoder: str | None = None, **settings: Any) -> None:
        super().__init__("ssrem", encoder=encoder, **settings)


def load(where: Path | str = "ssrem") -> Model:
    """The model in a folder that `save` or `ssrem train` wrote, or the trained one of that name that comes with ssrem.

    Raises EvaluatorError if there is neither.
    """
    if not isinstance(where, str | Path):
        raise EvaluatorError(f"{where!r:.60} is neither a folder nor a name; {_trained()}")
    if Path(where).is_file():
        raise EvaluatorError(
            f"{where} is a file; ssrem evaluators import {where} --home HOME adds what was exported, and "
            "ssrem.load('HOME/models/NAME/VERSION') loads it"
        )
    where = str(where)
    if where not in EVALUATORS and not Path(where).exists():
        near = did_you_mean(where, packaged())
        raise EvaluatorError(f"{where} is neither a folder nor a name{near or f'; {_trained()}'}")
    if where in EVALUATORS and where not in packaged() and not Path(where).exists():
        if evaluator_class(where).learns_from:
            raise EvaluatorError(f"{where} does not come trained; {_trained()}")
        raise EvaluatorError(f"{where} needs no training; use ssrem.Model({where!r})")
    # A folder with a saved evaluator takes precedence over a packaged evaluator of the same name.
    evaluator = load_evaluator(Path(where) if (Path(where) / MANIFEST).is_file() else where)
    model = Model.__new__(Model)
    model._set(evaluator.name, None)
    model._evaluator = evaluator
    return model


def _trained() -> str:
    return f"give a folder that save wrote, or what comes trained: {', '.join(packaged())}"


@dataclass(frozen=True)
class _Provider:
    """The encoder and models that an evaluator is created from: an `ssrem.evaluators.base.Provider`."""

    conversations: Conversations | None
    spec: str
    seed: int

    def encoder(self) -> Encoder:
        texts = self.conversations.training_texts if self.conversations else None
        return load_encoder(self.spec, train_texts=texts, seed=self.seed)

    def evaluator(self, name: str) -> Evaluator:
        return (load(name) if evaluator_class(name).learns_from else Model(name)).evaluator

    def masked_lm(self) -> Path:
        raise EvaluatorError(
            "a masked language model is fine-tuned by ssrem train alone; name one with negatives_model="
        )


def _samples(responses: Iterable[Any]) -> list[Sample]:
    if hasattr(responses, "__arrow_c_stream__") and hasattr(responses, "columns"):  # a Series has no columns
        responses = _rows(responses)
    if isinstance(responses, str | bytes | Mapping) or not isinstance(responses, Iterable):
        raise _shape(f"the responses are {responses!r:.60}")
    return [_sample(item, f"response {number}") for number, item in enumerate(responses, 1)]


def _rows(frame: Any) -> list[dict[str, Any]]:
    import pyarrow as pa

    try:
        rows: list[dict[str, Any]] = pa.table(frame).to_pylist()
    except (pa.ArrowException, TypeError) as error:
        raise _shape(f"a column of the frame holds values of several types ({error})") from error
    return rows


def _sample(item: Any, where: str) -> Sample:
    if isinstance(item, Sample):
        return item
    if isinstance(item, Mapping):
        if not {"context", "response"} <= item.keys():
            raise _shape(f"{where} has the keys {', '.join(map(str, item))}")
        item = (item["context"], item["response"], item.get("reference"))
    item = _listed(item)
    if not isinstance(item, list | tuple) or len(item) not in (2, 3):
        raise _shape(f"{where} is {item!r:.60}")
    context, response, reference = (*item, None)[:3]
    try:
        before = turns(None if is_null(context) else _listed(context))
    except ValueError:
        raise _shape(f"{where}: the context is {context!r:.60}") from None
    reference, response = None if is_null(reference) else reference, "" if is_null(response) else response
    if not isinstance(response, str) or not isinstance(reference, str | None):
        raise _shape(f"{where}: the response and reference are {response!r:.60} and {reference!r:.60}")
    return Sample(before, response, reference)


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _shape(fault: str) -> EvaluatorError:
    return EvaluatorError(
        f"{fault}; give a list of (context, response) or (context, response, reference), where a context is a text or "
        "a list of texts, or a frame with the columns context, response and reference"
    )
