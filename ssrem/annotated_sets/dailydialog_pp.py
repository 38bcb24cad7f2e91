"""DailyDialog++ as published (Sai et al., TACL 2020): contexts with relevant and with irrelevant responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ssrem.annotated_sets.base import Content, Layout, Response
from ssrem.annotated_sets.columns import ContextColumns
from ssrem.errors import AnnotationError

CRITERION = "relevance"
"""1 for a response that a person wrote as relevant, 0 for one that was written or drawn as irrelevant."""

_LABELS = {"positive_responses": 1, "adversarial_negative_responses": 0, "random_negative_responses": 0}


class DailyDialogPlusPlusLayout(Layout):
    """Rows of a context and lists of responses, whose name is the label."""

    name: ClassVar[str] = "dailydialog-plusplus"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        return {"context", "positive_responses"} <= content.first.keys()

    def responses(self) -> Iterator[Response]:
        """A list's name without `_responses` is its responses' system."""
        columns = ContextColumns(("context",), "\n")
        for number, (where, row) in enumerate(self.objects("context and positive_responses")):
            try:
                context = columns.turns(row)
            except ValueError as error:
                raise AnnotationError(f"{where}: {error}") from None
            for name, label in _LABELS.items():
                listed = row.get(name, [])
                if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
                    raise AnnotationError(f"{where}: {name} is no list of texts")
                for text in filter(str.strip, listed):
                    system, scores = name.removesuffix("_responses"), {CRITERION: [label]}
                    yield Response(where, str(row.get("id", number)), context, text.strip(), scores, system)
