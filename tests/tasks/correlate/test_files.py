"""Annotated sets of every layout land as `*_eval.json` does, by file, folder or the name of a pulled set."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from ssrem.annotated_sets import known
from ssrem.errors import AnnotationError
from ssrem.tasks import annotated as sets
from ssrem.tasks.annotated import annotated_file, annotated_files, pulled
from ssrem.tasks.correlate import correlate
from ssrem.tasks.settings import AnnotatedSets
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import annotated_rows

ONE = [("ssrem", 1)]
MAPPING = {"context": "turns", "separator": "|", "model": "who", "response": "text", "reference": "true"}
MAPPING["score.overall"] = "stars"


def test_a_table_lands_as_the_eval_file_does_in_whatever_order(
    copy: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for what, one in (("MEASURES", "spearman"), ("GROUPINGS", "pooled")):
        monkeypatch.setattr(f"ssrem.agreement.figures.{what}", (one,))
    path, root = tmp_path / "table.tsv", str(copy.root)
    lines, rows = ["turns\twho\ttext\ttrue\tstars"], annotated_rows()
    random.Random(5).shuffle(rows)
    for row in rows:
        cells = ("|".join(row["context"]), row["model"], row["response"], row["reference"])
        lines.append("\t".join([*cells, json.dumps(row["annotations"]["overall"])]))
    path.write_text("\n".join(lines))
    assert correlate(str(path), ONE, root, AnnotatedSets(map=MAPPING)) == ("table", True)
    assert capsys.readouterr().err.startswith(f"ssrem: {path}: read as tsv: 30 responses of ")
    same = """SELECT count(*) FROM correlations AS a INNER JOIN correlations AS b
        USING (evaluator, criterion, aggregation, score, level, n, excluded)
        WHERE a.dataset = 'people' AND b.dataset = 'table' AND abs(a.spearman - b.spearman) < 1e-9"""
    of_table = "SELECT count(*) FROM correlations WHERE dataset = 'table'"
    assert copy.query(same) == copy.query(of_table) > [(0,)]
    landed = "SELECT response FROM rated_responses WHERE dataset = 'table' ORDER BY response_id::BIGINT"
    assert copy.query(landed) == [(row["response"],) for row in rows]
    assert correlate(str(path), ONE, root, AnnotatedSets(map=MAPPING)) == ("table", False)
    with pytest.raises(AnnotationError, match="another annotated set named 'table'"):
        correlate(str(path), ONE, root, AnnotatedSets(map={**MAPPING, "separator": "#"}))


def test_a_mapping_is_used_or_refused(home: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("context,response,7\na,b,1\n")
    (tmp_path / "b_eval.json").write_text(json.dumps(annotated_rows()))
    table, plain = str(tmp_path / "a.csv"), str(tmp_path / "b_eval.json")
    (read, _) = annotated_files(home, [table, plain], mapping={"score": 7})
    assert read.read.rows[0].scores("7") == [1]
    with pytest.raises(AnnotationError, match="--map does not apply to eval, whose fields are known"):
        annotated_files(home, [plain], mapping={"score": "7"})
    with pytest.raises(AnnotationError, match="there is no field 'scores'; did you mean score"):
        annotated_file(home, table, mapping={"scores": "7"})


@pytest.fixture
def public(home: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A public set `parts-one` of a GRADE file, known and pulled; the file."""
    content = json.dumps(
        [
            {"Dataset": d, "DialogModel": "m", "Context": "a", "Response": f"r {d}", "HumanScores": "[1, 2]"}
            for d in ("one", "two")
        ]
    ).encode()
    digest = hashlib.sha256(content).hexdigest()
    mine = known.KnownSet("parts-one", "http://x/y.json", digest, len(content), "grade:one", 1, "none", "N")
    pulled_sets = {mine.name: mine, "not-pulled": replace(mine, name="not-pulled")}
    for module in (known, sets):
        monkeypatch.setattr(module, "known_sets", lambda: pulled_sets)
    pulled(home).mkdir(parents=True)
    path = mine.file(pulled(home))
    path.write_bytes(content)
    return path


def test_a_pulled_set_is_known_by_name(home: Warehouse, public: Path) -> None:
    annotated = annotated_file(home, "parts-one")
    assert (annotated.name, annotated.path, annotated.read.part) == ("parts-one", public, "one")
    assert [row.response for row in annotated.read.rows] == ["r one"]
    by_path = annotated_file(home, str(public), "grade:two")
    assert by_path.name == "parts-one-two"
    assert by_path.digest != annotated.digest
    assert annotated_file(home, str(public), "grade:one").digest == annotated.digest


def test_a_name_that_is_not_pulled_changed_or_unknown(home: Warehouse, public: Path) -> None:
    with pytest.raises(AnnotationError, match=r"ssrem ratings pull not-pulled --home .* fetches it"):
        annotated_file(home, "not-pulled")
    public.write_text("[]")
    with pytest.raises(AnnotationError, match="has changed since it was pulled"):
        annotated_file(home, "parts-one")
    with pytest.raises(AnnotationError, match="no set that ssrem ratings list names"):
        annotated_file(home, "parts-won")
    with pytest.raises(AnnotationError, match=r"gone\.json does not exist"):
        annotated_file(home, "gone.json")


def test_a_digest_covers_the_file_and_how_it_is_read(home: Warehouse, tmp_path: Path) -> None:
    path, table = tmp_path / "a_eval.json", tmp_path / "b.csv"
    path.write_text(json.dumps([{"context": "a", "response": "r", "annotations": {"overall": [1]}}]))
    plain = hashlib.sha256(path.read_bytes()).hexdigest()
    assert annotated_file(home, str(path)).digest == plain
    assert annotated_file(home, str(path), mapping={"score": "x"}).digest == plain  # which does not apply
    rows = [{"context": "a", "response": "r", "score": 3, "annotations": {"overall": [1]}}]
    (tmp_path / "c.jsonl").write_text(json.dumps(rows[0]))
    read = [annotated_file(home, str(tmp_path / "c.jsonl"), layout) for layout in ("eval", "jsonl")]
    assert read[0].digest != read[1].digest
    table.write_text("context,response,x,y\na,b,1,2\n")
    digests = {annotated_file(home, str(table), mapping={"score": c}).digest for c in ("x", "y")}
    assert len(digests) == 2
    again = table.rename(tmp_path / "elsewhere.csv")
    assert annotated_file(home, str(again), mapping={"score": "x"}).digest in digests
