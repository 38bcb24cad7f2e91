"""USR as published (Mehri and Eskenazi, ACL 2020): a context, a fact and the rated responses of every system a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ssrem.agreement.annotated import GROUND_TRUTH_SYSTEMS
from ssrem.annotated_sets.base import Content, Layout, Response, text_of
from ssrem.annotated_sets.columns import ContextColumns
from ssrem.errors import AnnotationError

_NO_RATINGS = ("response", "model", "annotator", "annotators")


class UsrLayout(Layout):
    """Rows of a context with a list of responses; what a response has besides text and model are its ratings, or
    objects with its ratings."""

    name: ClassVar[str] = "usr"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        row = content.first
        return "context" in row and isinstance(row.get("responses"), list)

    def responses(self) -> Iterator[Response]:
        """The reference of every response is the text of the row's ground-truth system, if it has one.

        The fact that responses were to use is not part of the context.
        """
        for number, (where, row) in enumerate(self.objects("context and responses")):
            try:
                context = ContextColumns(("context",), "\n").turns(row)
            except ValueError as error:
                raise AnnotationError(f"{where}: {error}") from None
            listed = list(_listed(where, row))
            true = next((text for _, text, who, _ in listed if who.lower() in GROUND_TRUTH_SYSTEMS), None)
            for place, text, system, scores in listed:
                yield Response(place, str(number), context, text, scores, system, true)


def _listed(where: str, row: Mapping[str, Any]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """(place, text, system, scores by criterion) of each response of a row."""
    listed = row.get("responses")
    if not isinstance(listed, list):
        raise AnnotationError(f"{where}: no list of responses")
    for number, response in enumerate(listed, 1):
        place = f"{where}, response {number}"
        if not isinstance(response, dict):
            raise AnnotationError(f"{place}: expected an object with response, model and ratings")
        scores = {name: value for name, value in response.items() if name.lower() not in _NO_RATINGS}
        for name in [name for name, value in scores.items() if isinstance(value, dict)]:
            scores |= scores.pop(name)
        yield place, text_of(place, response, "response").strip(), text_of(place, response, "model"), scores
