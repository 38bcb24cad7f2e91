"""Which column of a table of scores is which field: `--map`, as dumps have it, else well-known names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssrem.errors import AnnotationError, DumpError
from ssrem.readers.layout import normalise, parse_mapping

FIELDS: Mapping[str, str] = {
    "context": "turns, oldest first: one column, split by the separator, or A+B, a turn each",
    "response": "the response",
    "score": "its score; the criterion is called as the column is; A+B are two criteria",
    "criterion": "what the score of a row is about, where a row is one score",
    "rater": "who gave it, where a row is one rater's",
    "model": "who made the response",
    "reference": "the true response",
    "dialogue": "dialogue that the response belongs to",
    "separator": "no column: what stands between turns (default: a line break, \\n)",
}
"""Fields of `--map` for annotated sets. `score.NAME=A+B` are the raters' columns of the criterion NAME."""

ALIASES: Mapping[str, tuple[str, ...]] = {
    "context": ("context", "history", "dialogue_context"),
    "response": ("response", "reply"),
    "score": ("score", "rating", "overall"),
    "criterion": ("criterion",),
    "rater": ("rater", "rater_id", "annotator", "worker_id"),
    "model": ("model", "model_name", "system"),
    "reference": ("reference",),
    "dialogue": ("dialogue_id", "dialogue", "dialog_id", "conversation_id"),
}
"""Names that need no `--map`, best first, as `normalise` writes them."""

_SCORE_OF = "score."
_SEPARATOR = "separator"
_ESCAPES = (("\\n", "\n"), ("\\t", "\t"))
_NEEDED = ("context", "response", "score")
_MANY = ("context", "score")
_MOST_LISTED = 30


def concerns(pair: str) -> bool:
    """Whether `FIELD=COLUMN`, or the field alone, is about annotated sets."""
    name = pair.partition("=")[0]
    return name in FIELDS or name.startswith(_SCORE_OF)


def divided(mapping: Mapping[str, str] | None) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """One mapping as that of a dump's fields and that of annotated sets'; no field is both's."""
    sets = {name: columns for name, columns in (mapping or {}).items() if concerns(name)}
    dump = {name: columns for name, columns in (mapping or {}).items() if name not in sets}
    return dump or None, sets or None


def parse(pairs: Iterable[str]) -> dict[str, str]:
    """`--map` as given → field → column, or columns joined by +. AnnotationError on another shape or field."""
    pairs = list(pairs)
    separators = [pair for pair in pairs if pair.startswith(f"{_SEPARATOR}=")]
    named = [pair for pair in pairs if pair.startswith(_SCORE_OF)]
    others = [pair for pair in pairs if pair not in separators and pair not in named]
    try:
        found = parse_mapping(others, [name for name in FIELDS if name != _SEPARATOR])
        found |= parse_mapping(named, {pair.partition("=")[0] for pair in named})
    except DumpError as error:
        raise AnnotationError(str(error)) from None
    single = next((name for name, columns in found.items() if len(columns) > 1 and not _several(name)), None)
    if single:
        raise AnnotationError(f"--map {single}={'+'.join(found[single])}: {single} is one column")
    mapping = {name: "+".join(columns) for name, columns in found.items()}
    for pair in separators:
        mapping[_SEPARATOR] = pair.partition("=")[2]
        if not mapping[_SEPARATOR] or len(separators) > 1:
            raise AnnotationError(
                "--map separator=…: give what stands between turns, once, such as separator='|||'"
            )
    return mapping


def _several(name: str) -> bool:
    return name in _MANY or name.startswith(_SCORE_OF)


@dataclass(frozen=True)
class Columns:
    """Where the fields of a table's rows are.

    scores: criterion → its columns, a rater each. single: the other fields → column. separator: between turns.
    """

    context: tuple[str, ...]
    scores: Mapping[str, tuple[str, ...]]
    single: Mapping[str, str]
    separator: str

    @classmethod
    def of(cls, path: Path, header: Sequence[str], mapping: Mapping[str, str] | None) -> Columns:
        """AnnotationError on a column twice, one that is not there, or a field that must have one and has none."""
        given = {name: value for name, value in (mapping or {}).items() if name != _SEPARATOR}
        there = ", ".join(header[:_MOST_LISTED]) + (", …" if len(header) > _MOST_LISTED else "")
        twice = next((name for i, name in enumerate(header) if name in header[:i]), None)
        if twice is not None:
            raise AnnotationError(f"{path}: the column {twice!r} is there twice; rename one")
        found = {name: tuple(value.split("+")) for name, value in given.items()}
        absent = [column for columns in found.values() for column in columns if column not in header]
        if absent:
            raise AnnotationError(
                f"{path}: --map names the column {absent[0]!r}, which is not there; the columns are {there}"
            )
        found |= _well_known(header, found)
        scores = {name.removeprefix(_SCORE_OF): found[name] for name in found if name.startswith(_SCORE_OF)}
        scores |= {column: (column,) for column in found.get("score", ())}
        missing = [name for name in _NEEDED if name not in found and (name != "score" or not scores)]
        if missing:
            raise AnnotationError(
                f"{path}: no column is known as {' or '.join(missing)}; the columns are {there}; "
                f"say which is which with --map, for example --map {missing[0]}=COLUMN"
            )
        if "criterion" in found and len(scores) > 1:
            raise AnnotationError(
                f"{path}: with a criterion column a row has one score, not {len(scores)} ({', '.join(scores)}); "
                "name one with --map score=COLUMN"
            )
        single = {name: columns[0] for name, columns in found.items() if not _several(name)}
        separator = (mapping or {}).get(_SEPARATOR, "\n")
        for written, meant in _ESCAPES:
            separator = separator.replace(written, meant)
        return cls(found["context"], scores, single, separator)


def _well_known(header: Sequence[str], given: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Fields that `--map` does not name, by their names; no score where it names any."""
    taken = {column for columns in given.values() for column in columns}
    scored = any(name == "score" or name.startswith(_SCORE_OF) for name in given)
    by_name = {normalise(column): column for column in reversed(header) if column not in taken}
    found: dict[str, tuple[str, ...]] = {}
    for name, aliases in ALIASES.items():
        column = next((by_name[alias] for alias in aliases if alias in by_name), None)
        if column is not None and name not in given and not (name == "score" and scored):
            found[name] = (column,)
    return found
