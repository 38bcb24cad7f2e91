"""`*_eval.json`: a JSON list, or one object a line, of responses with `annotations` (criterion → raters' scores)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ssrem.agreement.annotated import unrated_rows
from ssrem.annotated_sets.base import Content, Layout, Response


class EvalLayout(Layout):
    """The project's own layout."""

    name: ClassVar[str] = "eval"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        """Also JSON that is broken or holds no objects: the reader's message says what is wrong with it."""
        known = {"context", "response", "annotations"}
        return content.is_json and (content.first is None or bool(known & content.first.keys()))

    def responses(self) -> Iterator[Response]:
        for where, row, written in unrated_rows(self.path):
            scores, dialogue = dict(written), row.dialogue_id
            yield Response(where, dialogue, row.context, row.response, scores, row.system, row.reference)
