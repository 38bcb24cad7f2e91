"""docs/sql.md is what its generator writes, and what it shows works."""

from __future__ import annotations

import re
import shlex
import struct
from typing import Any

import pandas as pd
import polars as pl
import pytest

from ssrem.cli.main import main
from ssrem.report.sql_docs import renewed
from ssrem.schemas import TABLES
from ssrem.sql import queries
from support.paths import ROOT
from support.small_home import Made

PAGE = ROOT / "docs" / "sql.md"
CATALOG = "warehouse/catalog.duckdb"


def shown(language: str) -> list[str]:
    """The blocks of code of the page's own prose."""
    prose = PAGE.read_text().split("## Sixteen questions")[0]
    return re.findall(rf"```{language}\n(.*?)```", prose, re.DOTALL)


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert renewed(page) == page, (
        "docs/sql.md is not what schemas/ and sql/questions/ say; make docs renews it"
    )
    assert all(f"\n### `{name}`\n" in page for name in TABLES)
    assert all(f"\n{question.text}\n" in page for question in queries("questions").values())


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="begin tables"):
        renewed("# Nothing to fill\n")


def test_the_catalog_opens_in_one_line_each(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = shown("python")
    imported, *lines = [line for line in block.splitlines() if line]
    assert imported == "import duckdb" and len(lines) == 3
    assert all(line.count(CATALOG) == 1 for line in lines)
    names: dict[str, Any] = {}
    exec(block.replace(CATALOG, str(made.home.catalog)), names)
    for frame, kind in (("polars_frame", pl.DataFrame), ("pandas_frame", pd.DataFrame)):
        assert isinstance(names[frame], kind)
        assert len(names[frame]) == 24 and "gt_above" in names[frame].columns
    assert "gt_above" in capsys.readouterr().out


def test_shells_of_the_first_version_open_the_catalog(made: Made) -> None:
    magic, version = struct.unpack_from("<4sQ", made.home.catalog.read_bytes()[:20], 8)
    assert (magic, version) == (b"DUCK", 64)  # that of 1.0, which all later ones read


def test_the_commands_are_what_ssrem_takes(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = [block for block in shown("sh") if block.startswith("ssrem")]
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    queries = [command[1:] for command in commands if len(command) > 2 and "<" not in command]
    assert len(queries) == 3
    for arguments in queries:
        assert main([*arguments, "--home", str(made.home.root)]) == 0
        assert not {"gt_above", "Rand", "spearman"}.isdisjoint(re.findall(r"\w+", capsys.readouterr().out))
