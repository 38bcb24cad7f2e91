"""What a command imports before it answers: most of the time of a short answer are imports."""

from __future__ import annotations

import json

import pytest

from ssrem.tasks.stage.stage import Output
from ssrem.tasks.warehouse.home import Warehouse
from support.stages import CORPUS, run_python, staging

HEAVY = ("duckdb", "pydantic", "numpy", "pyarrow", "polars", "scipy", "torch", "transformers", "prefect")

CODE = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from ssrem.cli.main import main

heavy, *lines = sys.argv[1:]
for line in lines:
    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(json.loads(line))
    except SystemExit:
        pass
    print(json.dumps([err.getvalue(), [name for name in heavy.split(",") if name in sys.modules]]))
"""

ANSWERS = {
    "": {
        "--help": "",
        "nonsense": "there is no verb 'nonsense'",
        "study lenght": "no study 'lenght'; did you mean length",
        "evaluators promote srem 1": "no evaluator 'srem'; did you mean ssrem",
        "run --evaluator srem": "no evaluator 'srem'; did you mean ssrem",
        "run --annotations none.json": "none.json does not exist",
        "correlate none.json": "none.json does not exist",
        "score none.json": "none.json does not exist",
        "validate none.json": "none.json does not exist",
        "validate README.md --require spearmen=.5": "there is no measure 'spearmen'; did you mean",
        "evaluators import none": "none does not exist; give what ssrem evaluators export wrote",
        "ratings import a.json --batch none": "none/key.json cannot be read",
        "reproduce nonsense": "a signature begins with ssrem-agreement/2, not with 'nonsense'",
    },
    "numpy": {
        "tables --encoder glove": "no encoder or file 'glove'; did you mean glove-6b-50d",
        "train --encoder word2vec+file:none": "none: no such file of word vectors",
        "tables --encoder file:~nouser/x": "~nouser/x: the home folder ~nouser is not known",
        "negatives shuffle": "no negatives 'shuffle'; did you mean shuffle-golden",
        "negatives mask-and-fill --model ./none": "model './none': no such folder",
        "correlate fet": "fet does not exist, and is no set that ssrem ratings list names; did you mean",
    },
    "duckdb": {
        "sql SELECT|1": "",
        "status": "",
        "tables --corpus b": "no corpus 'b' has landed in ",
        "train --corpus b": "no corpus 'b' has landed in ",
        "report --figures README.md": "cannot write figures into README.md",
        "report --figures ~nouser/x": "~nouser/x: the home folder ~nouser is not known",
        "ingest none.jsonl": "none.jsonl: there is no such file or folder",
        "run none.jsonl": "none.jsonl: there is no such file or folder",
        "evaluators promote ssrem 9": "ssrem has no version 9 in ",
        "home restore none": "none does not exist",
        "forget nobody": "nobody is called 'nobody' in a",
    },
    "duckdb pydantic": {"ingest --inbox none": "none is not a folder"},
    "duckdb numpy": {
        "ratings pull fet": "there is no set 'fet'",
        "train ssrem --set epoch=1": "no setting epoch; did you mean epochs",
    },
}
"""What is imported by each of the commands → the command → what it says."""


@pytest.mark.parametrize("imported", ANSWERS)
def test_an_answer_imports_little(home: Warehouse, imported: str) -> None:
    with staging(home, "ingest") as stage:
        stage.create("corpora")
        stage.connection.execute("INSERT INTO corpora BY NAME SELECT 'a' AS corpus")
        stage.publish([Output("corpora", CORPUS)])
    lines = []
    for arguments in ANSWERS[imported]:
        where = [] if arguments in ("--help", "nonsense") else ["--home", str(home.root)]
        lines.append(json.dumps([*(word.replace("|", " ") for word in arguments.split()), *where]))
    done = run_python(CODE, ",".join(HEAVY), *lines)
    assert (done.returncode, done.stderr) == (0, "")
    answers = map(json.loads, done.stdout.splitlines())
    for (arguments, says), (said, modules) in zip(ANSWERS[imported].items(), answers, strict=True):
        assert modules == imported.split(), arguments
        assert len(said.splitlines()) == bool(says) and says in said, arguments
