"""The table of speed: measured rows replace the old ones, and the page has the rows that the command knows."""

from __future__ import annotations

from benchmarks.speed import BEGIN, END, PAGE, ROWS, number, written


def test_measured_rows_replace_the_old_ones() -> None:
    table = "| what | against | measured |\n|---|---|---|\n| a | b | 1 |"
    page = f"before\n\n{BEGIN}\n\n{table}\n\n{END}\nafter\n"
    changed = written(page, {"a": "| a | b | 2 |", "new": "| new | | 3 |"})
    assert changed == page.replace("| a | b | 1 |", "| a | b | 2 |\n| new | | 3 |")
    assert written(changed, {}) == changed


def test_the_page_has_the_table() -> None:
    assert written(PAGE.read_text(encoding="utf-8"), {}) == PAGE.read_text(encoding="utf-8")
    assert {row.what for row in ROWS.values() if row.quick}


def test_the_last_number_of_a_name_is_taken() -> None:
    assert number("ratio", "ratio 1.5, ratio 2.25\ngrowth: 2.1 times") == "2.25"
    assert number("growth", "ratio 2\ngrowth: 2.1 times") == "2.1"
