"""Label Studio's JSON export: tasks with the data that was shown, and each annotator's answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ssrem.annotated_sets.base import Content, Row
from ssrem.annotated_sets.evidence import WORDS
from ssrem.annotated_sets.tables import TableLayout
from ssrem.errors import AnnotationError
from ssrem.readers.fields import ALIASES

SKIPPED = "task that an annotator skipped"
NO_RATING = "answer that is no rating"
_FIELDS = {"dialogue": "task", "criterion": "from_name", "rater": "completed_by", "score": "value"}


class LabelStudioLayout(TableLayout):
    """A row of a table for each answer: `data` has the columns, the control's name is the criterion."""

    name: ClassVar[str] = "label-studio"
    aliases: ClassVar[Mapping[str, Sequence[str]]] = {
        **ALIASES,
        "context": (*ALIASES["context"], "dialogue", "dialog", "conversation"),
    }

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        return isinstance(content.first.get("data"), dict) and isinstance(
            content.first.get("annotations"), list
        )

    def rows(self) -> tuple[Sequence[str], list[Row]]:
        self.mapping = {**_FIELDS, **(self.mapping or {})}
        rows = [
            row for where, task in self.objects("data and annotations") for row in self._answers(where, task)
        ]
        return list(dict.fromkeys(name for _, row in rows for name in row)), rows

    def _answers(self, where: str, task: Mapping[str, Any]) -> Iterator[Row]:
        data, annotations = task.get("data"), task.get("annotations")
        if not isinstance(data, dict) or not isinstance(annotations, list):
            raise AnnotationError(f"{where}: expected an object with data and a list of annotations")
        for at, annotation in enumerate(annotations, 1):
            results = annotation.get("result") if isinstance(annotation, dict) else None
            if not isinstance(results, list):
                raise AnnotationError(f"{where}, annotation {at}: no list result")
            self.left_out[SKIPPED] += bool(annotation.get("was_cancelled"))
            by = annotation.get("completed_by", f"annotation {at}")
            rater = str(by.get("id", by.get("email"))) if isinstance(by, dict) else str(by)
            about = {"task": str(task.get("id", where)), "completed_by": rater}
            for result in [] if annotation.get("was_cancelled") else results:
                value = _score(result.get("value")) if isinstance(result, dict) else None
                self.left_out[NO_RATING] += value is None
                if value is not None:
                    yield where, {**data, **about, "from_name": result.get("from_name"), "value": value}


def _score(value: Any) -> Any:
    """The rating, the number or the only choice of an answer; None for texts and for choices without a number."""
    given = value if isinstance(value, dict) else {}
    choices = given.get("choices")
    if isinstance(choices, list) and len(choices) == 1:
        choice = str(choices[0]).strip()
        return choice if choice.lower() in WORDS or any(map(str.isdigit, choice)) else None
    return given.get("rating", given.get("number"))
