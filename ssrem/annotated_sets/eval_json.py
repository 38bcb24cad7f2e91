"""`*_eval.json`: a JSON list, or one object a line, of responses with `annotations` (criterion → raters' scores)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ssrem.annotated_sets.base import NO_RESPONSE, Content, Layout, Response, text_of
from ssrem.annotated_sets.columns import ContextColumns
from ssrem.errors import AnnotationError

_SYSTEM = ("model", "model_name", "system")


class EvalLayout(Layout):
    """The project's own layout."""

    name: ClassVar[str] = "eval"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        """Also JSON that is broken or holds no objects: the reader's message says what is wrong with it."""
        known = {"context", "response", "annotations"}
        return content.is_json and (not content.first or bool(known & content.first.keys()))

    def responses(self) -> Iterator[Response]:
        """Rows whose response is missing, null or blank are counted and left out."""
        columns = ContextColumns(("context",), "\n")
        for number, (where, row) in enumerate(self.objects("context, response and annotations")):
            text, reference, scores = row.get("response"), row.get("reference"), row.get("annotations")
            if text is None or (isinstance(text, str) and not text.strip()):
                self.left_out[NO_RESPONSE] += 1
                continue
            if "context" not in row:
                keys = ", ".join(list(row)[:20])
                raise AnnotationError(
                    f"{where}: no context; the keys are {keys}; --layout jsonl takes --map context=KEY and others"
                )
            if not isinstance(scores, dict):
                raise AnnotationError(
                    f"{where}: no ratings; expected annotations such as {{'overall': [4, 5, 3]}}; "
                    "--layout jsonl reads rows with a score of their own"
                )
            try:
                context = columns.turns(row)
            except ValueError as error:
                raise AnnotationError(f"{where}: {error}") from None
            self._count_references(reference)
            if isinstance(reference, list):
                reference = reference[0] if reference else None
            if reference is not None and not isinstance(reference, str):
                raise AnnotationError(f"{where}: reference is not text")
            system = next((row[name] for name in _SYSTEM if name in row), None)
            dialogue, text = str(row.get("dialogue_id", number)), text_of(where, row, "response")
            yield Response(where, dialogue, context, text, dict(scores), system, reference)
