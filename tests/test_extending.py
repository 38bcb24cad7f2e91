"""Each example of docs/extending.md, written to the file that the page names, registered by the page's line and run."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pytest

from ssrem.annotated_sets import read_set
from ssrem.cli.main import main
from ssrem.encoders import load_encoder, load_saved
from ssrem.errors import EvaluatorError, SsremError
from ssrem.evaluators import evaluator_class, load_evaluator
from ssrem.evaluators.base import EvaluatorSettings
from ssrem.evaluators.bilinear import SSREM
from ssrem.negatives import load_generator
from ssrem.readers import open_dump
from ssrem.samples import Candidates, Sample
from ssrem.schemas import TABLES
from ssrem.studies import study_called
from ssrem.studies.scored import ScoredSet
from ssrem.tasks.stage.gate import check_tables
from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT
from support.small_home import called

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FILE = re.compile(r"^`(?P<path>\S+)`:\n\n```\w+\n(?P<code>.*?)```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(
    r"^In `(?P<registry>\w+)` of `(?P<path>\S+)`:\n\n```python\n(?P<line>.*)\n```$", re.MULTILINE
)

PLUG_IN = "A package of your own"
"""The section whose example is the package in examples/chat-exports, which test_plug_ins.py installs."""


class Example(NamedTuple):
    """A section of the page: the file to write, and the registry with the line to add, if there is one."""

    path: str
    code: str
    registry: tuple[str, str] | None
    line: str


def examples() -> dict[str, Example]:
    """Heading → example."""
    by_heading = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        if not section.startswith(PLUG_IN):
            (file,), line = FILE.finditer(section), LINE.search(section)
            registry = (line["path"], line["registry"]) if line else None
            example = Example(file["path"], file["code"], registry, line["line"] if line else "")
            by_heading[section.partition("\n")[0]] = example
    return by_heading


EXAMPLES = examples()


@pytest.fixture(autouse=True)
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All modules of the page, importable under their own names, and registered."""
    for example in EXAMPLES.values():
        path = tmp_path / "page" / example.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(example.code, encoding="utf-8")
        if example.registry is None:
            continue
        package = importlib.import_module(".".join(Path(example.path).parent.parts))
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(path.parent)])
        file, name = example.registry
        registry = getattr(importlib.import_module(".".join(Path(file).parent.parts)), name)
        ((key, place),) = ast.literal_eval(f"{{{example.line}}}").items()
        assert key not in registry
        monkeypatch.setitem(registry, key, place)


def test_the_page_shows_one_of_each_in_under_twenty_lines() -> None:
    kinds = (
        "reader",
        "encoder",
        "evaluator",
        "negative generator",
        "check",
        "study",
        "layout of annotated sets",
    )
    assert list(EXAMPLES) == [f"{'An' if kind[0] in 'ae' else 'A'} {kind}" for kind in kinds]
    for heading, example in EXAMPLES.items():
        assert len(example.code.splitlines()) < 20, heading
        assert not (ROOT / example.path).exists(), heading


def test_a_reader(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    dump.write_text("c1|anna|Hi there\nc1|ben|Hello | you\n", encoding="utf-8")
    rows = [row for batch in open_dump(dump, format="pipes") for row in batch.to_pylist()]
    said = [(row["conversation_id"], row["speaker"], row["text"]) for row in rows]
    assert said == [("c1", "anna", "Hi there"), ("c1", "ben", "Hello | you")]


def test_an_encoder(tmp_path: Path) -> None:
    encoder = load_encoder("letters")
    assert encoder.encode(["Abba"])[0, :2].tolist() == [2, 2]
    encoder.save(tmp_path)
    assert load_saved(tmp_path).signature == "letters"
    cosine = evaluator_class("cosine")(encoder="letters")  # type: ignore[call-arg]
    assert cosine.score([Sample(("abc",), "cba"), Sample(("abc",), "xyz")]).tolist() == pytest.approx([1, 0])


def test_an_evaluator(tmp_path: Path) -> None:
    samples = [Sample(("we like tea",), "we like coffee"), Sample(("we like tea",), ""), Sample((), "tea")]
    evaluator = evaluator_class("new-words")()
    assert evaluator.score(samples) == pytest.approx([1 / 3, np.nan, np.nan], nan_ok=True)
    assert re.fullmatch(r"new-words\|words:blanks\|source:[0-9a-f]{8}", evaluator.signature)
    evaluator.save(tmp_path)
    assert np.array_equal(load_evaluator(tmp_path).score(samples), evaluator.score(samples), equal_nan=True)


def test_a_negative_generator() -> None:
    start, stop, split = np.array([0, 0]), np.array([0, 1]), np.zeros(2, dtype=np.uint8)
    candidates = Candidates(["one two three", "yes"], np.array([0, 1]), start, stop, {}, split)
    (batch,) = load_generator("swap-2").generate(candidates, seed=1)
    assert [(one.response, one.k, one.replaced) for one in batch] == [(0, 0, 2), (0, 1, 2)]
    for negative in batch:
        assert sum(a != b for a, b in zip(negative.text.split(), ["one", "two", "three"], strict=True)) == 2


def test_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "sql", tmp_path / "sql")
    example = EXAMPLES["A check"]
    (tmp_path / example.path).write_text(example.code, encoding="utf-8")
    monkeypatch.setattr("ssrem.sql.files", lambda _: tmp_path / "sql")
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA published")
        for table in TABLES.values():
            connection.execute(table.ddl())
        connection.execute(
            "INSERT INTO negatives BY NAME SELECT 'c' AS corpus, 1 AS response_id, 'g' AS generator, 0 AS k,"
            " 'see http://x.org' AS text, 1 AS replaced, 2 AS tokens, false AS truncated"
        )
        results = check_tables(connection, "negatives", "run", [])
    failed = [result.row["expectation"] for result in results if not result.row["passed"]]
    assert failed == ["no row of generated_have_no_links: A link is recognised without reading the context."]


def test_a_study() -> None:
    study = study_called("ties")
    zeros = np.zeros(4)
    findings = study(ScoredSet(np.array([1.0, 1, 2, 3]), zeros, zeros), 0)
    assert [(finding.value, finding.n) for finding in findings] == [(0.5, 4)]
    assert (study.name, study.data, study.title) == ("ties", ScoredSet, "Tied scores")


def test_a_layout_of_annotated_sets(tmp_path: Path) -> None:
    path = tmp_path / "set.txt"
    path.write_text("Hi! => Hello there. => 4\nWhat now? => Tea. => 2.5\n", encoding="utf-8")
    annotated = read_set(path, "arrows")
    assert annotated.summary == "read as arrows: 2 responses, rated 2.5 to 4"
    assert [(row.context, row.response, row.ratings) for row in annotated.rows] == [
        (("Hi!",), "Hello there.", {"overall": (4.0,)}),
        (("What now?",), "Tea.", {"overall": (2.5,)}),
    ]


def edited(path: Path, before: str, after: str) -> None:
    """Edit a module and import it anew, as the next command does."""
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")
    sys.modules.pop("ssrem.evaluators.new_words", None)
    importlib.invalidate_caches()


def test_scores_of_an_evaluator_are_computed_anew_after_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old scores were kept, and shown as those of the edited source."""
    monkeypatch.setattr("ssrem.evaluators.BASELINES", {"length": ()})  # cosine loads a transformer
    monkeypatch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
    monkeypatch.setattr("sys.dont_write_bytecode", True)  # it tells no two edits of one second apart
    home, source = Warehouse.at(tmp_path / "home"), tmp_path / "page" / EXAMPLES["An evaluator"].path
    ratings, words = tmp_path / "people_eval.json", ["tea", "it", "coffee", "milk", "we", "soup", "bread"]
    rows = [
        {"context": ["we like tea"], "response": f"we like {word}", "annotations": {"overall": [n]}}
        for n, word in enumerate(words)
    ]
    ratings.write_text(json.dumps(rows))

    def scores() -> tuple[str, list[float]]:
        done = called("correlate", str(ratings), "--evaluator", "new-words", "--home", str(home.root))
        assert done.returncode == 0, done.stderr
        rows = home.query(
            "SELECT signature, f FROM scores INNER JOIN evaluators USING (evaluator, version) "
            "WHERE evaluator = 'new-words' AND promoted ORDER BY response_id"
        )
        return rows[0][0], [f for _, f in rows]

    first, shares = scores()
    edited(source, "invert=True", "invert=False")
    second, others = scores()
    assert second != first and others == pytest.approx([1 - share for share in shares])
    edited(source, "invert=False", "invert=True")
    assert scores() == (first, shares)
    assert home.query("SELECT max(version) FROM evaluators WHERE evaluator = 'new-words'") == [(3,)]


def test_a_value_may_be_none_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "page" / EXAMPLES["An evaluator"].path
    edited(path, "return MetricScores(np.array(new))", "return MetricScores([None], reasons=['short'])")
    scores = evaluator_class("new-words")().components([Sample(("we like tea",), "we like coffee")])
    assert np.isnan(scores.score).all() and scores.reasons.tolist() == ["short"]


@pytest.mark.parametrize(
    ("line", "instead", "says"),
    [
        (
            "(0.0, 1.0)",
            "(0.0, 0.25)",
            "^new-words gave the score 0.333333, outside of its range from 0 to 0.25",
        ),
        ("np.array(new)", "[None]", "^new-words gave the score nan .*; give a number, or NaN with a reason"),
        (
            "return MetricScores(np.array(new))",
            "self.range = (0, np.inf); return MetricScores([np.inf])",
            "^new-words gave the score inf for 'we like coffee'",
        ),
        ("np.array(new)", "['a']", "values that are no numbers"),
        (
            '"new-words"',
            '"length"',
            "is registered as 'new-words', but its `name` is 'length'; make them equal",
        ),
        (", source, engine = ", ", engine, other = ", "it lacks `source`"),
        ("class NewWords(Metric)", "class Other(Metric)", "new_words:NewWords cannot be used"),
        ("import numpy as np", "from numpy import nothing", "cannot be used: cannot import name 'nothing'"),
    ],
)
def test_what_is_no_evaluator_of_that_name_or_gives_no_score_is_refused(
    tmp_path: Path, line: str, instead: str, says: str
) -> None:
    edited(tmp_path / "page" / EXAMPLES["An evaluator"].path, line, instead)
    with pytest.raises(SsremError, match=says):
        evaluator_class("new-words")().score([Sample(("we like tea",), "we like coffee")])


def test_a_package_that_lacks_a_module_breaks_nothing_but_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited(tmp_path / "page" / EXAMPLES["An evaluator"].path, "import numpy as np", "import nowhere")
    with pytest.raises(SsremError, match=r"new_words:\w+ needs the module nowhere, which is not installed"):
        evaluator_class("new-words")
    assert main(["evaluators", "list", "--home", str(tmp_path / "home")]) == 0
    said = capsys.readouterr()
    assert "new-words is left out: " in said.err and "roberta-eval" in said.out


def test_an_evaluator_that_learns_needs_a_seed() -> None:
    class Seedless(SSREM):
        settings_model = EvaluatorSettings

    with pytest.raises(EvaluatorError, match="ssrem: EvaluatorSettings lacks the field seed"):
        Seedless()
