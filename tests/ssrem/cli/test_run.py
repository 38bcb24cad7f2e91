"""`ssrem run` as a user meets it: what it prints, what it leaves, and a second time; and stages that fail midway."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from unittest.mock import Mock

import pytest

from ssrem.cli.main import main
from ssrem.errors import EvaluatorError
from ssrem.tasks.warehouse.home import Warehouse
from support.progress_lines import other_lines
from support.small_home import Made, called, write_conversations


def test_tables_report_and_next_command(made: Made) -> None:
    assert made.said.returncode == 0, made.said.stderr
    lines = made.said.stdout.splitlines()
    scores = (
        "everyday pairs",
        "identification on the test split by the versions in use",
        "agreement with human scores",
    )
    titles = (*scores, "corpora", "speaker sets")
    starts = [next(i for i, line in enumerate(lines) if line.startswith(title)) for title in titles]
    assert starts == sorted(starts)
    assert f"report: {made.home.reports / 'report.html'}" in lines
    assert lines[-1].startswith("next:   ssrem sql --home ")
    sentences = ("human scores is not ", "chance is 50%")  # of what is no better
    tables = [line for line in lines if not any(part in line for part in ("report: ", *sentences))]
    assert all(line == line.rstrip() and len(line) <= 120 for line in tables)
    ground_truth = [line.split()[:3] for line in lines if " GT " in line]
    assert ground_truth == [[name, "tiny", "GT"] for name in ("ssrem", "rsrem", "length", "cosine")]


def test_stderr_says_how_far_it_is_where_it_is_no_terminal(made: Made) -> None:
    assert other_lines(made.said.stderr) == other_lines(made.again.stderr) == []
    assert "ssrem: tiny: too small to judge a training by: " in made.said.stderr
    starts = re.findall(r"ssrem: (.*): started", made.said.stderr)
    assert starts[:3] == ["ingest tiny", "tables tiny", "train ssrem"]
    assert "correlate people" in starts
    for stage in starts:
        assert re.search(rf"ssrem: {stage}: done in .* s", made.said.stderr)
    assert re.search(
        r"ingest tiny: done in \S+ s \(corpora 1, conversations 60, utterances 600, ", made.said.stderr
    )


def test_json_holds_the_same_figures(made: Made) -> None:
    figures = json.loads(made.again.stdout, parse_constant=pytest.fail)
    names = "everyday_pairs identification agreement best corpora speaker_sets no_better report"
    assert list(figures) == names.split()
    counts = {"conversations": 60, "utterances": 600, "quarantined": 0, "speakers": 12, "turns": 600}
    assert figures["corpora"][0] == {"corpus": "tiny", "format": "jsonl", **counts, "speaker_scope": "person"}
    assert {row["n"] + row["excluded"] for row in figures["agreement"]} == {30}
    assert all(row["low"] < row["spearman"] < row["high"] for row in figures["agreement"])
    pairs = figures["everyday_pairs"]
    assert {row["evaluator"] for row in pairs} == {"ssrem", "rsrem", "cosine", "length"}
    assert all(0 <= row["low"] <= row["better"] <= row["high"] <= 1 and row["n"] == 240 for row in pairs)
    identified = {row["evaluator"]: row["n"] for row in figures["identification"] if row["kind"] == "GT"}
    assert identified["cosine"] == min(60, identified["ssrem"])
    assert identified["length"] == identified["ssrem"]
    (best,) = figures["best"]
    assert (best["dataset"], best["compared"], best["n"]) == ("people", 4, 25)
    assert set(best["tied_for_best"].split(", ")) <= {*("ssrem h", "rsrem h", "cosine f", "length f")}
    truth = next(row for row in figures["identification"] if row["kind"] == "GT")
    assert f"{truth['mean_f']:.3f}" in made.said.stdout


def test_without_human_ratings_it_shows_what_the_evaluators_are_worth_and_where_ratings_are(
    copy: Warehouse, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended with how unknown that is, and with correlations with ratings of whole conversations."""
    copy.write_catalog([one for one in copy.partitions() if one.key.dataset in (None, "everyday-pairs")])
    monkeypatch.setattr("ssrem.tasks.report.write_report", Mock(return_value="report.html"))
    done = called("run", str(made.dump), "--home", str(copy.root))
    assert done.returncode == 0, done.stderr
    assert "agreement with human scores" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("everyday pairs: how often the better of two responses scores higher")
    assert {line.split()[0] for line in lines[3:7]} == {"ssrem", "rsrem", "cosine", "length"}
    assert "whole conversations" not in done.stdout
    assert [line.split()[1:5] for line in lines[-2:]] == [
        ["ssrem", "ratings", "pull", "conture"],
        ["ssrem", "correlate", "conture", "--home"],
    ]
    assert "cosine reads slowly: its identification is of 60 drawn responses." in lines


def test_a_second_run_publishes_nothing(made: Made) -> None:
    assert made.again.returncode == 0
    assert [[p.table, str(p.key), p.path] for p in made.home.partitions()] == made.parts_before_again


def test_every_gate_left_its_results(made: Made) -> None:
    stages = made.home.query(
        "SELECT r.stage, count(*), bool_and(q.passed) FROM check_results AS q "
        "INNER JOIN runs AS r USING (run_id) GROUP BY r.stage"
    )
    assert {stage for stage, *_ in stages} == {"ingest", "tables", "train", "score", "correlate", "study"}
    assert all(passed for *_, passed in stages)


@pytest.mark.parametrize("verb", ["evaluators", "status"])
def test_tables_fit_the_terminal(made: Made, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", screen)
    assert main([verb, "--home", str(made.home.root)]) == 0
    lines = re.sub(r"\033\[\d*m", "", screen.getvalue()).splitlines()
    assert all(len(line) <= 80 or line.startswith("home:") for line in lines)
    assert any(re.match(r"ssrem +1 +yes", line) for line in lines)


def test_a_stage_that_fails_midway(
    home: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_conversations(tmp_path / "tiny.jsonl", conversations=20)
    again = "interrupted; nothing of this stage was published, run it again to go on"
    for error, status, says in (
        (EvaluatorError("the model fell over; train again"), 1, "the model fell over; train again"),
        (KeyboardInterrupt(), 130, again),
    ):
        monkeypatch.setattr("ssrem.evaluators.bilinear.Bilinear.fit", Mock(side_effect=error))
        run = ["run", str(tmp_path / "tiny.jsonl"), "--home", str(home.root), "--encoder", "glove-6b-50d"]
        assert main(run) == status
        captured = capsys.readouterr()
        lines = [line for line in other_lines(captured.err) if line.startswith("ssrem")]
        assert (lines, captured.out) == ([f"ssrem: {says}"], "")
        published = {part.table for part in home.partitions()}
        assert {"corpora", "utterances", "turns", "candidates", "set_similarity"} <= published
        assert not published & {"evaluators", "scores"}
        assert not list(home.staging.glob("*")) and not list(home.models.glob("*/*"))


def test_a_study_is_read_in_the_terminal_and_as_json(
    copy: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["study", "length", "--evaluator", "ssrem", "--home", str(copy.root)]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert said.startswith("length of people\n") and "spearman" in said and "rsrem" not in said
    assert main([*arguments, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["studies"]
    assert {row["evaluator"] for row in rows} == {"ssrem"} and len(rows) == 4
