"""How numbers are written, and tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import pytest

from ssrem.report import text as numbers
from ssrem.report.text import Strong, Table, csv_text, latex, latex_text, markdown


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (numbers.real(-0.12345), "−0.123"),
        (numbers.real(0.00012), "1.2e−04"),
        (numbers.real(0), "0.000"),
        (numbers.real(None), "–"),
        (numbers.percent(0.9999), "> 99%"),
        (numbers.percent(1.0), "100%"),
        (numbers.percent(0.005), "< 1%"),
        (numbers.fixed(-0.001), "0.00"),
        (numbers.p_value(0.0), "p\N{NO-BREAK SPACE}<\N{NO-BREAK SPACE}0.001"),
        (numbers.p_value(0.05), "p\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.050"),
        (numbers.interval(0.1, 0.2), "[0.100, 0.200]"),
        (numbers.interval(None, 0.2), ""),
        (numbers.count(1234567), "1,234,567"),
        (numbers.count_range([30, 29, 30]), "29–30"),
        (numbers.count_range([]), "–"),
        (numbers.plain({"loss": 1.5, "epochs": 1200}), "loss 1.500, epochs 1,200"),
        (numbers.plain(True), "yes"),
        (numbers.signed(-3.4), "−3"),
        (numbers.signed(0.0123, 3), "+0.012"),
        (numbers.signed(None), "–"),
    ],
)
def test_figures_are_written_alike(written: str, expected: str) -> None:
    assert written == expected


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a_b & 50% $x$ #1 {z}", r"a\_b \& 50\% \$x\$ \#1 \{z\}"),
        ("\\frac~^", r"\textbackslash{}frac\textasciitilde{}\textasciicircum{}"),
        ("p\N{NO-BREAK SPACE}<\N{NO-BREAK SPACE}0.001", r"p~\textless{}~0.001"),
        ("−0.5 – x", "$-$0.5 -- x"),
        ("--seed---", "-{}-seed-{}-{}-"),
        ("two\nlines\x00", "two lines "),
        ("ρ α κ 김 é", r"$\rho$ $\alpha$ $\kappa$ 김 é"),
    ],
)
def test_latex_prints_text_as_it_is(text: str, written: str) -> None:
    assert latex_text(text) == written


def test_a_bracket_or_star_after_a_row_is_no_option() -> None:
    table = Table("x y", "c", 1, ["[n]", "b"], [["*", "1"], [Strong("[a]"), "2"]], [])
    text = latex(table)
    assert r"    {}[n] & b \\" in text
    assert r"    {}* & 1 \\" in text
    assert r"    \textbf{[a]} & 2 \\" in text
    assert r"\label{tab:x-y}" in text


def test_markdown_prints_text_as_it_is() -> None:
    table = Table("t", "c", 1, ["a|b"], [["<b>*x*</b>\nnew"]], [])
    assert markdown(table).splitlines()[2:] == ["| a\\|b |", "|---|", "| \\<b\\>\\*x\\*\\</b\\> new |"]


def test_csv_is_whole_and_nothing_is_nan() -> None:
    rows = [{"a": 0.123456789, "b": float("nan"), "c": 'x,"y"\n', "d": None}]
    assert csv_text(rows, ("a", "b", "c", "d")) == 'a,b,c,d\n0.123456789,,"x,""y""\n",\n'
