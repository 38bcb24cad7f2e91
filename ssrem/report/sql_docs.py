"""The generated parts of docs/sql.md, from `schemas/` and `sql/questions/`; `make docs` renews them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import fill

from ssrem.schemas import TABLES, VIEWS
from ssrem.schemas.contract import Table, View
from ssrem.sql import queries


def renewed(page: str) -> str:
    """The page with the text between `<!-- begin NAME -->` and `<!-- end NAME -->` generated anew.

    Raises ValueError unless the page has exactly one such pair for every part.
    """
    for name, text in PARTS.items():
        place = re.compile(rf"(?<=<!-- begin {name} -->\n).*?(?=<!-- end {name} -->)", re.DOTALL)
        if len(place.findall(page)) != 1:
            raise ValueError(f"one pair of <!-- begin {name} --> and <!-- end {name} --> is needed")
        written = f"\n{text()}\n\n"
        page = place.sub(lambda _, written=written: written, page)  # type: ignore[misc]
    return page


def _tables() -> str:
    tables: list[Table | View] = [*TABLES.values(), *VIEWS.values()]
    listed = [f"| [`{t.name}`](#{t.name}) | {t.grain.removeprefix('One row is ')} |" for t in tables]
    overview = "\n".join(["| table | one row is |", "|---|---|", *listed])
    return "\n\n".join([overview, *(_table(t) for t in tables)])


def _table(table: Table | View) -> str:
    lines = [f"### `{table.name}`", "", table.grain, "", "| column | type | what |", "|---|---|---|"]
    for column in table.columns:
        name = f"**`{column.name}`**" if column.name in table.key else f"`{column.name}`"
        explained = "null" in column.meaning or not column.nullable
        meaning = column.meaning if explained else f"{column.meaning}; may be null"
        lines.append("| {} | {} | {} |".format(name, column.type, meaning.replace("|", "\\|")))
    return "\n".join(lines)


def _questions() -> str:
    return "\n\n".join(
        f"### {number}. {question.title}\n\n{fill(question.notes, 120)}\n\n```sql\n{question.text}\n```"
        for number, question in enumerate(queries("questions").values(), 1)
    )


PARTS: dict[str, Callable[[], str]] = {"tables": _tables, "questions": _questions}


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
