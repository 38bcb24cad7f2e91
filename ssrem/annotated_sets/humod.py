"""HUMOD as published (Merdivan et al., Applied Sciences 2020): tab-separated, one rater's score a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ssrem.annotated_sets.base import Content, Layout, Response
from ssrem.errors import AnnotationError
from ssrem.readers.fields import normalise

CRITERION = "relevance"
GROUND_TRUTH, RANDOM = "ground-truth", "random"

_COLUMNS = ("dialogue_id", "dialogue_context", "reply", "label", "user_relevance_score")
_ID, _CONTEXT, _REPLY, _LABEL, _SCORE = _COLUMNS
_SPEAKER = re.compile(r"\bSpeaker\s*\d+\s*:\s*")


class HumodLayout(Layout):
    """A dialogue id is a context with a reply, and its rows are its raters."""

    name: ClassVar[str] = "humod"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        return content.format == "tsv" and content.file is not None and set(_COLUMNS) <= content.file.names

    def responses(self) -> Iterator[Response]:
        """Label 0 is the film's own reply, label 1 one drawn at random, whose reference is the film's.

        The replies that raters wrote themselves are not read.
        """
        replies: dict[str, Response] = {}
        for where, cells in _rows(self.path, self.content.text):
            context = tuple(turn.strip() for turn in _SPEAKER.split(cells[_CONTEXT]) if turn.strip())
            text = _SPEAKER.sub("", cells[_REPLY], count=1).strip()
            system = GROUND_TRUTH if cells[_LABEL] == "0" else RANDOM
            row = Response(where, cells[_ID], context, text, {CRITERION: []}, system)
            reply = replies.setdefault(row.dialogue, row)
            if (reply.system, _letters(reply)) != (system, _letters(row)):
                raise AnnotationError(
                    f"{where}: another context or reply than at {reply.where}, of the same id"
                )
            reply.scores[CRITERION].append(cells[_SCORE])
        true = {reply.context: reply.text for reply in replies.values() if reply.system == GROUND_TRUTH}
        for reply in replies.values():
            reply.reference = true.get(reply.context)
            yield reply


def _letters(reply: Response) -> str:
    """Context and text without punctuation, in which the rows of one reply differ now and then."""
    return re.sub(r"\W+", "", "".join((*reply.context, reply.text)))


def _names(header: str) -> list[str]:
    return [normalise(name) for name in header.split("\t")]


def _rows(path: Path, text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each row's place and its cells by column name.

    A few published rows miss a tab behind the columns that are read here, so a row may be short by such columns.
    """
    header, *lines = text.split("\n")
    names = _names(header)
    if not set(_COLUMNS) <= set(names):
        raise AnnotationError(f"{path}, line 1: expected the tab-separated columns {', '.join(_COLUMNS)}")
    needed = max(names.index(name) for name in _COLUMNS) + 1
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        cells = line.rstrip("\r").split("\t")
        if not needed <= len(cells) <= len(names):
            raise AnnotationError(
                f"{where}: {len(cells)} cells between tabs, the header has {len(names)}; fetch the file again"
            )
        row = dict(zip(names, (cell.strip() for cell in cells), strict=False))
        if row[_LABEL] not in ("0", "1"):
            raise AnnotationError(
                f"{where}: the label is {row[_LABEL]!r}, not 0 (the film's reply) or 1 (random)"
            )
        yield where, row
