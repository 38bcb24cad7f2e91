"""The raters' page in a real browser: keys, what it keeps, what it saves, and that it can be used by everyone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ssrem.annotation.batch import Batch, BatchPlan, Context, contexts_needed, draw_batch
from ssrem.annotation.sheets import Answer, read_answers, render
from support.browser import CONTRAST, browser, context, opened

pytestmark = pytest.mark.xdist_group("browser")

__all__ = ["browser", "context"]

PLAN = BatchPlan(contexts=3, raters=2, redundancy=2, checks=1)
SAID = "A <b>bold</b> & 'quoted' answer \u2028 🙂 " + "w" * 90


@pytest.fixture(scope="module")
def batch() -> Batch:
    turns = [(("A", f"question {n}"), ("B", "go on\nplease")) for n in range(contexts_needed(PLAN))]
    contexts = [Context(n, said, "A", f"{SAID} {n}") for n, said in enumerate(turns)]
    return draw_batch("c", "test", PLAN, contexts, {"bot": [f"bot {n}" for n in range(PLAN.contexts)]})


@pytest.fixture
def address(batch: Batch, tmp_path: Path) -> str:
    (tmp_path / "page.html").write_text(render(batch), encoding="utf-8")
    return (tmp_path / "page.html").as_uri()


def saved(page: Any, key: str, path: Path) -> Path:
    with page.expect_download() as download:
        page.keyboard.press(key)
    download.value.save_as(path)
    return path


def test_a_rater_answers_by_keyboard_leaves_comes_back_and_saves(
    context: Any, address: str, batch: Batch, tmp_path: Path
) -> None:
    wrong: list[str] = []
    sheet = batch.sheets["rater-2"]
    page = opened(context, address, wrong)
    assert page.is_disabled("#begin")
    page.keyboard.press("3")  # no sheet, no score
    page.select_option("#sheet", "rater-2")
    page.focus("#begin")
    page.keyboard.press("Enter")
    for number, item in enumerate(sheet[:3], 1):
        assert page.text_content("#place") == f"{number} of 7"
        assert page.text_content("#response").endswith(batch.by_id[item].response)
        shown = page.locator("#turns li").all_text_contents()
        assert shown == [f"{seat}: {said}" for seat, said in batch.by_id[item].context.turns]
        page.keyboard.press(str(number))
    for key in ("0", "6", "9", "x", "Control+2"):
        page.keyboard.press(key)
    assert page.text_content("#place") == "4 of 7"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.text_content("#place") == "2 of 7"
    assert page.locator("[aria-pressed=true]").all_text_contents() == ["2"]
    page.keyboard.press("5")  # a score is changed, not added
    assert page.text_content("#done") == "3 scored"
    assert page.locator("#progress").evaluate("bar => [bar.value, bar.max]") == [3, 7]
    page.close()

    page = opened(context, address + "#rater-2", wrong)  # a link may name the sheet
    assert page.text_content("#kept") == "3 of 7 are scored already."
    assert page.text_content("#begin") == "Go on"
    page.click("#begin")
    assert page.text_content("#place") == "4 of 7"
    part = saved(page, "s", tmp_path / "part.json")
    assert len(read_answers([part], batch)) == 3
    page.keyboard.press("ArrowRight")
    for _ in range(3):
        page.keyboard.press("4")
    assert page.text_content("#left").startswith("1 of 7 responses have no score")
    page.click("#return")
    assert page.text_content("#place") == "4 of 7"
    page.click("[data-score='1']")
    page.click("#open")
    assert page.text_content("#end-title") == "Thank you"
    whole = saved(page, "S", tmp_path / "whole.json")
    assert page.text_content("#said") == f"Saved 7 of 7 scores as answers-{batch.id}-rater-2.json."
    scores = (1, 5, 3, 1, 4, 4, 4)
    expected = [Answer("rater-2", item, score) for item, score in zip(sheet, scores, strict=True)]
    assert read_answers([whole], batch) == expected
    assert wrong == []


def test_sheets_and_batches_do_not_mix_and_what_is_kept_is_checked(
    context: Any, address: str, batch: Batch
) -> None:
    wrong: list[str] = []
    page = opened(context, address, wrong)
    page.select_option("#sheet", "rater-1")
    page.click("#begin")
    page.keyboard.press("2")
    page.reload()
    page.select_option("#sheet", "rater-2")
    assert page.text_content("#begin") == "Start"
    first = batch.sheets["rater-2"][0]
    key = f"ssrem {batch.id} rater-2"
    for broken in ("{", "[3]", json.dumps({"i99": 3, first: 9}), "null"):
        page.evaluate("([key, text]) => localStorage.setItem(key, text)", [key, broken])
        page.select_option("#sheet", "rater-1")
        assert page.text_content("#begin") == "Go on"
        page.select_option("#sheet", "rater-2")
        assert page.text_content("#begin") == "Start"
    assert wrong == []


def test_without_storage_it_warns_and_still_saves(
    context: Any, address: str, batch: Batch, tmp_path: Path
) -> None:
    wrong: list[str] = []
    context.add_init_script("Storage.prototype.setItem = () => { throw new Error('full') }")
    page = opened(context, address, wrong)
    page.select_option("#sheet", "rater-1")
    page.click("#begin")
    page.keyboard.press("2")
    assert "does not keep your scores" in page.text_content("#said")
    answers = saved(page, "s", tmp_path / "kept.json")
    assert read_answers([answers], batch) == [Answer("rater-1", batch.sheets["rater-1"][0], 2)]


@pytest.mark.parametrize(("scheme", "width"), [("light", 320), ("dark", 1280)])
def test_it_can_be_read_and_reached(browser: Any, address: str, scheme: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 700}, color_scheme=scheme)
    page = opened(context, address, [])

    def legible() -> None:
        contrasts = page.evaluate(CONTRAST)
        assert len(contrasts) > 5
        assert [one for one in contrasts if one[1] < 4.5] == []
        assert page.evaluate("document.documentElement.scrollWidth") == width

    legible()
    page.select_option("#sheet", "rater-1")
    page.click("#begin")
    for _ in range(6):
        page.keyboard.press("2")
        page.keyboard.press("ArrowLeft")
        legible()
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    reached = []
    for _ in range(8):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.score || document.activeElement.id"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        assert page.evaluate("document.activeElement.getBoundingClientRect().height") >= 44
    assert reached == ["1", "2", "3", "4", "5", "back", "next", "open"]
    assert page.get_by_role("button", name="1 of 5, not at all").count() == 1
    assert page.get_by_role("group", name=PLAN.question).count() == 1
    assert page.get_by_label("Responses scored").count() == 1
    page.reload()
    assert page.get_by_label("Your sheet").count() == 1
    context.close()


def test_two_questions_are_answered_one_after_the_other(context: Any, tmp_path: Path) -> None:
    plan = BatchPlan(contexts=2, raters=1, redundancy=1, checks=0, on_topic=True)
    contexts = [Context(n, (("A", f"question {n}"),), "B", f"answer {n}") for n in range(2)]
    batch = draw_batch("c", "test", plan, contexts, {})
    (tmp_path / "two.html").write_text(render(batch), encoding="utf-8")
    wrong: list[str] = []
    page = opened(context, (tmp_path / "two.html").as_uri() + "#rater-1", wrong)
    page.click("#begin")
    assert page.locator("legend").all_text_contents() == [PLAN.question, "How on-topic is the response?"]
    page.keyboard.press("4")
    assert page.text_content("#place") == "1 of 2" and page.text_content("#done") == "0 scored"
    page.keyboard.press("2")
    assert page.text_content("#place") == "2 of 2" and page.text_content("#done") == "1 scored"
    page.locator("fieldset").nth(1).locator("[data-score='5']").click()  # in any order
    assert page.text_content("#place") == "2 of 2"
    page.keyboard.press("1")
    page.keyboard.press("ArrowLeft")
    assert page.locator("[aria-pressed=true]").all_text_contents() == ["4", "2"]
    first, second = batch.sheets["rater-1"]
    whole = saved(page, "s", tmp_path / "two.json")
    assert read_answers([whole], batch) == [Answer("rater-1", first, 4, 2), Answer("rater-1", second, 1, 5)]
    assert wrong == []
