"""README.md and the pages of docs/ as a newcomer types them: every command and every block of Python runs as written.

docs/sql.md and docs/extending.md have tests of their own.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from ssrem.annotation.batch import Batch
from ssrem.annotation.sheets import ANSWERS_FORMAT
from ssrem.cli import UsageError
from ssrem.cli.main import VERBS, app, main, parsed
from ssrem.errors import SsremError
from ssrem.evaluators import BEST_PACKAGED
from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT, SHARED
from support.small_home import Made, annotated_rows, draw_little, write_conversations

MELD = SHARED / "data" / "corpora" / "meld_train.csv"

PAGES = {
    str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
TESTED_ELSEWHERE = ("docs/sql.md", "docs/extending.md")

SLOW = {
    "ssrem score responses.json --evaluator blend",
    "ssrem run dump.jsonl --annotations human_eval.json",
    "ssrem train ssrem rsrem",
    "ssrem correlate human_eval.json --evaluator cosine bleu-2",
    "ssrem score-corpus --corpus dump --evaluator ssrem cosine",
    "ssrem study attacks",
    "ssrem ingest dump.jsonl --retrain",
    "ssrem correlate scores.csv --map context=history response=answer score=Overall",
    "ssrem validate human_eval.json --evaluator ssrem",
    "ssrem correlate a.csv --map context=history response=answer score.overall=r1+r2+r3",
    "ssrem correlate b.tsv --map context=ctx response=hyp score=Fluency+Relevance separator='|||'",
    "ssrem run chats.csv --annotations d.csv --map speaker=who text=said context=before response=answer score=stars",
    "ssrem train ruber-unref --labels human_eval.json",
    "ssrem evaluators promote ssrem 3",
    "ssrem evaluators rollback ssrem",
    "ssrem report --figures paper/",
}
"""Commands that take long; only the slow tests run them."""

FAILS = "ssrem validate labels.csv --map score=label --evaluator ssrem --require spearman=.2 low=.1 copied=.1"
"""A command that shows the exit status 1."""

ONLY_PARSED = {
    "ssrem score responses.json --evaluator judge --set model=gpt-4o-mini": "an endpoint",
    "ssrem correlate human_eval.json --evaluator judge --set model=gpt-4o-mini": "an endpoint",
    "ssrem validate human_eval.json --evaluator judge --set model=gpt-4o-mini": "an endpoint",
    "ssrem study injection --evaluator judge --set model=gpt-4o-mini --responses 50": "an endpoint",
    "ssrem train blend-fast --set parts=@blend.toml --labels human_eval.json --labels-only": "an endpoint",
    "ssrem train blend-fast --labels-from judge --responses 1000": "an endpoint",
    "ssrem score dailydialog-grade_eval.json --evaluator judge --set model=gemma3-270m "
    "base_url=http://localhost:8080/v1 concurrency=1 timeout=600": "an endpoint",
    "ssrem train roberta-eval --labels human_eval.json --labels-only": "a transformer",
    "ssrem train retrieval --set negatives=random-1+sc": "a transformer",
    "ssrem train retrieval --set model=all-mpnet-base-v2 prior=none negatives=random-2 freeze=0 rank=8 contexts=51200 "
    "valid_contexts=1000 epochs=1 batch_size=64 learning_rate=5e-4": "a GPU",
    "ssrem train ssrem-minilm": "more than an hour",
    "ssrem train blend-fast --labels one_eval.json two_eval.json": "a transformer",
    "ssrem train blend-fast --labels labels.csv --map score=label --labels-only": "a transformer",
    "ssrem train lm": "hours",
    "ssrem train lm-pmi --set model=FOLDER": "a language model",
    "ssrem train masked-lm": "hours",
    "ssrem train masked-lm --init bert-base-uncased --set freeze=8 steps=1000": "the network",
    "ssrem negatives random-2+mask-and-fill --responses 2000": "fine-tunes a transformer",
    "ssrem ingest hf://datasets/ORG/NAME/train.parquet": "the network",
    "ssrem ratings pull fed usr-topicalchat": "the network",
    "ssrem correlate fed usr-topicalchat": "what was pulled",
}
"""Command → what it needs that no test has; at least its options exist. All others are run."""

LANDS = ("ssrem ingest", "ssrem tables", "ssrem evaluators promote")
"""What a command may need that was typed before it in the same block."""

NOT_OURS = ("make", "pip", "prefect", ".", "export", "until")
"""First words of lines about other programs. tests/flows/test_server.py serves and deploys."""

SETUP = {
    "docs/studies.md": ["ssrem correlate persona-zhao_eval.json"],
    "docs/operations.md": ["ssrem train ssrem --seed 1", "ssrem train ssrem --seed 2"],
}
"""Page → what was typed before, according to the page."""

Block, Patch, Capture = tuple[str, int], pytest.MonkeyPatch, pytest.CaptureFixture[str]


def blocks(language: str) -> dict[Block, list[str]]:
    """(Page, number) of each block in that language → its lines without comments; blocks of no command are left out."""
    found: dict[Block, list[str]] = {}
    for page, path in PAGES.items():
        texts = re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        if page not in TESTED_ELSEWHERE:
            found |= {(page, number): text.splitlines() for number, text in enumerate(texts)}
    return found


def commands(lines: Sequence[str]) -> list[str]:
    """The commands of a block, without their comments."""
    bare = [re.sub(r"(^|\s+)#\s.*$", "", line).rstrip() for line in lines]
    return [line for line in bare if line and line.split()[0] not in NOT_OURS]


BLOCKS = {block: commands(lines) for block, lines in blocks("sh").items() if commands(lines)}


def run_once() -> dict[Block, list[str]]:
    """Block → its commands that no block before it has, and, if there are any, those that land something."""
    found: dict[Block, list[str]] = {}
    left_out, seen = {*SLOW, *ONLY_PARSED}, set[str]()
    for block, lines in BLOCKS.items():
        new = [line for line in lines if line.partition(" > ")[0] not in left_out | seen]
        if new:
            lands = {line for line in lines if line.startswith(LANDS)} - left_out
            found[block] = [line for line in lines if line in lands.union(new)]
        seen |= {line.partition(" > ")[0] for line in lines}
    return found


RUN = run_once()


class Desk:
    """A folder with the files that the pages name, and a `warehouse` that `ssrem run` has filled."""

    def __init__(self, folder: Path, made: Made, capsys: Capture) -> None:
        self.folder, self.capsys = folder, capsys
        shutil.copytree(made.home.root, folder / "warehouse")
        self.home = Warehouse.at(folder / "warehouse")
        write_files(folder)

    def ran(self, line: str) -> tuple[int, str]:
        """Exit status and output of a command, as a shell in the folder would run it."""
        line, _, file = line.partition(" > ") if line.startswith("ssrem ") else (line, "", "")
        if " | " in line or not line.startswith("ssrem "):
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
            shell = ["bash", "-c", line]
            done = subprocess.run(shell, check=False, env=environment, capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr
        self.capsys.readouterr()
        status = main(shlex.split(line)[1:])
        said = self.capsys.readouterr()
        if file:
            (self.folder / file).write_text(said.out, encoding="utf-8")
        return status, said.out + said.err

    def filled(self, line: str) -> str:
        """The command with values for its placeholders."""
        answers = " ".join(path.name for path in self.folder.glob("answers-*.json"))
        line = line.replace("SPEAKER [--corpus NAME …]", "p3").replace("answers-*.json", answers)
        line = line.replace("/backups/", "backups/").replace("/new/place", "new/place")
        return line.replace("~/", f"{self.folder}/")

    def type(self, line: str) -> None:
        """Run a command of a page, which must work."""
        status, output = self.ran(self.filled(line))
        assert status == (line == FAILS), output
        if "ratings collect" in line:
            answer(self.folder / "batch-1", self.folder)


def write_files(folder: Path) -> None:
    """The files that the pages name."""
    write_conversations(folder / "dump.jsonl", conversations=40, people=8)
    rows = [json.loads(line) for line in (folder / "dump.jsonl").read_text().splitlines()]
    table = [[row["conversation_id"], row["speaker"], row["text"]] for row in rows]
    write_table(folder / "conversations.csv", "conversation speaker text", table)
    write_table(folder / "chats.csv", "conversation who said", table)
    with gzip.open(folder / "dump.csv.gz", "wb") as file:
        file.write((folder / "conversations.csv").read_bytes())
    (folder / "logs").mkdir()
    for day in ("2024-01-01", "2024-01-02"):
        said = [f"[12:3{at}] <{nick}> hello, this is {day}\n" for at, nick in enumerate(["ann", "ben"] * 2)]
        (folder / "logs" / f"{day}.txt").write_text("".join(said))
    rated = annotated_rows()
    (folder / "human_eval.json").write_text(json.dumps(rated))
    samples = [{"context": row["context"], "response": row["response"]} for row in rated]
    (folder / "responses.json").write_text(json.dumps(samples[:2]))
    one = [sample | {"annotations": {"overall": [n % 5]}} for n, sample in enumerate(samples)]
    for name in ("mine", "persona-zhao"):  # with one rater and no systems, few figures are to be computed
        (folder / f"{name}_eval.json").write_text(json.dumps(one))
    plain = [("\n".join(row["context"]), row["response"], row["annotations"]["overall"]) for row in rated]
    answers = [[n, *plain[n][:2], rated[n]["reference"]] for n in range(4)]
    write_table(folder / "answers.csv", "n history answer gold", answers)
    write_table(folder / "scores.csv", "history answer Overall", [[c, r, s[0]] for c, r, s in plain])
    write_table(folder / "a.csv", "history answer r1 r2 r3", [[c, r, *s[:3]] for c, r, s in plain])
    labels = [
        [c, r, "pass" if s[0] > 3 else "fail", row["model"], "yes" if s[1] > 3 else "no"]
        for (c, r, s), row in zip(plain, rated, strict=True)
    ]
    write_table(folder / "labels.csv", "context response label model verdict", labels)
    several = [[c.replace("\n", "|||"), r, *s[:2]] for c, r, s in plain]
    write_table(folder / "b.tsv", "ctx hyp Fluency Relevance", several, "\t")
    write_table(folder / "d.csv", "before answer stars", [[c, r, s[1]] for c, r, s in plain])
    columns = ("dialogue", "context", "response", "stars", "worker", "question")
    ratings = [
        dict(zip(columns, (number, context, response, score, rater, "overall"), strict=True))
        for number, (context, response, scores) in enumerate(plain)
        for rater, score in enumerate(scores)
    ]
    (folder / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ratings))
    if MELD.exists():
        (folder / MELD.name).symlink_to(MELD)


def write_table(path: Path, header: str, rows: Sequence[Sequence[Any]], delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([header.split(), *rows])


def answer(batch_folder: Path, folder: Path) -> None:
    """What three raters saved, who pass the checks and agree."""
    batch = Batch.from_json((batch_folder / "key.json").read_text(), "key.json")
    items = batch.by_id
    for rater, sheet in batch.sheets.items():
        scores = [(one, items[one].expected or [1 + len(items[one].response) % 5]) for one in sheet]
        answers = [{"item": one, "score": score[0]} for one, score in scores]
        saved = {"format": ANSWERS_FORMAT, "batch": batch.id, "rater": rater, "answers": answers}
        (folder / f"answers-{rater}.json").write_text(json.dumps(saved))


@pytest.fixture
def desk(made: Made, tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> Desk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    return Desk(tmp_path, made, capsys)


def compute_little(patch: Patch) -> None:
    """Leave out most figures of agreement, and most draws of intervals."""
    patch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
    for module in ("agreement.figures", "studies.estimates", "validation.validation"):
        patch.setattr(f"ssrem.{module}.RESAMPLES", 100)


def needs(line: str) -> str | None:
    """What a command needs that is absent here; None if nothing is."""
    if MELD.name in line and not MELD.exists():
        return "the MELD corpus"
    if "blend" in line:
        try:
            import gguf  # noqa: F401
        except ImportError:
            return "ssrem[lm]"
    return None


def test_no_command_is_listed_here_that_no_page_shows() -> None:
    assert {FAILS, *SLOW, *ONLY_PARSED} <= {line for lines in BLOCKS.values() for line in lines}


@pytest.mark.parametrize("block", RUN, ids=lambda block: f"{block[0]}-{block[1]}")
def test_commands(block: Block, desk: Desk, monkeypatch: Patch) -> None:
    draw_little(monkeypatch)
    compute_little(monkeypatch)
    for larger in ("blend", "blend-base"):  # which take long to load; slow commands have `blend`
        monkeypatch.delitem(BEST_PACKAGED, larger)
    lines = [line for line in RUN[block] if not needs(line)]
    if not lines:
        pytest.skip("they need what is not here")
    before = SETUP.get(block[0], []) if any("stud" in line for line in lines) else []
    for line in (*before, *lines):
        desk.type(line)
    if MELD.name in str(lines):
        landed = "SELECT messages_read, utterances FROM corpora WHERE corpus = 'meld_train'"
        assert desk.home.query(landed) == [(9_989, 9_989)]


@pytest.mark.slow
@pytest.mark.parametrize("line", sorted(SLOW))
def test_slow_commands(line: str, desk: Desk) -> None:
    if absent := needs(line):
        pytest.skip(f"needs {absent}")
    block = next(block for block, lines in BLOCKS.items() if line in lines)
    before = BLOCKS[block][: BLOCKS[block].index(line)]
    for one in (*SETUP.get(block[0], ()), *(one for one in before if one.startswith(LANDS)), line):
        desk.type(one)


@pytest.mark.parametrize("line", [*ONLY_PARSED, *sorted(SLOW)])
def test_other_commands_have_these_options(line: str) -> None:
    try:
        parsed(shlex.split(line)[1:])
    except SsremError as error:  # of a file or name that is not there
        assert not isinstance(error, UsageError)


def test_make_has_the_targets() -> None:
    lines = [line for lines in blocks("sh").values() for line in lines if line.startswith("make ")]
    targets = {line.split()[1] for line in lines}
    assert targets
    subprocess.run(["make", "-n", *targets], cwd=ROOT, check=True, capture_output=True)


def test_mentions_in_the_text_are_of_verbs_and_options_that_exist() -> None:
    mentions = 0
    for path in PAGES.values():
        for words in map(str.split, re.findall(r"`ssrem ([a-z][^`\n]*)`", path.read_text(encoding="utf-8"))):
            verb = next((name for name in (" ".join(words[:2]), words[0]) if name in VERBS), None)
            group = any(name.startswith(f"{words[0]} ") for name in VERBS)
            assert verb or group, f"{path.name}: ssrem {' '.join(words)}"
            options = [word.partition("=")[0] for word in words if word.startswith("--")]
            known = options_of(verb) if verb else set(options)
            assert set(options) <= known, f"{path.name}: ssrem {' '.join(words)}"
            mentions += 1
    assert mentions > 50


@cache
def options_of(verb: str) -> set[str]:
    """The options that a verb takes."""
    known = reduce(getitem, verb.split(), app()).assemble_argument_collection()
    return {name for argument in known for name in argument.names}


PYTHON = blocks("python")
SHOWN: dict[Block, Callable[[dict[str, Any]], bool]] = {
    ("docs/figures.md", 0): lambda names: names["better"].difference > 0 and 0 < names["better"].p <= 1,
    ("docs/figures.md", 1): lambda names: names["better"].low > 0,
    ("docs/python.md", 0): lambda names: names["model"].evaluator.name == "ssrem",
    ("docs/python.md", 1): lambda names: len(names["chats"].frames["turns"]) == 4,
    ("docs/python.md", 2): lambda names: len(names["chats"].sets["SC"]) == 400,
    ("docs/python.md", 3): lambda names: Path("my-ssrem/evaluator.json").exists(),
}


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: f"{block[0]}-{block[1]}")
def test_python(block: Block, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    names: dict[str, Any] = {}
    exec(compile("\n".join(PYTHON[block]), f"{block[0]}-{block[1]}", "exec"), names)
    assert SHOWN.get(block, lambda names: "ssrem" in names or "evaluator" in names)(names)
