"""The command: what it loads, and what it says of bad input: one line, exit status 1, an unharmed home."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from ssrem.cli import arguments, dispatch, output
from ssrem.cli.group_verbs import GROUPS
from ssrem.cli.main import main
from ssrem.cli.parser import RENAMED, VERBS, parse
from ssrem.errors import HomeError
from ssrem.tasks.warehouse.corpora import landed_corpora
from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT
from support.progress_lines import other_lines
from support.small_home import Made

DAILYDIALOG = ROOT / ".." / "shared" / "data" / "corpora" / "dailydialog_valid.jsonl"
MELD = DAILYDIALOG.with_name("meld_train.csv")

Say = Callable[..., str]


@pytest.fixture
def one_line(capsys: pytest.CaptureFixture[str]) -> Say:
    """Run a command that must fail; returns its one line, without the name of the program."""

    def run(*arguments: str | Path, status: int = 1) -> str:
        assert main([str(a) for a in arguments]) == status
        captured = capsys.readouterr()
        lines = other_lines(captured.err)
        assert len(lines) == 1, captured.err
        assert lines[0].startswith("ssrem: ")
        return lines[0].removeprefix("ssrem: ")

    return run


@pytest.fixture
def says(one_line: Say, monkeypatch: pytest.MonkeyPatch) -> Say:
    """The same, before a flow starts."""
    monkeypatch.setattr("ssrem.cli.start.import_module", lambda name: pytest.fail(f"{name} was to start"))
    return one_line


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file of a name and a content."""

    def write(name: str, content: str) -> Path:
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write


@pytest.fixture
def whole(made: Made) -> Iterator[Warehouse]:
    """The small home, which the test only reads and must leave as it is: other workers look at it too."""
    yield from left_alone(made.home)


@pytest.fixture
def own(copy: Warehouse) -> Iterator[Warehouse]:
    """A copy of it, in which a stage may begin, and which must be as it was in the end."""
    yield from left_alone(copy)


def left_alone(home: Warehouse) -> Iterator[Warehouse]:
    before, catalog = home.partitions(), home.catalog.read_bytes()
    assert before
    yield home
    assert home.partitions() == before
    assert home.catalog.read_bytes() == catalog
    assert not list(home.staging.glob("*"))


# What it loads


def test_help_is_light() -> None:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ssrem.cli", "--help"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert time.perf_counter() - started < 1
    assert "ssrem run" in done.stdout
    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    heavy = {
        "prefect",
        "torch",
        "duckdb",
        "numpy",
        "pyarrow",
        "polars",
        "gensim",
        "rich",
        "pydantic",
        "typer",
    }
    assert "argparse" in loaded
    assert not loaded & heavy


@pytest.mark.parametrize("verb", [*VERBS, *GROUPS])
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*verb.split(), "--help"])
    assert ended.value.code == 0
    assert f"usage: ssrem {verb}" in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_command(verb: str) -> None:
    assert dispatch.command(verb).__doc__
    assert set(VERBS) >= dispatch.WRITING


@pytest.mark.parametrize("verb", RENAMED)
def test_a_verb_of_version_0_1_names_the_new_one(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "people.json", "--whatever"])
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.startswith(f"ssrem: ssrem {verb} is ") and line.count("\n") == 1
    named = re.findall(
        r"ssrem ((?:evaluators |ratings |home )?[a-z]+)", line.partition(" is ")[2].partition(";")[0]
    )
    assert named and set(named) <= set(VERBS)


def test_evaluators_alone_lists_them(whole: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for verb in (["evaluators"], ["evaluators", "list"]):
        assert main([*verb, "--json", "--home", str(whole.root)]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    for home in (["--home=x"], ["--home", "x"]):
        options = parse(["evaluators", *home])
        assert (options.verb, options.home) == ("evaluators list", Path("x"))
    versions = {row["evaluator"] for row in json.loads(shown[0])["versions"]}
    assert versions == {"ssrem", "rsrem", "cosine", "length"}  # and the baselines of ssrem correlate


READING = """
import sys
from ssrem.cli.main import main
for verb in {verbs!r}:
    assert main(verb) == 0
print(sorted({{m.split(".")[0] for m in sys.modules}} & {{"prefect", "great_expectations"}}), file=sys.stderr)
"""


def test_verbs_that_write_nothing_start_no_prefect(whole: Warehouse, file: Any) -> None:
    responses = file("r.json", '[{"context": "do you like music", "response": "i play the guitar"}]')
    score = ["score", str(responses), "--evaluator", "rsrem"]
    verbs = [["sql", "SELECT 1"], ["status"], ["evaluators"], ["ratings", "list"], score]
    code = READING.format(verbs=[[*verb, "--home", str(whole.root)] for verb in verbs])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, other_lines(done.stderr)[-1]) == (0, "[]")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["trian"], "there is no verb 'trian'; did you mean train?; see ssrem --help"),
        (
            ["evaluators", "promot", "ssrem", "1"],
            "'promot'; did you mean promote?; see ssrem evaluators --help",
        ),
        (
            ["tables", "--sed", "3"],
            "unrecognized arguments: --sed 3; did you mean --seed?; see ssrem tables --help",
        ),
        (["run", "--runer=dask"], "--runer=dask; did you mean --runner"),
        (["run", "--runner", "dusk"], "(choose from 'process', 'dask'); did you mean dask?"),
        (["zzz"], "there is no verb 'zzz'; the verbs are run, ingest, tables, "),
        (["status", "--zzz"], "unrecognized arguments: --zzz; see ssrem status --help"),
    ],
)
def test_a_wrong_verb_or_option_names_the_nearest(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    line = capsys.readouterr().err
    assert ended.value.code == 2 and meant in line and line.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (
            ["tables", "--corpus", "tinny"],
            "no corpus 'tinny' has landed in {home} (landed: tiny); did you mean tiny?",
        ),
        (["forget", "p1", "--corpus", "tinny"], "did you mean tiny?"),
        (["ratings", "collect", "b", "--corpus", "tinny"], "did you mean tiny?"),
        (
            ["study", "atacks"],
            "no study 'atacks'; did you mean attacks?; the studies are behaviour, attacks, ",
        ),
        (
            ["study", "length", "--of", "peple"],
            "people, tiny); did you mean people?",
        ),
        (["ratings", "pull", "usr-persona"], "there is no set 'usr-persona'; did you mean usr-personachat?"),
        (["correlate", "usr-persona"], "no set that ssrem ratings list names; did you mean usr-personachat?"),
        (["ingest", "{dump}", "--format", "jsnl"], "there is no format 'jsnl'; did you mean jsonl?"),
        (["ingest", "{dump}", "--map", "speeker=who"], "there is no field 'speeker'; did you mean speaker?"),
        (["correlate", "{annotated}", "--layout", "evl"], "there is no layout 'evl'; did you mean eval?"),
    ],
)
def test_a_wrong_name_names_the_nearest(
    made: Made,
    one_line: Say,
    tmp_path: Path,
    arguments: list[str],
    meant: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    values = {"home": made.home.root, "dump": made.dump, "annotated": made.annotated}
    written = [argument.format(**values) for argument in arguments]
    assert meant.format(**values) in one_line(*written, "--home", made.home.root)


def test_the_report_of_an_empty_home_says_how_to_fill_it(one_line: Say, tmp_path: Path) -> None:
    said = one_line("report", "--home", tmp_path / "new")
    assert (
        said.startswith(f"{tmp_path / 'new'} is empty; fill it with ssrem run, ") and "ssrem run DUMP" in said
    )
    assert not (tmp_path / "new").exists()


def test_turns_are_shown_when_they_are_built(
    write_dump: Callable[..., str], home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"conversation": "c", "speaker": who, "text": "hi"} for who in "ab"]
    dump = write_dump(rows)
    for verb, shown in ((["ingest", dump], False), (["status"], True)):
        if verb == ["status"]:
            assert main(["tables", "--encoder", "glove-6b-50d", "--home", str(home.root)]) == 0
            capsys.readouterr()
        assert main([*verb, "--home", str(home.root)]) == 0
        header = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("corpus "))
        assert ("turns" in header.split()) == shown
    assert main(["status", "--home", str(home.root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["corpora"][0]["turns"] == 2


def test_only_figures_of_evaluators_are_followed_by_who_is_no_better_than_chance(
    whole: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "no_better", lambda home, datasets: ["ssrem is no better than chance."])
    for summary, said in (("speaker_sets", False), ("identification", True), ("agreement", True)):
        output.outcome(argparse.Namespace(json=False), whole, [summary], {})
        assert ("no better than chance" in capsys.readouterr().out) == said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["bogus"], "bogus"),
        (["train", "--threads", "0"], "--threads"),
        (["train", "--memory-limit", "much"], "--memory-limit"),
        (["tables", "--seed", "-1"], "--seed"),
        (["tables", "--context-turns", "0"], "--context-turns"),
        (["status", "a\nb"], "a\\nb"),
    ],
)
def test_a_wrong_option_is_one_line(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.startswith("ssrem: ")
    assert line.count("\n") == 1
    assert named in line


# Dumps

LINE = '{"conversation_id": "c", "speaker": "a", "text": "hi"}\n'


def test_one_dump_or_a_drop_folder(whole: Warehouse, says: Say) -> None:
    home = ("--home", whole.root)
    assert "takes a dump or --inbox FOLDER, one of them" in says("ingest", *home)
    assert "one of them" in says("ingest", "dump.jsonl", "--inbox", "there", *home)
    assert "--watch looks into --inbox FOLDER" in says("ingest", "dump.jsonl", "--watch", "5", *home)
    assert "no margin 'rho'" in says("evaluators", "retrain", "--margin", "rho=1", *home)
    assert "expected KEY=VALUE, such as agreement=0.05" in says(
        "evaluators", "retrain", "--margin", "rho", *home
    )


DROPPED = {
    "bad": [{"conversation_id": "c"}],
    "good": [{"conversation_id": "c", "speaker": who, "text": "hi"} for who in "ab"],
}
WITH_GOOD = {"good.jsonl": "landed as good", "ssrem": "has seen ['good']"}


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """A drop folder of two dumps, the first of which is rejected."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    for name, rows in DROPPED.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def retraining(inbox: Path, home: Warehouse, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command that lands them and retrains; here a retraining only says which corpora have landed."""

    def retrain(home: str, **_: Any) -> dict[str, str]:
        return {"ssrem": f"has seen {landed_corpora(home)}"}

    monkeypatch.setattr("ssrem.flows.retrain.retrain", retrain)
    return ["ingest", "--inbox", str(inbox), "--settle", "0", "--retrain", "--home", str(home.root)]


def test_a_rejected_dump_hides_no_other_that_landed(
    inbox: Path, retraining: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*retraining, "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out) == WITH_GOOD
    (line,) = other_lines(said.err)
    assert line.startswith("ssrem: bad.jsonl was moved to ") and "no key is known as speaker or text" in line
    # Where none landed, nothing is learned, and the rejected dump is all that is said.
    shutil.copy(inbox / "rejected" / "bad.jsonl", inbox)
    assert main(retraining) == 1
    said = capsys.readouterr()
    assert said.out == "" and len(other_lines(said.err)) == 1


def test_a_watched_folder_is_learned_from_though_a_dump_was_rejected(
    retraining: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(seconds: float) -> None:
        raise HomeError(f"waits {seconds} s")

    monkeypatch.setattr("ssrem.cli.commands.ingest.time", SimpleNamespace(sleep=wait))
    assert main([*retraining, "--watch", "7"]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [f"{name}: {what}" for name, what in WITH_GOOD.items()]
    rejected, waited = other_lines(said.err)
    assert rejected.startswith("ssrem: bad.jsonl was moved to ") and waited == "ssrem: waits 7.0 s"


def test_a_retraining_that_fails_hides_neither_a_landed_nor_a_rejected_dump(
    retraining: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise HomeError("locked")

    monkeypatch.setattr("ssrem.flows.retrain.retrain", fails)
    assert main(retraining) == 1
    said = capsys.readouterr()
    assert said.out == "good.jsonl: landed as good\n"
    rejected, failed = other_lines(said.err)
    assert "bad.jsonl was moved to" in rejected and failed == "ssrem: locked"


def test_missing_dump(whole: Warehouse, says: Say, tmp_path: Path) -> None:
    for verb in ("ingest", "run"):
        assert "no such file" in says(verb, tmp_path / "none.jsonl", "--home", whole.root)


def test_a_file_name_with_line_breaks_and_control_codes_is_one_line(
    whole: Warehouse, says: Say, tmp_path: Path
) -> None:
    assert r"a\nb\x1b[2J" in says("ingest", tmp_path / "a\nb\x1b[2J", "--home", whole.root)


def test_people_need_a_key_and_a_name(
    whole: Warehouse, says: Say, file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSREM_PSEUDONYM_KEY", raising=False)
    dump, key = file("one.jsonl", LINE), file("weak.key", "weak")
    for verb in ("ingest", "run"):
        assert "SSREM_PSEUDONYM_KEY" in says(verb, dump, "--pseudonymise", "--home", whole.root)
        weak = says(verb, dump, "--pseudonymise", "--pseudonym-key", key, "--home", whole.root)
        assert "4 bytes" in weak and "weak" not in weak
        assert "--pseudonymise" in says(verb, dump, "--pseudonym-key", key, "--home", whole.root)
    assert "'p99' in tiny" in says("forget", "p99", "--home", whole.root)
    assert "'huge'" in says("forget", "p3", "--corpus", "huge", "--home", whole.root)


def test_empty_dump(whole: Warehouse, says: Say, file: Any) -> None:
    assert "empty" in says("ingest", file("empty.jsonl", ""), "--home", whole.root)


def test_sources_and_settings_that_cannot_be_are_one_line(whole: Warehouse, says: Say, file: Any) -> None:
    dump, home = file("d.jsonl", LINE), ("--home", whole.root)
    assert "name the corpus with --name" in says("ingest", "-", *home)
    assert "there is no such encoding of text" in says("ingest", dump, "--encoding", "latin-99", *home)
    assert "has no day, month and year" in says("ingest", dump, "--time-format", "%H:%M", *home)
    other = file("other.csv", "conversation,speaker,text\nc,a,x\n")
    assert "the files of a corpus are of one format" in says("run", dump, other, *home)


def test_several_sources_and_what_is_piped_in_land(
    tmp_path: Path, file: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = str(tmp_path / "home")
    content = "conversation,speaker,text,time\nc,a,caf\xe9,02.05.2018 19:38\nc,b,hi,soon\n".encode("cp1252")
    pipe = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False)
    monkeypatch.setattr("sys.stdin", pipe)
    assert main(["ingest", "-", "--name", "piped", "--home", home]) == 0
    said = capsys.readouterr()
    assert "1 value is no time and became null, such as 'soon' (stdin line 3)" in said.err
    assert "lines that are not UTF-8 are read as cp1252" in said.err
    files = [str(file(name, LINE.replace("hi", name))) for name in ("one.jsonl", "two.jsonl")]
    assert main(["ingest", *files, "--name", "both", "--home", home, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["utterances"] == 2
    rows = Warehouse.at(home).query(
        "SELECT text, CAST(time AS VARCHAR) FROM utterances WHERE corpus = 'piped' ORDER BY ALL"
    )
    assert rows == [("café", "2018-05-02 19:38:00"), ("hi", None)]


def test_wrong_format(whole: Warehouse, says: Say, file: Any) -> None:
    said = says("ingest", file("d.jsonl", LINE), "--format", "parquet", "--home", whole.root)
    assert "looks like jsonl" in said


def test_unknown_format(whole: Warehouse, says: Say, file: Any) -> None:
    said = says("ingest", file("d.jsonl", LINE), "--format", "xml", "--home", whole.root)
    assert "'xml'" in said
    assert "convokit" in said


def test_mapping_of_an_unknown_field(whole: Warehouse, says: Say, file: Any) -> None:
    dump = file("d.csv", "who,what,where\na,hi,c\n")
    said = says("ingest", dump, "--map", "speeker=who", "--home", whole.root)
    assert "speeker" in said
    assert "speaker" in said.replace("speeker", "")


def test_mapping_to_a_missing_column(whole: Warehouse, says: Say, file: Any) -> None:
    dump = file("d.csv", "who,what,where\na,hi,c\n")
    mapping = ["speaker=nobody", "text=what", "conversation=where"]
    said = says("ingest", dump, "--format", "csv", "--map", *mapping, "--home", whole.root)
    assert "nobody" in said


def test_a_slip_in_a_later_stage_stops_the_run_before_it_starts(
    whole: Warehouse, says: Say, file: Any, tmp_path: Path
) -> None:
    dump = file("new.jsonl", LINE)
    gone = tmp_path / "gone.json"
    assert "gone.json" in says("run", dump, "--annotations", gone, "--home", whole.root)
    assert "ssrem" in says("run", dump, "--evaluator", "ssrrem", "--home", whole.root)


def ingest_fails(home: Warehouse, dump: Path, says_so: str, **options: Any) -> None:
    """Through the task itself: these are found while landing, and a flow would add nothing but its start."""
    from ssrem.errors import DumpError
    from ssrem.tasks.ingest.land import land

    with pytest.raises(DumpError, match=says_so) as raised:
        land(str(dump), str(home.root), **options)
    assert "\n" not in str(raised.value)


def test_a_dump_in_which_everything_is_quarantined(own: Warehouse, file: Any) -> None:
    broken = file("d.jsonl", LINE.replace("hi", " ") * 3)
    ingest_fails(own, broken, "none of the 3 messages")


@pytest.mark.skipif(not DAILYDIALOG.exists(), reason="needs the dump dailydialog_valid.jsonl in ../shared")
def test_seats_stop_the_ingest_and_the_ways_out_work(own: Warehouse, home: Warehouse) -> None:
    from ssrem.tasks.ingest.land import land

    ingest_fails(own, DAILYDIALOG, "--speakers conversation.*--speakers person")
    for way in ("conversation", "person"):
        name, new = land(str(DAILYDIALOG), str(home.root), speakers=way, replace=True)
        assert new
        with home.reader() as reader:
            scopes = reader.execute("SELECT speaker_scope FROM corpora WHERE corpus = ?", [name]).fetchall()
        assert scopes == [(way,)]


@pytest.mark.skipif(not MELD.exists(), reason="needs the dump meld_train.csv in ../shared")
def test_the_series_in_the_docs_lands_whole(home: Warehouse) -> None:
    from ssrem.tasks.ingest.land import land

    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^ssrem (ingest meld_train.csv .*)$", page, re.MULTILINE)
    options = parse([str(MELD) if word == MELD.name else word for word in example.split()])
    dump = arguments.dump(options, home, options.map)
    land(str(MELD), str(home.root), **dump.model_dump())
    with home.reader() as reader:
        assert reader.execute("SELECT messages_read, utterances FROM corpora").fetchall() == [(9_989, 9_989)]


@pytest.mark.parametrize("verb", ["ingest", "run"])
@pytest.mark.parametrize("percent", ["5", "101%", "-1%", "all"])
def test_a_quarantine_that_is_no_percentage(
    verb: str, percent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse([verb, "d.jsonl", f"--max-quarantine={percent}"])
    assert "is no percentage from 0% to 100%" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "share"), [([], 0.05), (["--max-quarantine", "12.5%"], 0.125)])
def test_a_quarantine_as_a_percentage(whole: Warehouse, file: Any, option: list[str], share: float) -> None:
    dump = file("d.jsonl", LINE)
    for verb in ("ingest", "run"):
        options = parse([verb, str(dump), *option])
        assert arguments.dump(options, whole, []).max_quarantine == share


# Evaluators


def test_unknown_evaluator_names_the_nearest(whole: Warehouse, says: Say, made: Made) -> None:
    assert "did you mean ssrem" in says("train", "srem", "--home", whole.root)
    assert "did you mean rsrem" in says("score", made.annotated, "--evaluator", "rsrm", "--home", whole.root)
    said = says("correlate", made.annotated, "--evaluator", "srem", "--home", whole.root)
    assert "did you mean ssrem" in said


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("epoch=3", "epoch"),
        ("epochs", "KEY=VALUE"),
        ("epochs=many", "epochs"),
        ("epochs=0", "epochs"),
        ("epochs=2.5", "epochs"),
        ("epochs=true", "epochs"),
        ("learning_rate=fast", "learning_rate"),
        ("reference=bleu", "reference"),
        ("seed=null", "seed"),
    ],
)
def test_wrong_settings(whole: Warehouse, says: Say, setting: str, named: str) -> None:
    assert named in says("train", "--set", setting, "--home", whole.root)


def test_unknown_encoder(own: Warehouse) -> None:
    from ssrem.errors import EvaluatorError
    from ssrem.tasks.training.train import train

    with pytest.raises(EvaluatorError, match="did you mean glove-6b-50d"):
        train("ssrem", ["tiny"], str(own.root), encoder="glove-6b-5d")


def test_nothing_before_training(tmp_path: Path, says: Say, made: Made) -> None:
    fresh = tmp_path / "fresh"
    named = ("--evaluator", "rsrem")
    assert "ssrem train rsrem" in says("correlate", made.annotated, *named, "--home", fresh)
    assert "ssrem train" in says("score", made.annotated, "--evaluator", "rsrem", "--home", fresh)
    assert "ssrem ingest" in says("train", "--home", fresh)
    assert "ssrem ingest" in says("tables", "--home", fresh)
    assert "ssrem run" in says("sql", "SELECT 1", "--home", fresh)
    assert not fresh.exists()


def test_scores_come_without_training(tmp_path: Path, made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """The packaged ssrem, and evaluators that learn nothing; neither makes a home folder."""
    fresh = tmp_path / "fresh"
    for name, part in (("ssrem", 1), ("bleu-2", 3)):
        assert main(["score", str(made.annotated), "--evaluator", name, "--home", str(fresh)]) == 0
        said = capsys.readouterr()
        rows = [line.split("\t") for line in said.out.splitlines()]
        assert rows[0] == ["row", "score", "f", "g", "h"]
        assert len(rows) == 31 and all(row[part] for row in rows[1:])
        assert ("comes with ssrem" in said.err) == (name == "ssrem")
    assert not fresh.exists()


def test_an_evaluator_is_carried_to_another_home(
    tmp_path: Path, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other = tmp_path / "x.ssrem", tmp_path / "other"
    assert main(["evaluators", "export", "rsrem", "--output", str(file), "--home", str(made.home.root)]) == 0
    assert capsys.readouterr().out.strip() == str(file)
    assert main(["evaluators", "import", str(file), "--home", str(other)]) == 0
    assert "rsrem: version 1 imported" in capsys.readouterr().out
    assert main(["evaluators", "import", str(file), "--home", str(other)]) == 0
    assert "rsrem: version 1 is there already" in capsys.readouterr().out


def test_what_cannot_be_carried(says: Say, made: Made, tmp_path: Path) -> None:
    home = made.home.root
    assert "versions: 1" in says("evaluators", "export", "ssrem", "--version", "7", "--home", home)
    assert "cannot be written" in says("evaluators", "export", "ssrem", "--output", ".", "--home", home)
    assert "does not exist" in says("evaluators", "import", tmp_path / "none.ssrem", "--home", home)
    assert "not what ssrem evaluators export wrote" in says(
        "evaluators", "import", made.annotated, "--home", home
    )


def test_a_model_that_was_changed_or_whose_encoder_is_gone(
    copy: Warehouse,
    says: Say,
    made: Made,
) -> None:
    encoder = copy.models / "ssrem" / "1" / "encoder"
    assert encoder.exists()  # the trained word vectors are kept with the model
    shutil.rmtree(encoder)
    assert "encoder" in says("score", made.annotated, "--evaluator", "ssrem", "--home", copy.root)
    weights = copy.models / "rsrem" / "1" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    assert "rsrem" in says("score", made.annotated, "--evaluator", "rsrem", "--home", copy.root)


# Annotated files


def rated(*ratings: str) -> str:
    """A file of a response a list of ratings."""
    rows = [f'{{"context": "hi", "response": "ho", "annotations": {{"overall": {r}}}}}' for r in ratings]
    return f"[{', '.join(rows)}]"


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (None, "does not exist"),
        ("", "is empty"),
        ("[]", "nothing to compare with"),
        ("not json", "line 1"),
        (rated("[1]", '["good"]'), "row 2"),
        (rated("[NaN]"), "1 rating given as N/A or left empty"),
        (rated("[]"), "1 response without any rating"),
        ('[{"context": "hi", "response": "ho"}]', "no ratings"),
        ('[{"context": "hi", "annotations": {"overall": [1]}}]', "1 row without a response"),
    ],
)
def test_broken_annotated_files(
    whole: Warehouse, says: Say, tmp_path: Path, content: str | None, named: str
) -> None:
    path = tmp_path / "broken_eval.json"
    if content is not None:
        path.write_text(content)
    said = says("correlate", path, "--home", whole.root)
    assert str(path) in said
    assert named in said


# SQL

REFUSED = [
    "DROP TABLE scores",
    "CREATE TABLE t AS SELECT 1",
    "INSERT INTO corpora SELECT * FROM corpora",
    "DELETE FROM corpora",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP VIEW scores",
    "",
    "not sql",
    "COPY corpora TO '{target}'",
    "COPY (SELECT 1) TO '{target}'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{target}'",
    "EXPORT DATABASE '{target}'",
    "ATTACH '{target}' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "SET VARIABLE x = 1",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM read_parquet('{secret}')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_json('https://example.org/x.json')",
    "SELECT * FROM statements",
]


@pytest.mark.parametrize("query", REFUSED)
def test_sql_cannot_write_or_reach_outside(whole: Warehouse, says: Say, tmp_path: Path, query: str) -> None:
    target, secret = tmp_path / "there", tmp_path / "secret.parquet"
    duckdb.sql("SELECT 1 AS hidden").write_parquet(str(secret))
    assert says("sql", query.format(target=target, secret=secret), "--home", whole.root)
    assert not target.exists()


def test_sql_error_is_short(whole: Warehouse, says: Say) -> None:
    said = says("sql", "SELECT *\nFROM scors", "--home", whole.root)
    assert "scors" in said
    assert "scores" in said
    assert "LINE" not in said


# Warehouse folders


def test_a_home_that_is_a_file(file: Any, one_line: Say) -> None:
    path = file("home", "something else")
    dump = file("d.jsonl", LINE)
    assert "--home" in one_line("ingest", dump, "--home", path)
    assert path.read_text() == "something else"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_home_that_cannot_be_written(tmp_path: Path, file: Any, one_line: Say) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "--home" in one_line("ingest", file("d.jsonl", LINE), "--home", closed / "home")


def test_a_home_of_another_layout(copy: Warehouse, says: Say) -> None:
    with duckdb.connect(str(copy.catalog)) as connection:
        connection.execute("UPDATE ssrem.home SET layout = 99")
    before = copy.catalog.read_bytes()
    for verb in (["status"], ["sql", "SELECT 1"], ["report"], ["train"]):
        assert "layout 99" in says(*verb, "--home", copy.root)
    assert copy.catalog.read_bytes() == before


def test_a_catalog_that_is_damaged(copy: Warehouse, says: Say) -> None:
    for manifest in copy.lake.glob("snapshot=*"):
        manifest.unlink()
    copy.catalog.write_bytes(b"no database at all")
    assert "catalog.duckdb" in says("status", "--home", copy.root)
    assert copy.catalog.read_bytes() == b"no database at all"


HOLD = """
import sys
from ssrem.tasks.warehouse.home import Warehouse
with Warehouse.at(sys.argv[1]).lock("train"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_home_that_another_process_writes_to(own: Warehouse, file: Any) -> None:
    from ssrem.tasks.ingest.land import land

    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(own.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(HomeError, match=rf"process {holder.pid} .*train"):
            land(str(file("new.jsonl", LINE)), str(own.root))
        assert main(["sql", "SELECT 1", "--home", str(own.root)]) == 0  # readers go on


# What it prints


def test_sql_shows_what_people_wrote_as_it_is(whole: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    query = (
        "SELECT '[bold]:smile:' || chr(27) || chr(10) AS text, 1234567 AS id, 1e-5 AS p, 2 AS p, NULL AS none"
    )
    assert main(["sql", query, "--home", str(whole.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 row"
    assert lines[1].split() == ["text", "id", "p", "p_1", "none"]
    assert lines[3].split() == ["[bold]:smile:\\x1b\\n", "1234567", "1e-05", "2", "–"]


def test_long_rows_stay_on_their_line_where_there_is_no_terminal(
    whole: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", "SELECT repeat('word ', 100) AS text, 1 AS n", "--home", str(whole.root)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_json_is_json_whatever_the_value(whole: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    query = (
        "SELECT 'NaN'::DOUBLE AS a, 1.5::DECIMAL(4, 1) AS b, TIMESTAMP '2020-01-02 03:04:05' AS c, "
        "'\\xFFx'::BLOB AS d, [1, 2] AS e, {'f': 1} AS g, DATE '2020-01-02' AS h, INTERVAL 1 DAY AS i"
    )
    assert main(["sql", query, "--json", "--home", str(whole.root)]) == 0
    (row,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert row == {
        "a": None,
        "b": 1.5,
        "c": "2020-01-02T03:04:05",
        "d": "\\xffx",
        "e": [1, 2],
        "g": {"f": 1},
        "h": "2020-01-02",
        "i": "1 day, 0:00:00",
    }


def test_no_rows(whole: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    query = ["sql", "SELECT corpus FROM corpora WHERE false", "--home", str(whole.root)]
    assert main(query) == 0
    assert capsys.readouterr().out == "no rows (corpus)\n"
    assert main([*query, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_score_prints_a_row_a_response(
    whole: Warehouse,
    made: Made,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    arguments = ["score", str(made.annotated), "--evaluator", "ssrem", "--home", str(whole.root)]
    assert main(arguments) == 0
    head, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert head == ["row", "score", "f", "g", "h"]
    assert [int(row[0]) for row in rows] == list(range(1, 31))
    assert main([*arguments, "--json", "--output", str(tmp_path / "out.jsonl")]) == 0
    assert capsys.readouterr().out == ""
    answers = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [f"{row['h']:.6f}" for row in answers] == [row[4] for row in rows]
    with whole.reader() as reader:
        stored = reader.execute(
            "SELECT s.h, e.signature FROM scores AS s INNER JOIN evaluators AS e USING (evaluator, version) "
            "WHERE s.evaluator = 'ssrem' AND s.kind = 'response' ORDER BY s.response_id::BIGINT"
        ).fetchall()
    assert [row["h"] for row in answers] == pytest.approx([h for h, _ in stored])
    assert {row["signature"] for row in answers} == {stored[0][1]}
    assert main([*arguments, "--output", str(tmp_path / "no" / "where")]) == 1
    assert "--output" in capsys.readouterr().err


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&-"])
def test_a_command_works_with_closed_streams(
    tmp_path: Path, write_dump: Callable[..., str], closed: str
) -> None:
    rows = [{"conversation_id": "c", "speaker": f"s{turn % 2}", "text": f"text {turn}"} for turn in range(4)]
    dump, home = write_dump(rows), tmp_path / "home"
    command = f"{sys.executable} -m ssrem.cli ingest {dump} --speakers person --home {home} {closed}"
    assert subprocess.run(command, shell=True, cwd=ROOT, check=False).returncode == 0
    assert Warehouse.at(home).query("SELECT count(*) FROM utterances") == [(4,)]
