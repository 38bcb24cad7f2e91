"""Which column of a table of scores is which field: by `--map`, as for dumps, or by well-known names."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from token import STRING
from tokenize import TokenError, generate_tokens
from typing import Any

from ssrem.annotated_sets.evidence import known_columns
from ssrem.errors import AnnotationError
from ssrem.readers.evidence import told
from ssrem.readers.fields import (
    ALIASES,
    OF_RESPONSES,
    SCORE_OF,
    SIGNS,
    check_header,
    checked_mapping,
    normalise,
    turn_text,
    unknown_columns,
)

_ESCAPES = (("\\n", "\n"), ("\\t", "\t"))
_NEEDED = ("context", "response", "score")
_MANY = ("context", "score")


def divided(mapping: Mapping[str, str] | None) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """A mapping divided into the fields of dumps and those of annotated sets, which share none."""
    sets = {
        name: columns
        for name, columns in (mapping or {}).items()
        if name in OF_RESPONSES or name.startswith(SCORE_OF)
    }
    dump = {name: columns for name, columns in (mapping or {}).items() if name not in sets}
    return dump or None, sets or None


def checked(
    mapping: Mapping[str, str] | None, fields: Collection[str] = OF_RESPONSES
) -> dict[str, tuple[str, ...]]:
    """The mapping as columns; AnnotationError on an unknown field, or several columns where one is expected."""
    columns = checked_mapping(mapping, fields, AnnotationError)
    for name, several in columns.items():
        if len(several) > 1 and not (name in _MANY or name.startswith(SCORE_OF)):
            raise AnnotationError(f"--map {name}={'+'.join(several)}: {name} is one column")
    if len(columns.get("decimal", ".")[0]) > 1:
        raise AnnotationError(f"--map decimal={columns['decimal'][0]}: give one sign, such as decimal=,")
    return columns


@dataclass(frozen=True)
class ContextColumns:
    """Where the turns of a context are: one column each, or one column with a list, or with text that the separator
    splits. The turns of a list are texts, or messages of a chat log, of which those of systems and tools are no turns.
    """

    columns: tuple[str, ...]
    separator: str

    @classmethod
    def of(cls, columns: tuple[str, ...], mapping: Mapping[str, str] | None) -> ContextColumns:
        """With the separator of `--map`, by default a line break."""
        separator = (mapping or {}).get("separator", "\n")
        for written, meant in _ESCAPES:
            separator = separator.replace(written, meant)
        return cls(columns, separator)

    def turns(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """The turns of a row, oldest first, stripped, without blank ones; ValueError, with the reason, for no text."""
        values = [row.get(column) for column in self.columns]
        if len(values) == 1 and isinstance(values[0], list | tuple):
            values = list(values[0])
        elif len(values) == 1 and isinstance(values[0], str):
            values = listed_in(values[0]) or list(values[0].split(self.separator))
        values = [turn_text(value) for value in values]
        if not all(value is None or isinstance(value, str) for value in values):
            raise ValueError("context is neither text nor a list of turns")
        return tuple(value.strip() for value in values if value and value.strip())


def listed_in(cell: str) -> list[Any]:
    """The list of turns that a cell's text is, as JSON or as Python prints lists and arrays; empty for other text."""
    if cell.strip()[:1] == "[":
        for parsed in (json.loads, _printed):
            with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError, TokenError):
                turns = parsed(cell.strip())
                if isinstance(turns, list) and all(isinstance(turn, str | dict) for turn in turns):
                    return turns
    return []


def _printed(cell: str) -> Any:
    """What Python printed; an array of texts, which has no commas between them, as a list."""
    value = ast.literal_eval(cell)
    if not isinstance(value, list) or not all(isinstance(turn, str) for turn in value):
        return value
    tokens = generate_tokens(io.StringIO(cell).readline)
    return [ast.literal_eval(token.string) for token in tokens if token.type == STRING]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold which field.

    scores: criterion → its columns, one a rater. single: each other field → its column. unnamed_raters: whether a
    column is called like one of raters, but has another value in nearly every row. told: a sentence about it all.
    """

    context: ContextColumns
    scores: Mapping[str, tuple[str, ...]]
    single: Mapping[str, str]
    decimal: str = "."
    unnamed_raters: bool = False
    told: str = ""

    def with_point(self, cell: Any) -> Any:
        """A score's cell with a point before decimals."""
        return cell.replace(self.decimal, ".") if isinstance(cell, str) and self.decimal != "." else cell

    @classmethod
    def of(
        cls,
        path: Path,
        header: Sequence[str],
        rows: Sequence[Mapping[str, Any]],
        mapping: Mapping[str, str] | None,
        aliases: Mapping[str, Sequence[str]] = ALIASES,
    ) -> Columns:
        """AnnotationError on a repeated column, a mapped column that is missing, or a needed field without one."""
        fields = {name: columns for name, columns in checked(mapping).items() if name not in SIGNS}
        named = [column for column in header if column]
        check_header(path, named, fields, AnnotationError)
        aliases = {name: aliases[name] for name in OF_RESPONSES if name in aliases and name not in fields}
        if any(name.startswith(SCORE_OF) for name in fields):
            aliases.pop("score", None)
        mapped = {column for columns in fields.values() for column in columns}
        known = known_columns(aliases, named, rows, mapped, _NEEDED)
        fields |= {name: (column,) for name, column in known.items()}
        scores = {name.removeprefix(SCORE_OF): fields[name] for name in fields if name.startswith(SCORE_OF)}
        scores |= {column: (column,) for column in fields.get("score", ())}
        missing = [name for name in _NEEDED if name not in fields and (name != "score" or not scores)]
        if missing:
            raise unknown_columns(path, named, missing, AnnotationError)
        if "criterion" in fields and len(scores) > 1:
            raise AnnotationError(
                f"{path}: with a criterion column a row has one score, not {len(scores)} ({', '.join(scores)}); "
                "name one with --map score=COLUMN"
            )
        single = {name: columns[0] for name, columns in fields.items()}
        context = ContextColumns.of(fields["context"], mapping)
        last_parts = {normalise(column.rpartition(".")[2]) for column in named}
        unnamed = "rater" not in fields and not last_parts.isdisjoint(ALIASES["rater"])
        decimal = (mapping or {}).get("decimal", ".")
        used = {column for columns in fields.values() for column in columns}
        unused = [column for column in header if column not in used]
        return cls(context, scores, single, decimal, unnamed, told(fields, unused))
