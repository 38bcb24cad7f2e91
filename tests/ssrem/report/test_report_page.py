"""The report in a real browser: three widths, light and dark, by keyboard, and without its script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ssrem.report.page import render
from support.browser import CONTRAST, browser, context, opened
from support.report_data import make_data

pytestmark = pytest.mark.xdist_group("browser")

__all__ = ["browser", "context"]

EVIL = "<script>alert(1)</script> & 'more' "


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report of two evaluators on two sets of 40 responses."""
    points, responses = [], []
    for dataset in ("people", "others"):
        for at in range(40):
            said = f"{EVIL * (at == 0)}Response number {at} of {dataset}" + " w" * at + "ü" * 120 * (at == 39)
            about = {"dataset": dataset, "response_id": str(at)}
            row = {"response": said, "reference": "Yes." if at % 2 else None, "system": None}
            responses.append(about | row | {"context": ["Hi!", f"And {at}?\nGo on."]})
            for name, score in (("ssrem", at * 7 % 40), ("rsrem", at * 11 % 40)):
                rating = {"criterion": "overall", "human": at / 8, "raters": 4}
                points.append(
                    about | rating | {"evaluator": name, "version": "v1", "part": "h", "score": score / 40}
                )
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(replace(make_data(), points=points, responses=responses)), encoding="utf-8")
    assert path.stat().st_size < 3_000_000
    return path.as_uri()


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 820), ("light", 1440)])
def test_it_can_be_read(browser: Any, address: str, scheme: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    wrong: list[str] = []
    page = opened(context, address, wrong)
    for unfolded in (False, True):
        if unfolded:
            page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        contrasts = page.evaluate(CONTRAST)
        assert len(contrasts) > 50
        assert [one for one in contrasts if one[1] < 4.5] == []
    context.close()
    assert wrong == []


def test_cases_are_filtered_by_keyboard(context: Any, address: str) -> None:
    wrong: list[str] = []
    page = opened(context, address, wrong)
    visible = page.locator(".case:visible")
    everything = visible.count()
    assert page.text_content("#shown") == f"{everything} cases"
    assert page.get_by_role("status").count() == 1
    page.get_by_role("combobox", name="Set", exact=True).focus()
    page.keyboard.press("ArrowDown")
    some = visible.count()
    assert page.text_content("#shown") == f"{some} of {everything} cases"
    assert 0 < some < everything
    assert set(visible.evaluate_all("all => all.map((one) => one.dataset.set)")) == {"people"}
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")  # the first evaluator
    page.keyboard.press("Tab")
    page.keyboard.type("evaluator too high")
    name = page.get_by_role("combobox", name="Evaluator").evaluate("one => one.selectedOptions[0].text")
    assert 0 < visible.count() < some
    for text in visible.locator(".pick.high").all_text_contents():
        assert text.startswith("evaluator too high: ") and name in text
    assert visible.locator(".pick.high").count() == visible.count()
    page.keyboard.press("Tab")
    page.keyboard.type("no such words")
    assert page.text_content("#shown") == f"0 of {everything} cases; show all, or ask for less"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "all => document.querySelector('#shown').textContent === all", arg=f"{everything} cases"
    )
    assert visible.count() == everything
    page.get_by_role("searchbox", name="Words").fill("ALERT people")
    assert visible.count() == 1
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    talk = visible.locator(".talk li").all_inner_texts()
    assert talk[:2] == ["Hi!", "And 0?\nGo on."]
    assert talk[2].endswith(f"{EVIL}Response number 0 of people")
    assert visible.locator(".judged tbody tr").count() == 3
    assert wrong == []


def test_numbers_are_saved_as_csv(context: Any, address: str, tmp_path: Path) -> None:
    page = opened(context, address, [])
    with page.expect_download() as download:
        page.get_by_role("link", name="scatter-ssrem-people.csv").click()
    download.value.save_as(tmp_path / "points.csv")
    lines = (tmp_path / "points.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:3] == ["response_id,human,score", "0,0,0", "1,0.125,0.175"]
    assert len(lines) == 41


def test_without_its_script_everything_is_there(browser: Any, address: str) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(address)
    assert page.locator("#filters").is_hidden()
    assert page.locator(".case:visible").count() > 20
    page.locator(".case summary").first.click()
    assert page.locator(".case .talk").first.is_visible()
    context.close()
