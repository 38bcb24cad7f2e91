"""What a command imports before it answers: most of the time of a short answer are imports."""

from __future__ import annotations

import json

from ssrem.tasks.warehouse.home import Warehouse
from support.stages import publish, run_python

HEAVY = ("pydantic", "duckdb", "numpy", "pyarrow", "polars", "scipy", "torch", "transformers", "prefect")

CODE = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from ssrem.cli.main import main

heavy, *lines = sys.argv[1:]
for line in lines:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(json.loads(line))
    print(json.dumps([status, err.getvalue(), [name for name in heavy.split(",") if name in sys.modules]]))
"""

ANSWERS = {
    "": {
        "--help": "",
        "nonsense": "there is no verb 'nonsense'",
        "evaluators promot": "there is no verb 'promot'; did you mean promote?; see ssrem evaluators --help",
    },
    "pydantic": {
        "validate --help": "",
        "train --help": "",
        "tables --sed 3": "did you mean --seed",
        "run --addressees stted": "input should be 'all' or 'stated', not 'stted'; did you mean stated?",
        "study lenght": "no study 'lenght'; did you mean length?; the studies are behaviour, attacks, ",
        "evaluators promote srem 1": "no evaluator 'srem'; did you mean ssrem",
        "run --evaluator srem": "no evaluator 'srem'; did you mean ssrem",
        "validate README.md --require spearmen=.5": "no measure 'spearmen'; did you mean spearman or pearson?",
    },
    "pydantic duckdb": {
        "evaluators import none": "none does not exist; give what ssrem evaluators export wrote",
        "sql SELECT|1": "",
        "status": "",
        "report --figures README.md": "cannot write figures into README.md",
    },
    "pydantic duckdb numpy": {
        "ratings collect --help": "",
        "tables --encoder glove": "no encoder or file 'glove'; did you mean glove-6b-50d",
        "negatives shuffle": "no negatives 'shuffle'; did you mean shuffle-golden",
        "run --annotations none.json": "none.json does not exist",
        "correlate fet": "fet does not exist, and is no set that ssrem ratings list names; did you mean fed?",
        "ratings pull fet": "there is no set 'fet'; did you mean fed?",
    },
}
"""What is imported at most by each of the commands → the command → what it says."""


def test_an_answer_imports_little(home: Warehouse) -> None:
    """One process gives all answers, in the order in which more is imported."""
    publish(home.root, 1)
    cases = [(imported, *answer) for imported, answers in ANSWERS.items() for answer in answers.items()]
    lines = []
    for imported, arguments, _ in cases:
        where = [] if not imported or "--help" in arguments else ["--home", str(home.root)]
        lines.append(json.dumps([*(word.replace("|", " ") for word in arguments.split()), *where]))
    done = run_python(CODE, ",".join(HEAVY), *lines)
    assert (done.returncode, done.stderr) == (0, "")
    answers = map(json.loads, done.stdout.splitlines())
    for (imported, arguments, says), (status, said, modules) in zip(cases, answers, strict=True):
        assert set(modules) <= set(imported.split()), arguments
        assert len(said.splitlines()) == bool(says) == bool(status) and says in said, arguments
