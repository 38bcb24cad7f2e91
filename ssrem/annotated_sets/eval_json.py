"""`*_eval.json`: a JSON list, or one object a line, of responses with `annotations` (criterion → raters' scores)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ssrem.agreement.annotated import read_annotated
from ssrem.annotated_sets.base import Content, Layout, Response


class EvalLayout(Layout):
    """The project's own layout; whatever would have to be left out is an error."""

    name: ClassVar[str] = "eval"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        """Also JSON that is broken or holds no objects: the reader's message says what is wrong with it."""
        known = {"context", "response", "annotations"}
        return content.is_json and (content.first is None or bool(known & content.first.keys()))

    def responses(self) -> Iterator[Response]:
        for row in read_annotated(self.path):
            ratings = dict(row.ratings)
            yield Response(
                str(self.path), row.dialogue_id, row.context, row.response, ratings, row.system, row.reference
            )
