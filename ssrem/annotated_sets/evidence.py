"""Which columns of a table of responses hold which field: well-known names, as far as the values bear them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ssrem.readers.evidence import FEW
from ssrem.readers.fields import normalise

WORDS: Mapping[str, float] = {"pass": 1, "fail": 0, "true": 1, "false": 0, "yes": 1, "no": 0}
"""Labels of two values as tables write them, in any case; JSON's true and false too."""

_LONGEST_NAME = 100
"""Most characters of a system's or a criterion's name on average: longer texts are instructions or utterances."""
_LONGEST_SCORE = 40

Row = Mapping[str, Any]


def known_columns(
    aliases: Mapping[str, Sequence[str]],
    header: Sequence[str],
    rows: Sequence[Row],
    mapped: Collection[str],
    needed: Collection[str] = (),
) -> dict[str, str]:
    """Field → the column that is taken for it by its well-known names, of which the values decide.

    aliases: field → its names, best first. mapped: columns that `--map` names, which are no others. A needed field
    whose columns are all contradicted keeps the first, so that a message can name the value that is wrong.
    """
    free = [column for column in reversed(header) if column not in mapped]
    last = Counter(normalise(column.rpartition(".")[2]) for column in free)  # such as Input.context
    by_name = {name: column for column in free if last[name := normalise(column.rpartition(".")[2])] == 1}
    by_name |= {normalise(column): column for column in free}
    known: dict[str, str] = {}
    for field, names in aliases.items():
        candidates = [by_name[name] for name in names if name in by_name]
        checks = {**dict.fromkeys(_TEXTS, _is_text), **dict.fromkeys(_REPEATED, _repeats)}
        check: _Check = _is_score if field == "score" else checks.get(field, lambda *_: True)
        texts = [known[name] for name in ("context", "response") if name in known]
        kept = [column for column in candidates if check(column, rows, texts)]
        if kept or (candidates and field in needed):
            known[field] = (kept or candidates)[0]
    return known


_Check = Callable[[str, Sequence[Row], Sequence[str]], bool]
_TEXTS = ("context", "response", "reference")
_REPEATED = ("model", "rater", "criterion")


def _given(column: str, rows: Sequence[Row]) -> list[Any]:
    return [value for row in rows if (value := row.get(column)) not in (None, "")]


def _is_text(column: str, rows: Sequence[Row], _: Sequence[str]) -> bool:
    """Whether most values are no numbers: a survey calls the answer on its scale a response, too."""
    values = _given(column, rows)
    return len(values) < FEW or 2 * sum(map(_is_number, values)) <= len(values)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_score(column: str, rows: Sequence[Row], _: Sequence[str]) -> bool:
    """Whether most values may be scores: short, with a digit, or one of WORDS; or lists of scores."""
    values = _given(column, rows)
    texts = [value.strip().lower() for value in values if isinstance(value, str)]
    none = [
        text
        for text in texts
        if text not in WORDS and (len(text) > _LONGEST_SCORE or not any(map(str.isdigit, text)))
    ]
    return 2 * len(none) <= len(values)


def _repeats(column: str, rows: Sequence[Row], texts: Sequence[str]) -> bool:
    """Whether the values are short names, each of which stands with two responses on average.

    A system, a rater and a criterion concern many responses; where all responses have one context, nothing is known.
    """
    named = [row for row in rows if row.get(column) not in (None, "")]
    names = [str(row[column]) for row in named]
    about = [tuple(str(row.get(text)) for text in texts) for row in named]
    uses = len(set(zip(names, about, strict=True)))
    short = sum(map(len, names)) <= _LONGEST_NAME * len(names)
    contexts = {one[:1] for one in about}
    return short and (uses < FEW or 2 * len(set(names)) <= uses or len(contexts) == 1)
