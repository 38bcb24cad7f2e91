"""README.md and the pages of docs/ as a newcomer types them: every command and every block of Python runs as written.

docs/sql.md and docs/extending.md have tests of their own.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from ssrem.annotation.items import Batch
from ssrem.annotation.page import ANSWERS_FORMAT
from ssrem.cli import UsageError
from ssrem.cli.main import VERBS, app, main, parsed
from ssrem.errors import SsremError
from ssrem.evaluators import BASELINES
from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT, SHARED
from support.small_home import Made, annotated_rows, made, write_conversations

__all__ = ["made"]

PAGES = {
    str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
TESTED_ELSEWHERE = ("docs/sql.md", "docs/extending.md")
SHELL = re.compile(r" [<>|] |~/|answers-\*")
"""What a shell has to read: redirections, pipes, the home directory, patterns of files."""


@dataclass(frozen=True)
class Ran:
    """What shows that a command has worked. shows: a pattern in what it prints. rows: a query → its rows afterwards.

    file: one that exists afterwards. status: its exit status. slow: it takes long.
    """

    shows: str = ""
    rows: tuple[str, Sequence[Any]] | None = None
    file: str = ""
    status: int = 0
    slow: bool = False


LOGS = ("SELECT utterances, conversations FROM corpora WHERE corpus = 'logs'", [(8, 2)])
DUMP = ("SELECT utterances, quarantined FROM corpora WHERE corpus = 'dump'", [(400, 0)])


def evaluators_on(dataset: str, *names: str) -> tuple[str, list[tuple[str]]]:
    """The query of the evaluators on a set, and these names with the baselines'."""
    query = f"SELECT DISTINCT evaluator FROM correlations WHERE dataset = '{dataset}' ORDER BY ALL"
    return query, [(name,) for name in sorted({*names, *BASELINES})]


COMMANDS: dict[str, Ran] = {
    'ssrem score --context "What do you want to do tonight?" --response "Let\'s see a movie."': Ran(
        r"^-?\d\.\d{6}\n"
    ),
    "ssrem score answers.csv --map context=history response=answer reference=gold id=n > scores.tsv": Ran(
        "scored 30 of 30 responses", file="scores.tsv"
    ),
    "ssrem score responses.json": Ran(r"row\tscore\tf\tg\th\n1\t\S+\t\S+\t\t\n2\t"),
    "ssrem score responses.json --evaluator ssrem": Ran(r"row\tscore\tf\tg\th\n1\t"),
    "ssrem score responses.json --evaluator blend": Ran(r"row\tscore\tf\tg\th\n1\t", slow=True),
    "ssrem score responses.json --evaluator judge --set model=gpt-4o-mini --dry-run": Ran("requests"),
    "ssrem run dump.jsonl --annotations human_eval.json": Ran(r"report: ", DUMP, slow=True),
    "ssrem ingest dump.jsonl": Ran("landed dump, read as jsonl", DUMP),
    "ssrem tables": Ran("dump", ("SELECT count(*) FROM turns WHERE corpus = 'dump'", [(400,)])),
    "ssrem train ssrem rsrem": Ran(
        "version 2",
        ("SELECT max(version) FROM evaluators WHERE evaluator LIKE '%srem' GROUP BY evaluator", [(2,), (2,)]),
        slow=True,
    ),
    "ssrem correlate human_eval.json": Ran("human", evaluators_on("human", "rsrem", "ssrem")),
    "ssrem correlate human_eval.json --evaluator cosine bleu-2": Ran(
        "human", evaluators_on("human", "bleu-2"), slow=True
    ),
    "ssrem score-corpus --corpus dump --evaluator ssrem cosine": Ran(
        "dump: scored by cosine, ssrem",
        (
            "SELECT DISTINCT learned_from FROM identification WHERE corpus = 'dump' ORDER BY ALL",
            [("",), ("tiny",)],
        ),
        slow=True,
    ),
    "ssrem study behaviour": Ran(
        "behaviour", ("SELECT count(*) > 0 FROM studies WHERE study = 'behaviour'", [(True,)])
    ),
    "ssrem study attacks": Ran(
        "attacks", ("SELECT count(*) > 0 FROM studies WHERE study = 'attacks'", [(True,)]), slow=True
    ),
    "ssrem score responses.json > scores.tsv": Ran(file="scores.tsv"),
    "ssrem evaluators export ssrem": Ran("ssrem-1.ssrem", file="ssrem-1.ssrem"),
    "ssrem report --open": Ran(r"report\.html"),
    'ssrem sql "SELECT reason, count(*) FROM quarantine GROUP BY reason"': Ran("no rows|row"),
    "ssrem status": Ran("tiny"),
    "ssrem ingest dump.jsonl --retrain": Ran(r"ssrem: version \d", DUMP, slow=True),
    "ssrem ingest meld_train.csv --map conversation=Season+Episode+Dialogue_ID speaker=Speaker text=Utterance": Ran(
        "landed meld_train, read as csv",
        (
            "SELECT utterances, quarantined, conversations FROM corpora WHERE corpus = 'meld_train'",
            [(9_989, 0, 1_038)],
        ),
    ),
    "ssrem ingest logs/": Ran("landed logs, read as irc", LOGS),
    "ssrem ingest 'logs/2024-*.txt'": Ran("logs has this content already", LOGS),
    "zcat dump.csv.gz | ssrem ingest - --name dump": Ran("landed dump, read as csv", DUMP),
    "ssrem correlate mine_eval.json": Ran("mine", evaluators_on("mine", "rsrem", "ssrem")),
    "ssrem correlate scores.csv --map context=history response=answer score=Overall": Ran(
        "scores", evaluators_on("scores", "rsrem", "ssrem"), slow=True
    ),
    "ssrem validate human_eval.json": Ran(
        "page: human-validation.html", file="human-validation.html", slow=True
    ),
    "ssrem validate labels.csv --map score=label --evaluator ssrem": Ran(
        "best balance", file="labels-validation.html"
    ),
    "ssrem validate human_eval.json --evaluator cosine --pass 4 --precision .9 --output cosine.html": Ran(
        "precision 0.9", file="cosine.html"
    ),
    "ssrem validate labels.csv --map score=label --evaluator ssrem --require spearman=.2 low=.1 copied=.1": Ran(
        "ssrem: not met: spearman is ", status=1
    ),
    "ssrem validate labels.csv --map score=label --evaluator judge --set model=gpt-4o-mini --dry-run": Ran(
        "requests"
    ),
    "ssrem validate labels.csv --map score=label --evaluator ssrem --unlabelled responses.json": Ran(
        "the unlabelled responses"
    ),
    "ssrem ratings list": Ran("usr-topicalchat"),
    "ssrem correlate a.csv --map context=history response=answer score.overall=r1+r2+r3": Ran(
        "a ", evaluators_on("a", "rsrem", "ssrem"), slow=True
    ),
    "ssrem correlate b.tsv --map context=ctx response=hyp score=Fluency+Relevance separator='|||'": Ran(
        "b ", evaluators_on("b", "rsrem", "ssrem"), slow=True
    ),
    "ssrem correlate c.jsonl --map score=stars rater=worker criterion=question": Ran(
        "c ", evaluators_on("c", "rsrem", "ssrem")
    ),
    "ssrem run chats.csv --annotations d.csv --map speaker=who text=said context=before response=answer "
    "score=stars": Ran(
        "report: ", ("SELECT utterances FROM corpora WHERE corpus = 'chats'", [(400,)]), slow=True
    ),
    "ssrem ratings collect batch-1": Ran("ratings import", file="batch-1/raters/page.html"),
    "ssrem ratings import answers-*.json --batch batch-1": Ran(
        "3 kept of 3", file="batch-1/batch-1_eval.json"
    ),
    "ssrem correlate batch-1/batch-1_eval.json": Ran("batch-1", evaluators_on("batch-1", "rsrem", "ssrem")),
    "ssrem train ruber-unref --labels human_eval.json": Ran(
        "ruber-unref", ("SELECT count(*) FROM evaluators WHERE evaluator = 'ruber-unref'", [(1,)]), slow=True
    ),
    "ssrem evaluators export ssrem --output ssrem.ssrem": Ran(file="ssrem.ssrem"),
    "ssrem evaluators import ssrem.ssrem --home elsewhere": Ran("ssrem", file="elsewhere/models/ssrem/1"),
    'ssrem sql "SELECT evaluator, version, promoted, compared_with, why, comparison FROM evaluators"': Ran(
        "4 rows"
    ),
    "ssrem evaluators promote ssrem 3": Ran("version 3 is in use", slow=True),
    "ssrem evaluators rollback ssrem": Ran("is in use instead of version 3", slow=True),
    "mkdir -p -m 700 /backups/ /new/place": Ran(),
    "tar -cf /backups/ssrem.tar -C warehouse catalog.duckdb --exclude=./catalog.duckdb --exclude=./staging .": Ran(
        file="backups/ssrem.tar"
    ),
    "tar -xf /backups/ssrem.tar -C /new/place": Ran(file="new/place/catalog.duckdb"),
    "ssrem status --deep --home /new/place": Ran("tiny"),
    'python -c "import secrets; print(secrets.token_hex(32))" > ~/ssrem.key': Ran(file="ssrem.key"),
    "ssrem ingest dump.jsonl --pseudonymise --pseudonym-key ~/ssrem.key": Ran(
        "landed dump", ("SELECT count(*) FROM utterances WHERE corpus = 'dump' AND speaker LIKE 'p_'", [(0,)])
    ),
    "ssrem forget SPEAKER [--corpus NAME …]": Ran(
        rows=("SELECT count(*) FROM utterances WHERE speaker = 'p3'", [(0,)])
    ),
    "ssrem report": Ran(file="warehouse/reports/report.html"),
    "ssrem report --figures paper/": Ran(file="paper/table-agreement.tex", slow=True),
    "ssrem study length --of persona-zhao": Ran(
        "length", ("SELECT count(*) > 0 FROM studies WHERE dataset = 'persona-zhao'", [(True,)])
    ),
    "ssrem sql \"SELECT * FROM studies WHERE study = 'attacks' ORDER BY value DESC\"": Ran("rows"),
}
"""Command, without its comment → what shows that it has worked."""

ONLY_PARSED = {
    "ssrem score responses.json --evaluator judge --set model=gpt-4o-mini": "an endpoint",
    "ssrem correlate human_eval.json --evaluator judge --set model=gpt-4o-mini": "an endpoint",
    "ssrem validate human_eval.json --evaluator judge --set model=gpt-4o-mini": "an endpoint",
    "ssrem study injection --evaluator judge --set model=gpt-4o-mini --responses 50 --dry-run": "the judge's key",
    "ssrem study injection --evaluator judge --set model=gpt-4o-mini --responses 50": "an endpoint",
    'ssrem train blend-fast --set \'parts=ssrem-minilm+judge\' \'settings={"judge": {"model": "gpt-4o-mini"}}\' '
    "--labels human_eval.json --labels-only": "an endpoint",
    "ssrem score dailydialog-grade_eval.json --evaluator judge --set model=gemma3-270m "
    "base_url=http://localhost:8080/v1 concurrency=1 timeout=600": "an endpoint",
    "ssrem train roberta-eval --labels human_eval.json --labels-only": "a transformer",
    "ssrem train retrieval --set negatives=random-1+sc": "a transformer",
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
"""Command → what it needs that no test has; at least its options exist."""

NOT_OURS = ("make", "pip", "prefect", ".", "export")
"""First words of lines about other programs. tests/flows/test_server.py serves and deploys."""

SETUP = {
    "docs/studies.md": ["ssrem correlate persona-zhao_eval.json"],
    "docs/operations.md": ["ssrem train ssrem --seed 1", "ssrem train ssrem --seed 2"],
}
"""Page → what was typed before, according to the page."""

Block = tuple[str, int]


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


class Desk:
    """A folder with the files that the pages name, and a `warehouse` that `ssrem run` has filled."""

    def __init__(self, folder: Path, made: Made, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        shutil.copytree(made.home.root, folder / "warehouse")
        self.home = Warehouse.at(folder / "warehouse")
        write_files(folder)

    def ran(self, line: str) -> tuple[int, str]:
        """Exit status and output of a command, as a shell in the folder would run it."""
        line, _, file = line.partition(" > ") if line.startswith("ssrem ") else (line, "", "")
        if SHELL.search(line) or not line.startswith("ssrem "):
            shims = self.folder / "bin"
            shims.mkdir(exist_ok=True)
            for name, module in (("ssrem", "-m ssrem.cli "), ("python", "")):
                (shims / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module}"$@"\n')
                (shims / name).chmod(0o755)
            path = {
                "PATH": f"{shims}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "HOME": str(self.folder),
            }
            done = subprocess.run(
                ["bash", "-c", line], env={**os.environ, **path}, cwd=self.folder, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            return done.returncode, done.stdout + done.stderr
        self.capsys.readouterr()
        status = main(shlex.split(line)[1:])
        said = self.capsys.readouterr()
        if file:
            (self.folder / file).write_text(said.out, encoding="utf-8")
        return status, said.out + said.err

    def filled(self, line: str) -> str:
        """The command with values for its placeholders."""
        if "SIGNATURE" in line:
            ((signature,), *_) = self.home.query(
                "SELECT signature FROM agreement WHERE signature IS NOT NULL LIMIT 1"
            )
            line = line.replace("SIGNATURE", shlex.quote(signature))
        if "RUN RUN" in line:
            runs = [
                run for (run,) in self.home.query("SELECT run_id FROM runs ORDER BY started DESC LIMIT 2")
            ]
            line = line.replace("RUN RUN", " ".join(runs))
        line = line.replace("SPEAKER [--corpus NAME …]", "p3")
        return line.replace("/backups/", "backups/").replace("/new/place", "new/place")

    def type(self, line: str) -> None:
        """Run a command of a page, and look at what it did."""
        expected = COMMANDS[line]
        status, output = self.ran(self.filled(line))
        assert status == expected.status, output
        assert re.search(expected.shows, output), output
        if expected.file:
            assert (self.folder / expected.file).exists(), output
        if expected.rows:
            query, rows = expected.rows
            assert self.home.query(query) == rows
        if "ratings collect" in line:
            answer(self.folder / "batch-1", self.folder)


def write_files(folder: Path) -> None:
    """The files that the pages name."""
    write_conversations(folder / "dump.jsonl", conversations=40, people=8)
    rows = [json.loads(line) for line in (folder / "dump.jsonl").read_text().splitlines()]
    table = [[row["conversation_id"], row["speaker"], row["text"]] for row in rows]
    write_table(folder / "conversations.csv", ["conversation", "speaker", "text"], table)
    write_table(folder / "chats.csv", ["conversation", "who", "said"], table)
    with gzip.open(folder / "dump.csv.gz", "wb") as file:
        file.write((folder / "conversations.csv").read_bytes())
    (folder / "logs").mkdir()
    for day in ("2024-01-01", "2024-01-02"):
        lines = [
            f"[12:3{at}] <{nick}> hello, this is {day}" for at, nick in enumerate(("ann", "ben", "ann", "cy"))
        ]
        (folder / "logs" / f"{day}.txt").write_text("\n".join(lines) + "\n")
    rated = annotated_rows()
    for name in ("human", "mine", "persona-zhao"):
        (folder / f"{name}_eval.json").write_text(json.dumps(rated))
    samples = [{"context": row["context"], "response": row["response"]} for row in rated[:2]]
    (folder / "responses.json").write_text(json.dumps(samples))
    plain = [("\n".join(row["context"]), row["response"], row["annotations"]["overall"]) for row in rated]
    answers = [[n, *row[:2], rated[n]["reference"]] for n, row in enumerate(plain)]
    write_table(folder / "answers.csv", ["n", "history", "answer", "gold"], answers)
    write_table(folder / "scores.csv", ["history", "answer", "Overall"], [[c, r, s[0]] for c, r, s in plain])
    write_table(
        folder / "a.csv", ["history", "answer", "r1", "r2", "r3"], [[c, r, *s[:3]] for c, r, s in plain]
    )
    labels = [
        [c, r, "pass" if s[0] > 3 else "fail", row["model"]]
        for (c, r, s), row in zip(plain, rated, strict=True)
    ]
    write_table(folder / "labels.csv", ["context", "response", "label", "model"], labels)
    columns = ["ctx", "hyp", "Fluency", "Relevance"]
    write_table(folder / "b.tsv", columns, [[c.replace("\n", "|||"), r, *s[:2]] for c, r, s in plain], "\t")
    write_table(folder / "d.csv", ["before", "answer", "stars"], [[c, r, s[1]] for c, r, s in plain])
    ratings = [
        {
            "dialogue": number,
            "context": context,
            "response": response,
            "stars": score,
            "worker": rater,
            "question": "overall",
        }
        for number, (context, response, scores) in enumerate(plain)
        for rater, score in enumerate(scores)
    ]
    (folder / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ratings))
    if (meld := SHARED / "data" / "corpora" / "meld_train.csv").exists():
        (folder / "meld_train.csv").symlink_to(meld)


def write_table(
    path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]], delimiter: str = ","
) -> None:
    import csv

    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])


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
def desk(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    return Desk(tmp_path, made, capsys)


def needs(line: str) -> str | None:
    """What a command needs that is absent here; None if nothing is."""
    if "meld_train.csv" in line and not (SHARED / "data" / "corpora" / "meld_train.csv").exists():
        return "the MELD corpus"
    if "blend" in line:
        try:
            import gguf  # noqa: F401
        except ImportError:
            return "ssrem[lm]"
    return None


def test_every_command_is_listed_here_and_no_other() -> None:
    written = {line for lines in BLOCKS.values() for line in lines}
    assert written - COMMANDS.keys() - ONLY_PARSED.keys() == set(), (
        "commands of the docs without an expectation"
    )
    typed = {line for lines in SETUP.values() for line in lines}
    assert (COMMANDS.keys() | ONLY_PARSED.keys()) - written - typed == set(), (
        "commands that no page shows any more"
    )


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block[0]}-{block[1]}")
def test_commands(block: Block, desk: Desk) -> None:
    lines = [
        line for line in BLOCKS[block] if line in COMMANDS and not COMMANDS[line].slow and not needs(line)
    ]
    if not lines:
        pytest.skip("all of them take long, or need what is not here")
    if any("stud" in line for line in lines) and block[0] in SETUP:
        for line in SETUP[block[0]]:
            assert desk.ran(line)[0] == 0
    for line in lines:
        desk.type(line)


SLOW = [
    (block, line)
    for block, lines in BLOCKS.items()
    for line in lines
    if line in COMMANDS and COMMANDS[line].slow
]


@pytest.mark.slow
@pytest.mark.parametrize(("block", "line"), SLOW, ids=lambda value: value if isinstance(value, str) else "")
def test_slow_commands(block: Block, line: str, desk: Desk) -> None:
    if absent := needs(line):
        pytest.skip(f"needs {absent}")
    before = BLOCKS[block][: BLOCKS[block].index(line)]
    ingest = [
        one for one in before if one.startswith(("ssrem ingest", "ssrem tables", "ssrem evaluators promote"))
    ]
    for one in (*SETUP.get(block[0], ()), *ingest):
        assert desk.ran(one)[0] == 0
    desk.type(line)


@pytest.mark.parametrize("line", [*ONLY_PARSED, *(line for line in COMMANDS if COMMANDS[line].slow)])
def test_other_commands_have_these_options(line: str) -> None:
    try:
        parsed(shlex.split(line)[1:])
    except SsremError as error:  # of a file or name that is not there
        assert not isinstance(error, UsageError)


def test_make_has_the_targets() -> None:
    lines = [line for lines in blocks("sh").values() for line in lines if line.startswith("make ")]
    assert lines
    for line in lines:
        subprocess.run(["make", "-n", line.split()[1]], cwd=ROOT, check=True, capture_output=True)


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


def options_of(verb: str) -> set[str]:
    """The options that a verb takes."""
    known = reduce(getitem, verb.split(), app()).assemble_argument_collection()
    return {name for argument in known for name in argument.names}


PYTHON = blocks("python")
SHOWN: dict[Block, Callable[[dict[str, Any]], bool]] = {
    ("docs/figures.md", 0): lambda names: (
        names["better"].difference > 0 and 0 < names["at_all"].p < names["better"].p <= 1
    ),
    ("docs/python.md", 0): lambda names: names["model"].evaluator.name == "ssrem",
    ("docs/python.md", 1): lambda names: len(names["chats"].frames["turns"]) == 4,
    ("docs/python.md", 2): lambda names: len(names["chats"].sets["SC"]) == 400,
    ("docs/python.md", 3): lambda names: Path("my-ssrem/evaluator.json").exists(),
}


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: f"{block[0]}-{block[1]}")
def test_python(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    names: dict[str, Any] = {}
    exec(compile("\n".join(PYTHON[block]), f"{block[0]}-{block[1]}", "exec"), names)
    assert SHOWN.get(block, lambda names: "ssrem" in names or "evaluator" in names)(names)
