"""GRADE as published (Huang et al., EMNLP 2020): `human_judgement.json`, or a data set's folder with one a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from ssrem.annotated_sets.base import Content, Layout, Response, counted, text_of, turns
from ssrem.errors import AnnotationError
from ssrem.readers.table_rows import TableFile

CRITERION = "coherence"
"""What raters scored, from 1 to 5: the files do not name it, the paper does."""

SEPARATOR = "|||"
_CONTEXTS, _RESPONSES, _REFERENCES, _SCORES = (f"human_{what}.txt" for what in ("ctx", "hyp", "ref", "score"))


class GradeLayout(Layout):
    """A JSON file with every rater's score, or folders of text files with the raters' mean."""

    name: ClassVar[str] = "grade"
    holds_parts: ClassVar[bool] = True

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        if content.path.is_dir():
            return bool(_models(content.path))
        return {"Context", "Response", "HumanScores"} <= content.first.keys()

    def responses(self) -> Iterator[Response]:
        return self._of_folder() if self.path.is_dir() else self._of_file()

    def _of_file(self) -> Iterator[Response]:
        """The JSON file holds several data sets, of which `part` names one; AnnotationError lists them otherwise."""
        path, part = self.path, self.part
        rows = list(self.objects("Context, Response and HumanScores"))
        known = sorted({str(row.get("Dataset")) for _, row in rows})
        if part is None and len(known) > 1:
            example = f"--layout {self.name}:{known[0]}"
            raise AnnotationError(f"{path} holds the sets {', '.join(known)}; name one, as in {example}")
        if part is not None and part not in known:
            raise AnnotationError(f"{path} holds no set {part!r}; it holds {', '.join(known)}")
        for number, (where, row) in enumerate(rows):
            if part is not None and str(row.get("Dataset")) != part:
                continue
            context = turns(text_of(where, row, "Context"), SEPARATOR)
            text = text_of(where, row, "Response").strip()
            scores = {CRITERION: _scores(where, row.get("HumanScores"))}
            yield Response(where, str(row.get("ID", number)), context, text, scores, row.get("DialogModel"))

    def _of_folder(self) -> Iterator[Response]:
        """Each model's folder; scores may also lie in the tree `human_score` beside `eval_data`, references are
        optional."""
        path = self.path
        self.files = []
        for model in _models(path):
            names = {name: model / name for name in (_CONTEXTS, _RESPONSES, _SCORES, _REFERENCES)}
            if not names[_SCORES].exists():
                names[_SCORES] = (
                    model.parent.parent.parent / "human_score" / model.parent.name / model.name / _SCORES
                )
            if not names[_REFERENCES].exists():
                del names[_REFERENCES]
            lines = {name: _lines(file) for name, file in names.items()}
            self.files += names.values()
            count = len(lines[_CONTEXTS])
            for name, own in lines.items():
                if len(own) != count:
                    sizes = f"{counted(len(own), 'line')}, {names[_CONTEXTS].name} {count:,}"
                    raise AnnotationError(
                        f"{names[name]} has {sizes}; each line is one response, fetch the files again"
                    )
            references = lines.get(_REFERENCES, [None] * count)
            rows = zip(lines[_CONTEXTS], lines[_RESPONSES], lines[_SCORES], references, strict=True)
            for number, (context, text, score, reference) in enumerate(rows):
                where, dialogue = f"{names[_SCORES]}, row {number + 1}", f"{model.name}:{number}"
                scores, parts = {CRITERION: [score]}, turns(context, SEPARATOR)
                yield Response(where, dialogue, parts, text, scores, model.name, reference)


def _models(path: Path) -> list[Path]:
    """The models' folders, each with contexts and responses; the folder itself may be one."""
    files = [path / _CONTEXTS] if (path / _CONTEXTS).exists() else sorted(path.glob(f"*/{_CONTEXTS}"))
    return [file.parent for file in files if (file.parent / _RESPONSES).exists()]


def _lines(path: Path) -> list[str]:
    """The lines of a file; a line break at its end begins no further one."""
    return [line.strip() for line in TableFile(path).text.removesuffix("\n").split("\n")]


def _scores(where: str, written: object) -> Any:
    """The list of scores, which the authors' file has as text."""
    if not isinstance(written, str):
        return written
    try:
        return json.loads(written)
    except ValueError:
        raise AnnotationError(f"{where}: HumanScores is {written!r}, not a list of scores") from None
