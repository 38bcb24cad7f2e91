"""What a command imports before it answers: most of the time of a short answer are imports."""

from __future__ import annotations

import pytest

from support.stages import CORPUS, run_python, staging
from tasks.stage.stage import Output
from tasks.warehouse.home import Warehouse

HEAVY = ("duckdb", "pydantic", "numpy", "pyarrow", "polars", "scipy", "torch", "transformers", "prefect")

CODE = """
import sys
from flows.cli.main import main

try:
    main(sys.argv[2:])
except SystemExit:
    pass
print(*(name for name in sys.argv[1].split(",") if name in sys.modules))
"""


@pytest.mark.parametrize(
    ("arguments", "imported", "says"),
    [
        ("--help", "", ""),
        ("nonsense", "", "there is no verb 'nonsense'"),
        ("study lenght", "", "no study 'lenght'; did you mean length"),
        ("evaluators promote srem 1", "", "no evaluator 'srem'; did you mean ssrem"),
        ("run --evaluator srem", "", "no evaluator 'srem'; did you mean ssrem"),
        ("run --annotations none.json", "", "none.json does not exist"),
        ("correlate none.json", "", "none.json does not exist"),
        ("score none.json", "", "none.json does not exist"),
        ("validate none.json", "", "none.json does not exist"),
        ("validate README.md --require spearmen=.5", "", "there is no measure 'spearmen'; did you mean"),
        ("tables --encoder glove", "numpy", "no encoder or file 'glove'; did you mean glove-6b-50d"),
        ("train --encoder word2vec+file:none", "numpy", "none: no such file of word vectors"),
        ("negatives shuffle", "numpy", "no negatives 'shuffle'; did you mean shuffle-golden"),
        ("sql SELECT|1", "duckdb", ""),
        ("status", "duckdb", ""),
        ("tables --corpus b", "duckdb", "no corpus 'b' has landed in "),
        ("train --corpus b", "duckdb", "no corpus 'b' has landed in "),
        ("report --figures README.md", "duckdb", "cannot write figures into README.md"),
        ("ingest none.jsonl", "duckdb", "none.jsonl: there is no such file or folder"),
        ("run none.jsonl", "duckdb", "none.jsonl: there is no such file or folder"),
        ("ingest --inbox none", "duckdb pydantic", "none is not a folder"),
        ("evaluators promote ssrem 9", "duckdb", "ssrem has no version 9 in "),
        ("evaluators import none", "", "none does not exist; give what ssrem evaluators export wrote"),
        (
            "correlate fet",
            "numpy",
            "fet does not exist, and is no set that ssrem ratings list names; did you mean",
        ),
        ("ratings pull fet", "duckdb numpy", "there is no set 'fet'"),
        ("ratings import a.json --batch none", "", "none/key.json cannot be read"),
        ("reproduce nonsense", "", "a signature begins with ssrem-agreement/2, not with 'nonsense'"),
        ("home restore none", "duckdb", "none does not exist"),
        ("train ssrem --set epoch=1", "duckdb numpy", "no setting epoch; did you mean epochs"),
        ("negatives mask-and-fill --model ./none", "numpy", "model './none': no such folder"),
        ("forget nobody", "duckdb", "nobody is called 'nobody' in a"),
    ],
)
def test_an_answer_imports_little(home: Warehouse, arguments: str, imported: str, says: str) -> None:
    with staging(home, "ingest") as stage:
        stage.create("corpora")
        stage.connection.execute("INSERT INTO corpora BY NAME SELECT 'a' AS corpus")
        stage.publish([Output("corpora", CORPUS)])
    words = [word.replace("|", " ") for word in arguments.split()]
    where = [] if arguments in ("--help", "nonsense") else ["--home", str(home.root)]
    done = run_python(CODE, ",".join(HEAVY), *words, *where)
    assert done.stdout.splitlines()[-1] == imported, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == bool(says) and says in "".join(lines)
