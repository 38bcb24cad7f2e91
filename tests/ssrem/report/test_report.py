"""The page: complete, self-contained, escaped, the same each time, and clear about missing data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from ssrem.report import figures
from ssrem.report.data import KIND_NAMES, ReportData
from ssrem.report.figures import COLOURS, Panel
from ssrem.report.page import render, template_text
from support.report_data import LISTS, correlation, make_data

pytestmark = pytest.mark.xdist_group("report")

SECTIONS = [
    *("agreement", "identification", "similarity", "scatter", "cases"),
    *("learning", "studies", "data", "gates", "provenance"),
]
WANTED = (
    """
0.432 p < 0.001 [0.250, 0.250]|0.123|0.400|812|75|the score is constant|1 of 4 correlations|same conversation
61.0%|noise ceiling 0.250|bootstrap over contexts|Votes on pairs of responses|0.710
0.8900|4,321|no text|17|2 expectations hold|name:ssrem|weights:abc|seed 1|lowest validation loss 0.333
""".strip()
    .replace("\n", "|")
    .split("|")
)
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Tags with their attributes, and the text outside style and script; complains about unbalanced tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.tags if t == tag and all(a.get(k) == v for k, v in wanted.items())]


@pytest.fixture(scope="module")
def html() -> str:
    return render(make_data())


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_sections_come_in_order_and_every_link_has_a_target(page: Page) -> None:
    assert [section["id"] for section in page.all("section")] == SECTIONS
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids)), "an id occurs twice"
    referred = {a["href"] for _, a in page.tags if "href" in a}
    referred |= {f"#{a['aria-labelledby']}" for a in page.all("section")}
    assert {target[1:] for target in referred if target and target.startswith("#")} <= set(ids)


def test_every_plot_is_shown_with_a_label(page: Page) -> None:
    plots = [div for div in page.all("div") if div.get("class") == "plot"]
    assert all(plot["role"] == "img" for plot in plots) and len(plots) == len(page.all("svg"))
    starts = [
        "Spearman correlation with 95% intervals: ssrem 0.432, rsrem 0.123, one rater 0.250",
        *[f"Share of true responses ranked above {kind}" for kind in list(KIND_NAMES)[1:]],
        "Mean f",
        "Mean f",
        "Mean similarity",
        "Score against human score with noise of N(0, 0.3), 5 responses, coef 0.200",
        "Loss",
        "attacks: context copied",
    ]
    labels = [plot["aria-label"] or "" for plot in plots]
    assert [label.startswith(start) for label, start in zip(labels, starts, strict=True)] == [True] * 12


def test_figures_are_shown_with_n_p_and_interval(page: Page) -> None:
    for wanted in WANTED:
        assert wanted in page.text, wanted


def test_the_mean_comes_first_and_the_other_aggregations_are_folded(html: str) -> None:
    mean, median = (html.index(f"Human score: {way} of the raters") for way in ("mean", "median"))
    assert html.rindex("<", 0, mean) == html.rindex("<h3>", 0, mean)
    assert html[:median].endswith("<details><summary>")
    assert mean < median


def test_nothing_is_fetched(html: str, page: Page) -> None:
    assert not re.search(r"https?://(?!www\.w3\.org/)|@import|//cdn", html)
    assert not re.search(r"url\((?!#)", html)
    allowed = ("#", "data:text/csv;", "data:image/png;")
    links = [a.get(name) or "#" for _, a in page.tags for name in ("href", "xlink:href")]
    assert not [link for link in links if not link.startswith(allowed)]
    assert not [a for _, a in page.tags if "src" in a]
    assert len(page.all("script")) == 1


def test_the_dark_scheme_has_every_colour_of_the_figures(html: str) -> None:
    """Each is a colour of `COLOURS`, which the page's style sheet replaces."""
    drawings = "".join(re.findall(r"<svg.*?</svg>", html, re.DOTALL))
    drawn = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", drawings))
    assert {COLOURS["ink"], COLOURS["accent"]} < drawn <= set(COLOURS.values())
    dark, light = (css.partition("}")[0] for css in template_text("page.css").split("@media")[1::-1])
    for name, colour in COLOURS.items():
        assert f"--{name}: {colour};" in light and f"--{name}: #" in dark
        for part in ("fill", "stroke"):
            assert f'[style*="{part}: {colour}"] {{ {part}: var(--{name}) !important; }}' in html


def test_same_data_same_bytes(html: str) -> None:
    drawn: dict[str, Any] = {name: [] for name in ("identification", "learning_curves", "studies", "points")}
    again = render(replace(make_data(), **drawn))  # these have most of the drawings, which take long
    first, second = (re.findall("<section.*?</section>", page, re.DOTALL) for page in (html, again))
    same = [name for name, *sections in zip(SECTIONS, first, second, strict=True) if len(set(sections)) == 1]
    assert same == ["agreement", "similarity", "data", "gates", "provenance"]


def test_texts_of_the_data_are_escaped() -> None:
    evil, data = '<script>alert("x")</script>$\\frac{$', make_data()
    hostile: dict[str, Any] = {
        name: [
            {k: evil if isinstance(v, str) and k not in ("kind", "split") else v for k, v in row.items()}
            for row in getattr(data, name)[:1]
        ]
        for name in LISTS
    }
    html = render(ReportData(evil, evil, evil, **hostile))
    assert len(Page(html).all("script")) == 1
    assert "<script>alert" not in html
    assert html.count("&lt;script&gt;") > 20


def test_without_data_every_section_says_what_fills_it() -> None:
    page = Page(render(ReportData("now", "0.1.0", "warehouse")))
    assert [section["id"] for section in page.all("section")] == SECTIONS
    assert page.all("svg") == []
    assert len(page.all("p", **{"class": "empty"})) == 12
    for command in ("run", "ingest SOURCE", "tables", "train", "correlate FILE", "study attacks"):
        assert f"ssrem {command}" in page.text


def _once(figure: Callable[..., Any]) -> Callable[..., Any]:
    """The figure, drawn once of rows and once of none."""
    drawn: dict[bool, Any] = {}
    return lambda rows, *how: drawn.get(bool(rows)) or drawn.setdefault(bool(rows), figure(rows, *how))


def test_any_list_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    # A drawing shows one list, so those of the others are what they are in a whole page; to draw them takes long.
    monkeypatch.setattr(Panel, "svg", lambda _: "<svg></svg>")
    for name in (
        *("forest", "chance", "identification", "similarity"),
        *("sources", "scatter", "learning", "studies"),
    ):
        monkeypatch.setattr(figures, name, _once(getattr(figures, name)))
    for field in LISTS:
        without: dict[str, Any] = {field: []}
        page = Page(render(replace(make_data(), **without)))
        assert [section["id"] for section in page.all("section")] == SECTIONS, field


def test_what_judges_took_is_shown_where_one_was_asked(html: str) -> None:
    row = {"evaluator": "judge", "version": 1, "dataset": "persona", "criterion": "overall", "spearman": 0.5}
    row |= {"answers": 900, "without_score": 3, "tokens": 180_000.0, "seconds": 61.0}
    assert "What judges took" not in html
    page = render(ReportData("now", "0.1.0", "warehouse", correlations=[correlation()], judgments=[row]))
    for shown in ("What judges took", "180,000", "0.500", ">3</td>"):
        assert shown in page


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_missing_figures_are_dashes_and_never_nan(nothing: float | None) -> None:
    data = make_data()
    gone: dict[str, Any] = {
        name: [
            {k: nothing if isinstance(v, float) else v for k, v in row.items()} for row in getattr(data, name)
        ]
        for name in ("identification", "set_similarity", "correlations", "learning_curves", "points")
    }
    text = Page(render(replace(data, **gone))).text
    assert not re.search(r"\b(nan|None)\b", text)
    assert "–" in text


def test_a_page_of_a_large_home_folder_stays_small() -> None:
    about = {"version": 1, "criterion": "overall", "raters": 3, "part": "h"}
    points = [
        {**about, "evaluator": "e", "dataset": f"d{d}", "response_id": str(i), "human": i % 5, "score": i * 7 % 11}
        for d in range(7) for i in range(1_800)
    ]  # fmt: skip
    text = {"context": ["Ünï " * 200] * 9, "response": "well " * 200, "reference": None, "system": "s"}
    responses = [{**text, "dataset": f"d{d}", "response_id": str(i)} for d in range(7) for i in range(1_800)]
    data = make_data()
    many: dict[str, Any] = {
        **{"points": points, "responses": responses, "runs": list(data.runs) * 400},
        **{"quality": list(data.quality) * 300, "correlations": list(data.correlations) * 300},
        # A figure each, of any home folder.
        **{name: [] for name in ("identification", "learning_curves", "set_similarity", "studies")},
    }
    html = render(replace(data, **many))
    page = Page(html)
    assert len(html.encode()) < 3_000_000
    links = [a["href"] or "" for a in page.all("a", download="scatter-e-d0.csv")]
    assert links[0].count("%0A") == 1 + 12_000 // 7
    assert "n = 1,800; 1,714 of them shown, drawn at random" in page.text
    assert '400 more are in the table: ssrem sql "FROM correlations"' in page.text
    assert '100 more are in the table: ssrem sql "FROM runs"' in page.text
    assert len(page.all("details", **{"class": "case"})) > 30
