"""`*_eval.json`: a JSON list, or one object a line, of responses with `annotations` (criterion → raters' scores)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ssrem.agreement.annotated import eval_objects, unrated
from ssrem.annotated_sets.base import NO_RESPONSE, Content, Layout, Response


class EvalLayout(Layout):
    """The project's own layout."""

    name: ClassVar[str] = "eval"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        """Also JSON that is broken or holds no objects: the reader's message says what is wrong with it."""
        known = {"context", "response", "annotations"}
        return content.is_json and (content.first is None or bool(known & content.first.keys()))

    def responses(self) -> Iterator[Response]:
        """Rows whose response is missing, null or blank are counted and left out."""
        for number, (where, written) in enumerate(eval_objects(self.path)):
            text = written.get("response")
            if text is None or (isinstance(text, str) and not text.strip()):
                self.left_out[NO_RESPONSE] += 1
                continue
            self._count_references(written.get("reference"))
            row, annotations = unrated(where, str(number), written)
            scores, dialogue = dict(annotations), row.dialogue_id
            yield Response(where, dialogue, row.context, row.response, scores, row.system, row.reference)
