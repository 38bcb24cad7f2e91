"""`ssrem validate`: from a table of labels to a page, a summary, figures for programs, and a gate."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ssrem.cli.main import main
from support.judge_server import KEY, completion, judge_server
from support.small_home import annotated_rows

Run = Callable[..., tuple[str, str]]


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


@pytest.fixture
def run(labels: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line; what it says on stdout and on stderr. Figures, which take long, are not drawn."""
    for figure in ("forest", "scatter"):
        monkeypatch.setattr(f"ssrem.report.figures.{figure}", lambda *_: [])

    def run(line: str, *more: str, status: int = 0) -> tuple[str, str]:
        assert main([*line.split(), *more]) == status
        said = capsys.readouterr()
        return said.out, said.err

    return run


def test_labels_of_two_words_become_a_page(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "validate labels.csv --map score=label --evaluator novelty --own gpt --precision .5"
    assert main(line.split()) == 0
    said = capsys.readouterr().out
    assert "best balance" in said and "page: labels-validation.html" in said
    page = Path("labels-validation.html").read_text()
    assert "novelty" in page and "own family" in page and page.count("<svg") == 2
    assert not (labels.parent / "home").exists()


def test_figures_for_programs_and_the_share_of_unlabelled_responses(run: Run) -> None:
    more = [{"context": [f"Hi {n}!"], "response": "word " * n} for n in range(1, 21)]
    Path("more.jsonl").write_text("\n".join(map(json.dumps, more)))
    line = "validate labels.csv --map score=label --evaluator length --unlabelled more.jsonl --json --output p.html"
    answer = json.loads(run(line)[0])
    assert answer["agreement"]["length"]["spearman"]["value"] > 0.7
    (balance,) = answer["passing"]["thresholds"]
    assert balance["tpr"]["value"] > balance["fpr"]["value"]
    _, unlabelled = answer["passing"]["shares"]
    assert unlabelled["evaluator"]["n"] == 20
    assert unlabelled["corrected"]["low"] < unlabelled["corrected"]["high"]
    assert answer["page"] == "p.html" and answer["not_met"] == [] and Path("p.html").exists()


def test_labels_that_correct_no_share_say_so(run: Run) -> None:
    why = "the labels cannot correct it: where the rates are measured, tpr is above fpr by"
    said, _ = run("validate labels.csv --map score=stars --pass 3 --evaluator length")
    assert why in Path("labels-validation.html").read_text()
    assert f"the share of the testing half: {why}" in said and "corrected for its error rates" in said


def test_verdicts_that_the_file_has_are_validated(labels: Path, run: Run) -> None:
    """Also of rows without a label, whose share that passes is estimated; a verdict may be missing."""
    header, *rows = labels.read_text().splitlines()
    judged = [f"{row},{'yes' if 'pass' in row else 'no'}" for row in rows]
    judged[0] = judged[0].rpartition(",")[0] + ","
    more = [f"New {at}?,Well {at},gpt,,,{'yes' if at % 4 else 'no'}" for at in range(20)]
    more.append("New?,Well,gpt,,,")
    labels.write_text("\n".join([f"{header},verdict", *judged, *more]) + "\n")
    line = "validate labels.csv --map score=label --scores verdict"
    out, said = run(line, "--require", "tpr=.9", "--json")
    answer = json.loads(out)
    assert "left out: 1 response with neither a label nor such a score" in said
    agreement = answer["agreement"]["verdict"]["spearman"]
    assert (agreement["n"], agreement["value"]) == (39, pytest.approx(1))
    assert answer["missing"] == 1 and answer["evaluator"] == "verdict"
    assert answer["passing"]["thresholds"][0]["calibrated"] is None  # nothing is chosen
    _, unlabelled = answer["passing"]["shares"]
    assert (unlabelled["evaluator"]["n"], unlabelled["evaluator"]["value"]) == (20, 0.75)
    assert "changed responses have none" in Path("labels-validation.html").read_text()
    assert "--scores takes what the file has" in run(line, "--evaluator", "length", status=2)[1]
    itself = run("validate labels.csv --map score=verdict --scores verdict", status=2)[1]
    assert "--scores verdict: the labels are read from this column, too" in itself


def test_verdicts_are_of_columns(run: Run) -> None:
    """Those of another layout would be the labels themselves. Equal texts have verdicts of their own."""
    Path("a_eval.json").write_text(json.dumps(annotated_rows()))
    _, said = run("validate a_eval.json --scores verdict", status=2)
    assert "a_eval.json is read as eval, which has none; give --layout jsonl --map" in said
    rows = [
        {"dialogue_id": str(n), "context": f"c{n // 2}", "response": "r", "score": n % 5, "verdict": n % 5}
        for n in range(30)
    ]
    Path("same.jsonl").write_text("\n".join(map(json.dumps, rows)))
    answer = json.loads(run("validate same.jsonl --scores verdict --json")[0])
    assert answer["agreement"]["verdict"]["spearman"]["value"] == pytest.approx(1)


def test_verdicts_beside_lists_of_raters_and_beside_labels_that_are_called_annotator(run: Run) -> None:
    rows: list[dict[str, Any]] = [{"context": f"c{n}", "response": "r", "verdict": n % 5} for n in range(30)]
    marked = [
        row | {"marks": [{"value": row["verdict"] + at, "by": who} for at, who in enumerate("abc")]}
        for row in rows
    ]
    Path("lists.jsonl").write_text("\n".join(map(json.dumps, marked)))
    lists = "score.overall=marks.*.value rater=marks.*.by"
    answer = json.loads(run(f"validate lists.jsonl --map {lists} --scores verdict --json")[0])
    assert answer["agreement"]["verdict"]["spearman"]["value"] == pytest.approx(1)
    labelled = [row | {"annotator": ["fail", "pass", ""][n % 3], "fluency": n} for n, row in enumerate(rows)]
    Path("both.jsonl").write_text("\n".join(map(json.dumps, labelled)))
    answer = json.loads(run("validate both.jsonl --map score=annotator --scores verdict --json")[0])
    assert (answer["responses"], answer["missing"]) == (20, 0)
    position = next(bias for bias in answer["bias"] if bias["name"] == "position")
    assert position["reason"].startswith("The scores were given before; in which order")
    said = run("validate both.jsonl --map score=annotator --scores verdict --criterion fluency", status=1)[1]
    assert "not used: verdict, fluency" in said and "no criterion 'fluency'" in said


def test_labels_that_the_evaluator_learned_from_are_refused(
    labels: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
    parts = 'parts=["length", "novelty"]'
    run("train blend --labels labels.csv --map score=label --labels-only --set", parts)
    labels.write_text(f"{labels.read_text().rstrip()}\nanother context,another response,gpt,pass,1\n")
    _, said = run("validate labels.csv --map score=label --evaluator blend", status=1)
    assert "blend version 1 learned human scores of the contexts of labels" in said
    answer, said = run("correlate labels.csv --map score=label --json --evaluator blend")
    assert "blend is left out: version 1 learned human scores of the contexts of labels" in said
    assert {row["evaluator"] for row in json.loads(answer)["agreement"]} == {"length"}


def test_what_is_left_out_is_said(labels: Path, run: Run) -> None:
    Path("more.csv").write_text("said,response\na,b\n,c\n")
    labels.write_text(labels.read_text().replace("Question 3?", "").replace("context,", "said,", 1))
    line = "validate labels.csv --map score=label context=said --evaluator novelty --unlabelled more.csv"
    out, err = run(line, "--precision", "1")
    assert "1 of 40 responses are left out, empty context 1" in err
    assert "no threshold for" in out


def test_what_is_required_decides_the_exit_status(run: Run) -> None:
    line = "validate labels.csv --map score=label --evaluator length --require spearman=.5"
    _, said = run(line, "low=.99", "kendall=.99", "copied=.9", status=1)
    (last,) = [one for one in said.splitlines() if "not met" in one]
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
        ("--map score=label --evaluator bleu-2", "bleu-2 has no score for any of the 40 labelled responses"),
        ("--map score=label --unlabelled none.csv", "none.csv does not exist"),
    ],
)
def test_what_cannot_be_validated_is_one_line(run: Run, options: str, says: str) -> None:
    *_, line = run(f"validate labels.csv {options}", status=1)[1].splitlines()
    assert line.startswith("ssrem: ") and says in line


@pytest.mark.parametrize("output", ["./labels.csv", "more.csv"])
def test_no_file_that_is_read_is_written_over(labels: Path, run: Run, output: str) -> None:
    Path("more.csv").write_bytes(before := labels.read_bytes())
    line = f"validate labels.csv --map score=label --unlabelled more.csv --output {output}"
    assert "is a file that is read; choose another" in run(line, status=2)[1]
    assert labels.read_bytes() == Path("more.csv").read_bytes() == before


def test_a_judge_is_asked_once_for_what_a_dry_run_says(
    labels: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    labels.write_text("\n".join(labels.read_text().splitlines()[:17]))

    def answer(body: dict[str, Any], _: int) -> Any:
        return completion(str(1 + len(body["messages"][0]["content"]) // 9 % 5))

    with judge_server(answer) as server:
        line = "validate labels.csv --map score=label --home home --json --responses 5 --evaluator judge"
        line += f" --set base_url={server.url} model=tiny"
        (bill,) = json.loads(run(line, "--dry-run")[0])
        assert server.asked == [] and not Path("labels-validation.html").exists()
        for _ in range(2):
            answers = json.loads(run(line)[0])
            assert len(server.asked) == bill["requests"] > 16 + 5 * 6
    injection = next(bias for bias in answers["bias"] if bias["name"] == "injection")
    assert {finding["n"] for finding in injection["findings"]} == {5}
    assert KEY not in Path("labels-validation.html").read_text()
