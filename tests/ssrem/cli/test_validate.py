"""`ssrem validate`: from a table of labels to a page, a summary, figures for programs, and a gate."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from ssrem.cli.main import main
from support.judge_server import KEY, completion, judge_server
from support.small_home import annotated_rows

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Long responses pass; two systems answer 40 contexts in turn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSREM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("ssrem.evaluators.BASELINES", {"length": ()})  # cosine loads a transformer
    with Path("labels.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["context", "response", "model", "label", "stars"])
        for at in range(40):
            words = 1 + at * 7 % 20
            label = "pass" if words + at % 4 > 11 else "FAIL"
            rows.writerow([f"Question {at}?", "word " * words, ["gpt", "llama"][at % 2], label, words % 6])
    return tmp_path / "labels.csv"


def test_labels_of_two_words_become_a_page(labels: Path, capsys: Capture) -> None:
    line = "validate labels.csv --map score=label --evaluator novelty --own gpt --precision .5"
    assert main(line.split()) == 0
    said = capsys.readouterr().out
    assert "best balance" in said and "page: labels-validation.html" in said
    page = (labels.parent / "labels-validation.html").read_text()
    assert "novelty" in page and "own family" in page
    assert not (labels.parent / "home").exists()


def test_figures_for_programs_and_the_share_of_unlabelled_responses(labels: Path, capsys: Capture) -> None:
    Path("more.jsonl").write_text(
        "".join(json.dumps({"context": ["Hi!"], "response": "word " * n}) + "\n" for n in range(1, 21))
    )
    line = "validate labels.csv --map score=label --evaluator length --unlabelled more.jsonl --json --output p.html"
    assert main(line.split()) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["agreement"]["length"]["spearman"]["value"] > 0.7
    (balance,) = answer["passing"]["thresholds"]
    assert balance["tpr"]["value"] > balance["fpr"]["value"]
    _, unlabelled = answer["passing"]["shares"]
    assert (
        unlabelled["evaluator"]["n"] == 20
        and unlabelled["corrected"]["low"] < unlabelled["corrected"]["high"]
    )
    assert answer["page"] == "p.html" and answer["not_met"] == [] and Path("p.html").exists()


def test_labels_that_correct_no_share_say_so(labels: Path, capsys: Capture) -> None:
    line = "validate labels.csv --map score=stars --pass 3 --evaluator length"
    why = "the labels cannot correct it: where the rates are measured, tpr is above fpr by"
    assert main([*line.split(), "--json"]) == 0
    assert why in Path("labels-validation.html").read_text()
    (share,) = json.loads(capsys.readouterr().out)["passing"]["shares"]
    assert share["corrected"]["value"] is None and why in share["corrected"]["reason"]


def test_verdicts_that_the_file_has_are_validated(labels: Path, capsys: Capture) -> None:
    """Also of rows without a label, whose share that passes is estimated; a verdict may be missing."""
    header, *rows = (labels).read_text().splitlines()
    judged = [f"{row},{'yes' if 'pass' in row else 'no'}" for row in rows]
    judged[0] = judged[0].rpartition(",")[0] + ","
    more = [f"New {at}?,Well {at},gpt,,,{'yes' if at % 4 else 'no'}" for at in range(20)]
    labels.write_text("\n".join([f"{header},verdict", *judged, *more]) + "\n")
    line = ["validate", "labels.csv", "--map", "score=label", "--scores", "verdict"]
    assert main([*line, "--require", "tpr=.9", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    agreement = answer["agreement"]["verdict"]["spearman"]
    assert (agreement["n"], agreement["value"]) == (39, pytest.approx(1))
    assert answer["missing"] == 1 and answer["evaluator"] == "verdict"
    _, unlabelled = answer["passing"]["shares"]
    assert (unlabelled["evaluator"]["n"], unlabelled["evaluator"]["value"]) == (20, 0.75)
    assert "changed responses have none" in labels.with_name("labels-validation.html").read_text()
    assert main([*line, "--evaluator", "length"]) == 2
    assert "--scores takes what the file has" in capsys.readouterr().err


def test_verdicts_are_of_columns(labels: Path, capsys: Capture) -> None:
    """Those of another layout would be the labels themselves. Equal texts have verdicts of their own."""
    labels.with_name("a_eval.json").write_text(json.dumps(annotated_rows()))
    assert main(["validate", "a_eval.json", "--scores", "verdict"]) == 2
    assert "a_eval.json is read as eval, which has none; give --layout jsonl --map" in capsys.readouterr().err
    rows = [
        {"dialogue_id": str(n), "context": f"c{n // 2}", "response": "r", "score": n % 5, "verdict": n % 5}
        for n in range(30)
    ]
    Path("same.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert main(["validate", "same.jsonl", "--scores", "verdict", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agreement"]["verdict"]["spearman"]["value"] == pytest.approx(
        1
    )


def test_labels_that_the_evaluator_learned_from_are_refused(labels: Path, capsys: Capture) -> None:
    learn = ["train", "blend", "--labels", "labels.csv", "--map", "score=label", "--labels-only", "--set"]
    assert main([*learn, 'parts=["length", "novelty"]']) == 0
    labels.write_text(f"{labels.read_text().rstrip()}\nanother context,another response,gpt,pass,1\n")
    assert main(["validate", "labels.csv", "--map", "score=label", "--evaluator", "blend"]) == 1
    assert "blend version 1 learned human scores of the contexts of labels" in capsys.readouterr().err
    correlate = ["correlate", "labels.csv", "--map", "score=label", "--json", "--evaluator", "blend"]
    assert main(correlate) == 0
    said = capsys.readouterr()
    assert "blend is left out: version 1 learned human scores of the contexts of labels" in said.err
    assert {row["evaluator"] for row in json.loads(said.out)["agreement"]} <= {"cosine", "length"}


def test_what_is_left_out_is_said(labels: Path, capsys: Capture) -> None:
    rows = labels.read_text().replace("Question 3?", "")
    labels.write_text(rows)
    Path("more.csv").write_text("said,response\na,b\n,c\n")
    labels.write_text(rows.replace("context,", "said,", 1))
    line = "validate labels.csv --map score=label context=said --evaluator novelty --unlabelled more.csv"
    assert main([*line.split(), "--precision", "1"]) == 0
    said = capsys.readouterr()
    assert "1 of 40 responses are left out, empty context 1" in said.err
    assert "no threshold for" in said.out


def test_what_is_required_decides_the_exit_status(labels: Path, capsys: Capture) -> None:
    line = "validate labels.csv --map score=label --evaluator length --require spearman=.5"
    assert main(line.split()) == 0
    capsys.readouterr()
    assert main([*line.split(), "low=.99", "kendall=.99", "copied=.9"]) == 1
    (last,) = [one for one in capsys.readouterr().err.splitlines() if "not met" in one]
    assert last.startswith("ssrem: not met: low is 0.") and "not at least 0.99; kendall is " in last
    assert Path("labels-validation.html").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--map score=stars --precision .9", "the labels have 6 values, not two; --pass SCORE says from"),
        ("--map score=stars --criterion tone", "no criterion 'tone'; name one with --criterion: stars"),
        ("--map score=label --own claude", "labels.csv has no such system; it has gpt, llama"),
        ("--map score=label --evaluator rsrem", "run ssrem train rsrem first"),
        ("--map score=label --evaluator ssrem --set epochs=3", "ssrem learns; give its settings to ssrem"),
        ("--map score=label --evaluator length --set x=3", "no setting x"),
        ("--map score=label --evaluator length --output no/p.html", "cannot write no/p.html"),
        ("--map score=label --evaluator bleu-2", "bleu-2 has no score for any of the 40 labelled responses"),
        ("--map score=label --unlabelled none.csv", "none.csv does not exist"),
    ],
)
def test_what_cannot_be_validated_is_one_line(labels: Path, options: str, says: str, capsys: Capture) -> None:
    assert main(["validate", "labels.csv", *options.split()]) == 1
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("ssrem: ") and says in line


def test_a_judge_is_asked_once_for_what_a_dry_run_says(
    labels: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def answer(body: dict[str, Any], _: int) -> Any:
        return completion(str(1 + len(body["messages"][0]["content"]) // 9 % 5))

    with judge_server(answer) as server:
        line = "validate labels.csv --map score=label --home home --json --responses 5 --evaluator judge"
        asked = [*line.split(), "--set", f"base_url={server.url}", "model=tiny"]
        assert main([*asked, "--dry-run"]) == 0
        (bill,) = json.loads(capsys.readouterr().out)
        assert server.asked == [] and not Path("labels-validation.html").exists()
        for _ in range(2):
            assert main(asked) == 0
            answers = json.loads(capsys.readouterr().out)
            assert len(server.asked) == bill["requests"] > 40 + 5 * 6
    injection = next(bias for bias in answers["bias"] if bias["name"] == "injection")
    assert {finding["n"] for finding in injection["findings"]} == {5}
    assert KEY not in Path("labels-validation.html").read_text()
