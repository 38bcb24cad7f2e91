"""The sets of Zhao et al. (ACL 2020) as published: dialogues by their ids, each with the rated responses of systems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from ssrem.annotated_sets.base import Content, Layout, Response, text_of
from ssrem.annotated_sets.evidence import WORDS
from ssrem.errors import AnnotationError

UNSCORED = "response that nobody scored"
_NO_CRITERION = "_is_outlier"
"""Ends the names of marks that the authors' programs add to a worker's scores."""


class ZhaoLayout(Layout):
    """One JSON object: id → context and reference as [speaker, text], and system → its `uttr` and workers' `scores`."""

    name: ClassVar[str] = "zhao"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        first = next(iter(content.first.values()), None) if content.is_json else None
        return isinstance(first, dict) and isinstance(first.get("responses"), dict) and "context" in first

    def responses(self) -> Iterator[Response]:
        """The scores of workers, who are numbered by their names; `fact` is true (1), false (0) or na."""
        dialogues = [(name, value) for _, row in self.objects("dialogues") for name, value in row.items()]
        listed = [one for name, value in dialogues for one in self._of(name, value)]
        workers = sorted({worker for _, scores in listed for worker in scores})
        numbers = {worker: number for number, worker in enumerate(workers)}
        for response, scores in listed:
            for worker, given in scores.items():
                for criterion, score in given.items():
                    if not criterion.endswith(_NO_CRITERION):
                        known = WORDS.get(str(score).lower(), score)
                        response.scores.setdefault(criterion, []).append(known)
                        response.raters.setdefault(criterion, []).append(numbers[worker])
            yield response

    def _of(self, name: str, dialogue: Any) -> Iterator[tuple[Response, dict[str, dict[str, Any]]]]:
        """The responses of a dialogue, each with its scores by worker."""
        where = f"{self.path}, dialogue {name}"
        try:
            context = tuple(text.strip() for _, text in dialogue["context"] if text.strip())
            reference = dialogue["reference"][1] if dialogue.get("reference") else None
            for system, response in dialogue["responses"].items():
                self.left_out[UNSCORED] += "scores" not in response
                if "scores" in response:
                    text = text_of(f"{where}, response of {system}", response, "uttr").strip()
                    scores = {worker: dict(given) for worker, given in response["scores"].items()}
                    yield Response(where, name, context, text, {}, system, reference), scores
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise AnnotationError(f"{where}: expected context, reference and responses of systems") from None
