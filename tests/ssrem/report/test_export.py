"""Figures and tables for papers: all there, readable by what reads them, names as text."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ssrem.report.export import INDEX, export, tables, unique
from ssrem.report.text import Strong, file_name, latex, markdown
from support.report_data import LISTS, correlation, make_data

FIGURES = {
    *("agreement-persona-overall", "identification-ssrem-talk", "true-above-talk-SC", "similarity-talk"),
    *("scatter-ssrem-persona", "learning-ssrem", "study-attacks-talk"),
}

pytestmark = pytest.mark.xdist_group("report")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    figures, data = tmp_path_factory.mktemp("figures") / "new", make_data()
    few = replace(
        data, identification=data.identification[:2]
    )  # of one evaluator, and one kind beside the truth
    assert sorted(export(few, figures)) == sorted(figures.iterdir())
    return figures


def test_every_figure_is_there_in_each_format_with_its_numbers(folder: Path) -> None:
    for suffix in ("svg", "png"):
        assert {path.stem for path in folder.glob(f"*.{suffix}")} == FIGURES
    for name in FIGURES:
        drawing = (folder / f"{name}.svg").read_text(encoding="utf-8")
        assert ElementTree.fromstring(drawing).tag == "{http://www.w3.org/2000/svg}svg"
        png = (folder / f"{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG")
        assert int.from_bytes(png[16:20], "big") == round(3.7 * 300)
        with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as handle:
            assert list(csv.DictReader(handle))
    index = (folder / INDEX).read_text(encoding="utf-8")
    assert all((folder / link).exists() for link in re.findall(r"\]\(([^)]+)\)", index))
    assert all(f"## {name}\n" in index for name in FIGURES)


def test_every_table_is_there_in_each_format(folder: Path) -> None:
    names = {path.stem for path in folder.glob("*.tex")}
    for suffix in ("md", "csv"):
        assert names == {path.stem for path in folder.glob(f"table-*.{suffix}")}
    assert names == {f"table-{name}" for name in (
        *("agreement", "correlations", "identification", "set-similarity", "regressions", "learning-curves"),
        *("corpora", "quarantine", "gates", "evaluators", "runs", "study-attacks-talk"),
    )}  # fmt: skip
    for name in names:
        text = (folder / f"{name}.tex").read_text(encoding="utf-8")
        (columns,) = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", text)
        rows = [line for line in text.splitlines() if line.endswith(r" \\")]
        assert len(rows) > 1
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns)}


def test_the_same_data_give_the_same_files(folder: Path, tmp_path: Path) -> None:
    names = ("similarity-talk.svg", "similarity-talk.png", "table-set-similarity.tex")
    only: dict[str, Any] = {name: [] for name in LISTS if name != "set_similarity"}
    export(replace(make_data(), **only), tmp_path)
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_the_table_of_agreement_has_a_row_a_score_and_a_column_a_set() -> None:
    figures: dict[str, Any] = {"spearman_p": 0.001}
    rows = [
        correlation(dataset="one", spearman=0.5, **figures),
        correlation(dataset="two", spearman=0.1, spearman_low=-0.1, spearman_high=0.3, **figures),
        correlation(evaluator="rsrem", dataset="one", spearman=0.25, **figures),
        correlation(evaluator="rsrem", dataset="two", spearman=None, spearman_p=None, outcome="constant"),
        correlation(dataset="one", aggregation="median", spearman=0.9, **figures),
    ]
    data = replace(make_data(), correlations=rows)
    table = tables(data)[0]
    assert table.headings == ["Evaluator", "Score", "one, overall", "two, overall"]
    assert table.body == [
        ["ssrem", "h", "0.500", "0.100†"],
        ["rsrem", "h", "0.250", "–"],
        ["noise ceiling", "", "0.250", "0.250"],
    ]
    assert [[type(cell) is Strong for cell in row[2:]] for row in table.body[:2]] == [[True] * 2, [False] * 2]
    assert r"ssrem & h & \textbf{0.500} & \textbf{0.100\textdagger{}} \\" in latex(table)
    assert "| ssrem | h | **0.500** | **0.100†** |" in markdown(table)


def test_names_of_files_are_safe_and_never_the_same() -> None:
    assert file_name("../a b", "c/d") == "_a_b-c_d"
    assert file_name("...") == "figure"
    assert file_name("字" * 99) == "字" * 40
    used: set[str] = set()
    given = [unique(name, used) for name in ("a_b", "a_b", "A_B", "a_b-2")]
    assert given == ["a_b", "a_b-2", "A_B-3", "a_b-2-2"]
