"""What `pip install ssrem` alone can do, and what it says where more is needed: `make test-core` runs this where
nothing but the core is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ssrem.extras import EXTRA_OF

pytestmark = pytest.mark.skipif(
    find_spec("torch") is not None, reason="for an environment with the core alone: make test-core"
)

TOOLS = {"pip", "setuptools", "wheel", "pytest", "pluggy", "iniconfig"}
"""Packages that run the tests, which are no part of the core."""

LARGEST = 700e6
"""Most bytes that the core may take, installed; 14 MB of them are packaged weights."""

SAID = ("do you cook pizza", "yes i like cheese", "my guitar is great", "the beach", "ok")
MESSAGES = [
    {"conversation_id": f"c{n}", "speaker": f"p{(n + at % 2 * (1 + n % 4)) % 9}", "text": f"{text} {at % 3}"}
    for n in range(40)
    for at, text in enumerate(SAID)
]
RATED = [
    {
        "dialogue_id": str(n),
        "context": "do you cook\nyes i do",
        "response": ("i like pizza", "the guitar", "no", "yes i cook every day")[n % 4],
        "reference": "yes i cook pizza",
        "annotations": {"overall": [1 + n % 4, 1 + (n + 1) % 4]},
    }
    for n in range(24)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dump and an annotated set."""
    folder = tmp_path_factory.mktemp("core")
    (folder / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in MESSAGES))
    (folder / "people_eval.json").write_text(json.dumps(RATED))
    (folder / "responses.json").write_text(json.dumps(RATED[:4]))
    return folder


def ssrem(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SSREM_")}
    command = [sys.executable, "-m", "ssrem", *arguments, "--home", "home"]
    how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120}
    return subprocess.run(command, cwd=folder, env=environment, check=False, **how)


def test_nothing_that_an_extra_brings_is_installed_and_the_core_is_small() -> None:
    assert [module for module in EXTRA_OF if find_spec(module)] == []
    files = {
        Path(str(file.locate()))
        for package in metadata.distributions()
        if package.name.lower() not in TOOLS
        for file in package.files or ()
    }
    assert sum(file.stat().st_size for file in files if file.is_file()) < LARGEST


def test_the_wheel_puts_nothing_beside_the_package() -> None:
    files = metadata.distribution("ssrem").files or []
    outside = {file.parts[0] for file in files} - {"ssrem"}
    assert {name for name in outside if not name.endswith(".dist-info") and name != ".."} == set()
    assert {str(file) for file in files if file.parts[0] == ".."} == {"../../../bin/ssrem"}


def test_dumps_tables_sql_statistics_reports_validation_and_scores_need_no_more(folder: Path) -> None:
    for arguments in (
        ("ingest", "dump.jsonl"),
        ("tables",),
        ("negatives", "random-2"),
        ("correlate", "people_eval.json"),
        ("correlate", "people_eval.json", "--evaluator", "rouge-l"),
        ("validate", "people_eval.json", "--pass", "3"),
        ("report",),
        ("status", "--deep"),
    ):
        said = ssrem(folder, *arguments)
        assert said.returncode == 0, (arguments, said.stderr)
    assert "<svg" in (folder / "home" / "reports" / "report.html").read_text()
    answer = ssrem(folder, "sql", "SELECT DISTINCT evaluator FROM agreement ORDER BY ALL", "--json")
    assert json.loads(answer.stdout) == [{"evaluator": name} for name in ("length", "rouge-l", "ssrem")]
    scored = ssrem(folder, "score", "responses.json", "--json")
    rows = [json.loads(line) for line in scored.stdout.splitlines()]
    assert all(0 <= row["g"] <= 1 and row["f"] is not None for row in rows)


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("train", "ssrem"), "train"),
        (("run",), "train"),
        (("score", "responses.json", "--evaluator", "blend-fast"), "train"),
        (("score", "responses.json", "--evaluator", "cosine"), "train"),
        (("score", "responses.json", "--evaluator", "bleu-2"), "train"),
        (("score", "responses.json", "--evaluator", "lm-pmi"), "lm"),
        (("score", "responses.json", "--evaluator", "judge", "--set", "model=m"), "judge"),
    ],
)
def test_what_needs_more_says_which_extra_in_one_line(
    folder: Path, arguments: tuple[str, ...], extra: str
) -> None:
    said = ssrem(folder, *arguments)
    assert said.returncode in (1, 2)
    line = said.stderr.splitlines()[-1]
    assert f"pip install 'ssrem[{extra}]'" in line, said.stderr
    assert "Traceback" not in said.stderr
