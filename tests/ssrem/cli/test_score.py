"""`ssrem score`: responses without a score are nulls with a reason, and the evaluator in use is named."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from ssrem.cli.main import main
from ssrem.evaluators import BEST_PACKAGED, best_packaged, load_evaluator
from ssrem.extras import EXTRA_OF
from ssrem.samples import Sample

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

ROWS: list[dict[str, Any]] = [
    {"id": 7, "context": ["Any pets?"], "response": "Two cats", "reference": "Two cats"},
    {"id": 5, "context": ["Any pets?"], "response": " "},
    {"id": 6, "context": [], "response": "Two cats"},
    {"id": 4, "context": ["Any pets?"], "response": ["Two", "cats"]},
]


@pytest.fixture
def responses(tmp_path: Path, monkeypatch: Patch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSREM_HOME", str(tmp_path / "home"))
    (tmp_path / "x.json").write_text(json.dumps(ROWS))
    return "x.json"


@pytest.fixture
def best(monkeypatch: Patch) -> str:
    """The best that is installed, where what the blends need is not."""
    monkeypatch.setitem(EXTRA_OF, "no_such_package", "lm")
    for larger in ("blend-base", "blend"):
        monkeypatch.setitem(BEST_PACKAGED, larger, ("no_such_package",))
    assert best_packaged()[0] == "blend-fast"
    monkeypatch.setitem(BEST_PACKAGED, "blend-fast", ("no_such_package",))
    return "ssrem"


@pytest.mark.parametrize(
    ("evaluator", "reasons", "counted"),
    [
        ("length", [None, "empty response", None], "empty response 1, malformed row 1"),
        ("cosine", [None, "empty response", "empty context"], "empty response 1, empty context 1, malformed"),
        ("rouge-l", [None, "empty response", "no reference"], "empty response 1, no reference 1, malformed"),
    ],
)
def test_what_cannot_be_scored_is_null_with_a_reason(
    responses: str, evaluator: str, reasons: list[str | None], counted: str, capsys: Capture
) -> None:
    assert main(["score", responses, "--evaluator", evaluator, "--json"]) == 0
    said = capsys.readouterr()
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert [(row["row"], row["id"]) for row in rows] == [(1, "7"), (2, "5"), (3, "6"), (4, "4")]
    assert [row["reason"] for row in rows] == [*reasons, "malformed row: response is not text"]
    assert [row["score"] is None for row in rows] == [row["reason"] is not None for row in rows]
    n = reasons.count(None)
    assert f"scored {n} of 4 responses of x.json with {evaluator}; without a score: {counted}" in said.err
    assert "malformed row 1 (the first: row 4" in said.err
    assert main(["score", responses, "--evaluator", evaluator]) == 0
    table = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert table[0] == ["row", "id", "score", "f", "g", "h", "reason"]
    assert [line[2] == "" for line in table[1:]] == [row["score"] is None for row in rows]


def test_the_file_of_responses_is_not_written_over(responses: str, capsys: Capture) -> None:
    before = Path(responses).read_text()
    assert main(["score", responses, "--evaluator", "length", "--output", f"./{responses}"]) == 2
    assert "--output x.json is a file that is read; choose another" in capsys.readouterr().err
    assert Path(responses).read_text() == before


def test_where_not_all_have_a_reference_it_is_said_that_scores_are_f(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"context": "Any pets?", "response": "Two cats", "reference": one} for one in ("A dog", None)]
    for given, says in ((rows, True), (rows[:1], False), (rows[1:], False)):
        (tmp_path / "y.json").write_text(json.dumps(given))
        assert main(["score", "y.json", "--evaluator", "ssrem"]) == 0
        said = capsys.readouterr().err
        assert ("their score is f, since h needs a reference: 1 have one" in said) is says
        assert "scoring with the packaged ssrem" in said and not Path("warehouse").exists()


def test_texts_that_are_cut_are_counted(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"context": "Any pets?", "response": text} for text in ("Two cats", "Two cats " * 300)]
    (tmp_path / "y.json").write_text(json.dumps(rows))
    assert main(["score", "y.json", "--evaluator", "cosine", "--json"]) == 0
    said = capsys.readouterr()
    assert [json.loads(line)["truncated"] for line in said.out.splitlines()] == [False, True]
    assert "with cosine; read in part, as context or response is too long: 1" in said.err


def test_one_response(responses: str, capsys: Capture) -> None:
    arguments = ["score", "--context", "Hi!", "--context", "Any pets?", "--evaluator", "length", "--response"]
    assert main([*arguments, "Two cats"]) == 0
    assert capsys.readouterr().out == "1.098612\n"
    lines = ["score", "--context", "Hi!\n\nAny pets?", "--evaluator", "cosine", "--response", "Two cats"]
    turns = ["score", "--context", "Hi!", "--context", "Any pets?", *lines[3:]]
    assert main(lines) == main(turns) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert main([*arguments, " "]) == 1
    assert capsys.readouterr().out == "no score: empty response\n"
    assert main(["score", "--context", "", "--response", "Two cats", "--evaluator", "cosine"]) == 1
    assert capsys.readouterr().out == "no score: empty context\n"
    assert main([*arguments, "Two cats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["score"] == pytest.approx(1.098612, abs=1e-6)


def test_the_best_that_is_installed_is_used_and_named(
    responses: str, best: str, capsys: Capture, monkeypatch: Patch
) -> None:
    found, missing = best_packaged()
    assert found == best and missing["blend"] == ["no_such_package"]
    assert main(["score", responses]) == 0
    assert f"scoring with {best}, as packaged" in (error := capsys.readouterr().err)
    assert "blend needs pip install 'ssrem[lm]'" in error
    monkeypatch.setitem(BEST_PACKAGED, "blend-base", ("json",))
    assert best_packaged() == ("blend-base", {"blend": ["no_such_package"]})


@pytest.mark.parametrize("name", ["blend-fast", pytest.param("blend", marks=pytest.mark.slow)])
def test_an_empty_side_is_null_and_f_tells_degrees(name: str) -> None:
    """Nonsense reaches neither end of the range, and a text of 20,000 words has a score."""
    if name in best_packaged()[1]:
        pytest.skip(f"what {name} needs is not installed")
    evaluator = load_evaluator(name)
    odd = ["asdf qwer zxcv", "!!!! ????", "the the the", "\U0001f600" * 40, "x" * 5_000, "word " * 20_000]
    samples = [Sample(("Any pets?",), text) for text in ("Two cats", *odd)]
    samples += [Sample((odd[0],), "Two cats"), Sample((odd[0],), odd[0]), Sample((odd[-1],), "Two cats")]
    scores = evaluator.score([Sample((), "Two cats"), Sample(("Any pets?",), " \n"), *samples])
    assert scores[:2].tolist() == pytest.approx([float("nan")] * 2, nan_ok=True)
    low, high = evaluator.range
    assert (scores[2:] > low).all() and (scores[2:] < high).all()
    assert (abs(scores[2:] - high) > 1e-4).all() and (abs(scores[2:] - low) > 1e-4).all()


def rated(context: str, response: str, *scores: int) -> dict[str, Any]:
    return {"context": [context], "response": response, "annotations": {"overall": scores}}


@pytest.mark.usefixtures("responses")
def test_correlate_needs_no_training(best: str, capsys: Capture, monkeypatch: Patch) -> None:
    """In a new home folder: the best that is installed beside a baseline, and a sentence about who loses to whom. A
    baseline that is named stays alone, and other sets are not shown."""
    monkeypatch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
    monkeypatch.setattr("ssrem.evaluators.BASELINES", {"length": ()})  # cosine loads a transformer
    draw = random.Random(0)
    words, rows = ["red", "green", "blue", "dog", "cat", "runs", "sleeps"], []
    for length in (1 + number % 7 for number in range(42)):
        context, response = (" ".join(draw.choices(words, k=k)) for k in (5, length))
        rows.append(rated(context, response, length, length + draw.randint(0, 1)))
    Path("people_eval.json").write_text(json.dumps(rows))
    assert main(["correlate", "people_eval.json"]) == 0
    said = capsys.readouterr()
    assert f"correlating {best}, as packaged: the best that is installed" in said.err
    assert "also correlated, untrained: length" in said.err
    assert "its Spearman with human scores is not above an untrained baseline" in said.out
    tied = said.out.partition("tied for best")[2].splitlines()[3].split()
    assert tied[2:4] == ["length", "f"] and best not in tied
    assert main(["correlate", "people_eval.json", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {row["evaluator"] for row in again["agreement"]} == {best, "length"}
    assert any("untrained baseline" in sentence for sentence in again["no_better"])
    monkeypatch.setattr("ssrem.evaluators.BASELINES", {"length": (), "novelty": ()})
    Path("people_eval.json").rename("others_eval.json")
    assert main(["correlate", "others_eval.json", "--evaluator", "length", "--json"]) == 0
    others = json.loads(capsys.readouterr().out)
    assert {(row["dataset"], row["evaluator"]) for row in others["agreement"]} == {("others", "length")}
    assert all("people" not in sentence for sentence in others["no_better"])
