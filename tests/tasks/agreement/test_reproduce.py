"""`ssrem reproduce`: every published figure is the one that its signature gives; what differs is said in words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ssrem.agreement.signature import Signature, SignatureError, parse
from ssrem.cli.main import main
from ssrem.errors import SsremError
from ssrem.tasks.agreement.correlate import correlate, correlate_landed
from ssrem.tasks.agreement.reproduce import reproduce
from ssrem.tasks.stage.stage import Output
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import PartitionKey
from support.small_home import Made, annotated_rows
from support.stages import staging


def signatures(home: Warehouse, where: str = "true") -> list[str]:
    with home.reader() as reader:
        query = f"SELECT signature FROM agreement WHERE {where} ORDER BY signature"
        return [line for (line,) in reader.execute(query).fetchall()]


OF_ONE = "evaluator = 'ssrem' AND score = 'h' AND aggregation IN ('mean', 'mode')"
ONE = f"{OF_ONE} AND aggregation = 'mean' AND level = 'segment' AND grouping = 'pooled' AND measure = 'spearman'"


def test_every_kind_of_figure_is_reproduced(made: Made) -> None:
    lines = signatures(made.home, OF_ONE)
    assert len(lines) == 2 * 17
    for line in lines:
        done = reproduce(made.home, line)
        assert (done.differs, done.noted, done.published) == ([], [], True), line


def test_too_few_systems_are_forced_flagged_and_reproduced(copy: Warehouse, tmp_path: Path) -> None:
    rows = [row for row in annotated_rows() if row["model"] in "abc"]
    (tmp_path / "three_eval.json").write_text(json.dumps(rows))
    file, root, ssrem = str(tmp_path / "three_eval.json"), str(copy.root), [("ssrem", 1)]
    level = "dataset = 'three' AND level = 'system' AND measure = 'spearman'"
    assert correlate(file, ssrem, root) == ("three", True)
    refused = signatures(copy, level)
    assert [reproduce(copy, line).figure.outcome for line in refused] == ["too_few_systems"] * len(refused)
    assert correlate(file, ssrem, root, systems_forced=True) == ("three", True)
    assert correlate(file, ssrem, root) == ("three", False), "as it was"
    assert not correlate_landed("three", [], root), "as it was"
    assert all(reproduce(copy, line).differs == [] for line in signatures(copy, level))
    with copy.reader() as reader:
        levels = reader.execute("SELECT DISTINCT level FROM correlations WHERE dataset = 'three'").fetchall()
    assert levels == [("segment",)], "forced figures stand in agreement alone"
    forced = signatures(copy, f"{level} AND forced AND outcome = 'ok'")
    assert len(forced) == len(refused) > 0
    assert all("|level:system-forced|" in line and reproduce(copy, line).differs == [] for line in forced)
    assert correlate(file, ssrem, root, systems_forced=False) == ("three", True)
    assert signatures(copy, level) == refused


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data": "0123456789abcdef"}, "other content: 0123456789abcdef in the signature"),
        ({"weights": "0123456789ab"}, "scores differently"),
        ({"n": 24}, "another number of responses: 24 in the signature, 25 here"),
        ({"excluded": ("ground-truth", "kappa0.2")}, "other responses or raters are left out"),
        ({"numpy": "1.0.0"}, "another version of NumPy: 1.0.0 in the signature"),
    ],
)
def test_what_differs_is_said(made: Made, changes: dict[str, Any], says: str) -> None:
    (line,) = signatures(made.home, ONE)
    (said,) = reproduce(made.home, str(replace(parse(line), **changes))).differs
    assert says in said


def test_another_seed_is_another_figure_that_was_not_published(made: Made) -> None:
    (line,) = signatures(made.home, ONE)
    published, other = (reproduce(made.home, text) for text in (line, str(replace(parse(line), seed=8))))
    assert (other.differs, other.published) == ([], False)
    assert other.figure.statistic == published.figure.statistic
    assert other.figure.low != published.figure.low


def test_the_command_and_its_status(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = signatures(made.home, ONE)
    home = ["--home", str(made.home.root)]
    assert main(["reproduce", line, *home]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "reproduced"
    assert main(["reproduce", str(replace(parse(line), n=3)), *home]) == 1
    assert (
        "another number of responses: 3 in the signature, 25 here\nnot reproduced" in capsys.readouterr().out
    )
    assert main(["reproduce", line, "--json", *home]) == 0
    assert json.loads(capsys.readouterr().out)["reproduced"] is True
    assert main(["reproduce", "BLEU+case.mixed", *home]) == 1
    said = capsys.readouterr().err
    assert said.startswith("ssrem: a signature begins with") and said.count("\n") == 1
    assert main(["reproduce", line.replace("|resamples:1000|", "|resamples:0|"), *home]) == 1
    said = capsys.readouterr().err
    assert "resamples is 0, not from 1 to 10,000" in said and said.count("\n") == 1


def test_a_figure_that_was_changed_is_told(copy: Warehouse) -> None:
    (line,) = signatures(copy, ONE)
    with staging(copy, "correlate", {"change": 1}) as stage:
        stage.connection.execute(
            "CREATE TABLE main.agreement AS SELECT * REPLACE (CASE WHEN signature = ? THEN 0.5 ELSE statistic END AS "
            "statistic) FROM published.agreement WHERE evaluator = 'ssrem'",
            [line],
        )
        key = PartitionKey(evaluator="ssrem", version=1, dataset="people")
        stage.publish([Output("agreement", key)])
    (said,) = reproduce(copy, line).differs
    assert said.startswith("the published statistic is 0.5, and computed again ")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"dataset": "others", "data": "0123456789abcdef"},
            r"others is not in .*\(available: people\); ssrem correlate",
        ),
        (
            {"evaluator": "ssrem@7"},
            r"ssrem@7 has not scored people .*those that have: cosine@1, length@1, rsrem@1, ssrem@1",
        ),
        ({"criterion": "humour"}, r"no human score humour \(mean\) of people .*overall \(mad_mean\)"),
        ({"score": "z"}, r"no score z of people .*available: f, g, h"),
        ({"measure": "bleu"}, "no figure such as bleu"),
    ],
)
def test_what_is_not_here_is_one_line(made: Made, changes: dict[str, Any], says: str) -> None:
    (line,) = signatures(made.home, ONE)
    with pytest.raises(SsremError, match=says) as raised:
        reproduce(made.home, str(replace(parse(line), **changes)))
    assert "\n" not in str(raised.value)


def test_a_set_of_another_name_with_that_content_is_found(made: Made) -> None:
    (line,) = signatures(made.home, ONE)
    (said,) = reproduce(made.home, str(replace(parse(line), dataset="crowd"))).differs
    assert said == "the annotated set has another name: crowd in the signature, people here"


def test_a_line_that_is_no_signature(made: Made) -> None:
    assert isinstance(parse(signatures(made.home)[0]), Signature)
    with pytest.raises(SignatureError):
        reproduce(made.home, "ssrem-agreement/2|evaluator:x")
