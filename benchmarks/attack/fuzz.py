"""Mutated dumps, annotated sets, archives of evaluators, SQL and command lines: each is read, or refused in one line.

Every input has a seed of its own, KIND and number, so that each finding can be repeated alone. The functions that the
commands call are called in one process, at hundreds to thousands a second.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import re
import shutil
import signal
import threading
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet

from benchmarks.attack.bench import VERBS, Bench
from flows.cli.parser import parse
from schemas import TABLES
from ssrem.annotated_sets import LAYOUTS, read_set
from ssrem.errors import SsremError
from ssrem.evaluators.core.archive import unpack
from ssrem.readers import FORMATS, open_dump
from tasks.ingest.land import land
from tasks.query.sandbox import _answer, _one_line, confined
from tasks.training.transfer import _checked
from tasks.warehouse.home import Warehouse

PATIENCE = 20.0
"""Seconds after which an input counts as one that hangs."""

Attempt = Callable[[random.Random], None]
"""Makes one input from a generator of random numbers and feeds it to the program."""

ROWS = [
    {
        "conversation_id": "c",
        "id": f"u{i}",
        "speaker": "añn",
        "text": 'x, "y"\n😀',
        "time": 5,
        "m": {"a": [1]},
    }
    for i in range(3)
]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
TALK = json.dumps({"id": "d", "topic": "t", "utterances": ROWS}).encode() + b"\n"
CELLS = b'conversation_id,speaker,text,time\nc,ann,"x\n""y"",",5\r\nc,bob,\xc3\xa9,soon\n\nc,,z,\n'
MOVIE = b" +++$+++ "
CHITCHAT = {
    k: {"start": "", "messages": [[{"sender": "a", "text": "é", "timestamp": 1}] * 2, []]} for k in "cd"
}


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.Table.from_pylist([{**row, "blob": b"\xff"} for row in ROWS]), sink)
    return bytes(sink.getvalue())


DUMPS: dict[str, list[dict[str, bytes]]] = {
    "convokit": [{"utterances.jsonl": LINES, "conversations.json": b'{"c": {"meta": {"a": 1}}, "d": {}}'}],
    "cornell": [
        {
            "movie_lines.txt": MOVIE.join(
                [b"L1", b"u0", b"m0", b"ANN", b"Hi \xe9\nL2", b"u1", b"m0", b"B", b"\n"]
            ),
            "movie_conversations.txt": MOVIE.join([b"u0", b"u1", b"m0", b"['L1', 'L2']\n"]),
        }
    ],
    "parquet": [{"": _parquet()}],
    "chitchat": [{"": json.dumps(CHITCHAT).encode()}],
    "jsonl": [{"": LINES}, {"": TALK + LINES}],
    "csv": [{"": CELLS}],
    "tsv": [{"": CELLS.replace(b",", b"\t")}],
}
"""Format to the files of sound dumps; a dump that is one file has it under ""."""

RATED = {
    "context": ["a", "b"],
    "response": "c",
    "reference": "d",
    "model": "m",
    "annotations": {"overall": [1, 5]},
}
USR = {
    "context": "a\nb",
    "fact": "f",
    "responses": [{"response": "c", "model": "m", "Overall": [1, 2, 3]}] * 2,
}
FED = {
    "context": "User: a\nSystem: b",
    "response": "System: c",
    "system": "m",
    "annotations": {"Overall": [1, 2]},
}
GRADE = {
    "Context": "a|||b",
    "Response": "c",
    "HumanScores": "[1, 2]",
    "Dataset": "d",
    "DialogModel": "m",
    "ID": 1,
}
HUMOD = b"Dialogue_ID\tDialogue_Context\tReply\tLabel\tUser_Relevance_Score\n1\tSpeaker 1: a\tSpeaker 2: b\t0\t4\n"
TABLE = b"context,response,overall,model,reference\na,b,4,m,c\nd,e,2.5,n,\n"
SETS: dict[str, dict[str, bytes]] = {
    "usr": {"": json.dumps([USR] * 2).encode()},
    "grade": {"": json.dumps([GRADE] * 2).encode()},
    "grade folder": {f"m/human_{name}.txt": b"1\n2\n" for name in ("ctx", "hyp", "score", "ref")},
    "fed": {"": json.dumps([FED] * 2).encode()},
    "humod": {"": HUMOD + HUMOD.split(b"\n")[1] + b"\n"},
    "tsv": {"": TABLE.replace(b",", b"\t")},
    "csv": {"": TABLE},
    "jsonl": {"": b'{"context": "a", "response": "b", "overall": 3}\n' * 2},
    "eval": {"": json.dumps([RATED] * 2).encode()},
}

NASTY = [
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n", b"\n\n", b'"',
    b"\\ud800", b"\\u0000", b"[" * 200, b'{"a":' * 200, b"9" * 400, b"1e999", b"-", b"NaN", b"{}", b"[]", b"null",
    b"'", b",", b"\t", MOVIE, b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x1b[31m", b"}", b"]", b"1e308", b"-0",
    b"true", b'""', b"\xe2\x80\xa8", b"\xc2\x85", b";", b"1" * 30, b"Infinity", b"0x10", b"../", b"%s", b"{0}",
]  # fmt: skip
SQL = [
    "SELECT * FROM turns LIMIT 3", "SELECT count(*) FROM {t}", "FROM {t} SELECT {c} LIMIT 2", "SHOW TABLES",
    "SELECT f, g FROM scores ORDER BY f DESC NULLS LAST LIMIT 5", "DESCRIBE {t}", "SUMMARIZE {t}",
    "WITH x AS (SELECT 1 AS a) SELECT a, row_number() OVER (ORDER BY a) FROM x", "VALUES (1, 'a'), (2, NULL)",
    "SELECT {c}, count(*) FROM {t} GROUP BY ALL HAVING count(*) > 1 LIMIT 9", "SELECT [1, 2][1], {{'a': 1}}.a",
    "SELECT a.text FROM turns a JOIN utterances USING (corpus) WHERE a.text ILIKE '%x%' LIMIT 1",
    "COPY {t} TO '/tmp/escaped.csv'", "ATTACH '/tmp/escaped.db'", "SET memory_limit = '1TB'", "PRAGMA version",
    "CREATE TABLE x AS SELECT 1", "DROP TABLE {t}", "INSTALL httpfs", "SELECT * FROM read_text('/etc/passwd')",
    "SELECT content FROM '/etc/passwd'", "EXPLAIN ANALYZE SELECT 1", "SELECT getenv('HOME')", "EXPORT DATABASE 'x'",
]  # fmt: skip
WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "NULL",
    "(",
    ")",
    "*",
    ",",
    ";",
    "--",
    "/*",
    "*/",
    "'",
    '"',
    "$1",
    "?",
    ":a",
    "[",
    "]",
    "{",
    "}",
    "::",
    "AS",
    "UNION",
    "ALL",
    "CAST",
    "1e309",
    "-1",
    "0",
    "'\\x00'",
    "INTERVAL",
    "DATE",
    "'a'",
    "LIMIT",
    "OFFSET",
    "COLUMNS(*)",
    "EXCLUDE",
    "PIVOT",
    "ON",
    "USING",
    "SAMPLE",
    "9223372036854775808",
    "lambda",
    "x",
    ":",
    "->",
    "=",
    "<>",
    "LIKE",
    "IN",
    "EXISTS",
    "sum(",
    "list(",
    "struct_pack(",
    "unnest(",
    "regexp_extract(",
    "strftime(",
    "printf(",
    "json(",
    "chr(",
    "repeat(",
    "read_csv(",
    "glob(",
    "getenv(",
    "é",
    "\u202e",
]
VALUES = [
    "", "-", "--", "--home", "--json", "--seed", "-1", "0", "1e9", "NaN", "a=b", "=", "a+b", "é", "\udcff", "\0", "\n",
    "9" * 50, "--threads", "--set", "--wait", "6h", "--map", "text=a+b", "@x", "--memory-limit", "2GB", "%s", "{}",
    "--help", "--of", "--name", "../..", "/dev/null", "--margin", "agreement=x", "--corpus", "--evaluator",
]  # fmt: skip


def damaged(draw: random.Random, content: bytes, times: int = 3) -> bytes:
    """The content with some of it cut out, doubled, replaced or followed by something else."""
    for _ in range(draw.randint(0, times)):
        at, size = draw.randint(0, len(content)), draw.randint(0, 40)
        piece = draw.choice((draw.choice(NASTY), draw.randbytes(draw.randint(1, 8)), content[at : at + size]))
        how = draw.randrange(4)
        if how == 0:
            content = content[:at] + piece + content[at:]
        elif how == 1:
            content = content[:at] + piece + content[at + len(piece) :]
        else:
            content = content[:at] + (content[at + size :] if how == 2 else b"")
    return content


def written(folder: Path, files: dict[str, bytes]) -> Path:
    """The files in the folder; their path."""
    path = folder / "input"
    if "" in files:
        path.write_bytes(files[""])
        return path
    shutil.rmtree(folder / "folder", ignore_errors=True)
    for name, content in files.items():
        (folder / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "folder" / name).write_bytes(content)
    return folder / "folder"


def packed(draw: random.Random, content: bytes) -> bytes:
    """The damaged content, some of it compressed or in another encoding, and then damaged once more."""
    content = damaged(draw, content)
    how = draw.randrange(10)
    if how == 0:
        return damaged(draw, gzip.compress(content, 1), 1)
    return damaged(draw, content.decode("latin-1").encode("utf-16"), 1) if how == 1 else content


@contextmanager
def dumps(folder: Path, bench: Bench) -> Iterator[Attempt]:
    """Dumps of every format, with their own format, another or none named."""

    def attempt(draw: random.Random) -> None:
        name = draw.choice(list(DUMPS))
        files = {k: packed(draw, content) for k, content in draw.choice(DUMPS[name]).items()}
        path = written(folder, files)
        for batch in open_dump(path, format=draw.choice((None, name, draw.choice(list(FORMATS))))):
            batch.validate(full=True)

    yield attempt


@contextmanager
def landings(folder: Path, bench: Bench) -> Iterator[Attempt]:
    """Dumps that land: what was read has landed or is quarantined."""

    def attempt(draw: random.Random) -> None:
        name = draw.choice(list(DUMPS))
        path = written(folder, {k: packed(draw, content) for k, content in draw.choice(DUMPS[name]).items()})
        shutil.rmtree(folder / "home", ignore_errors=True)
        home = Warehouse.at(folder / "home")
        read = sum(row == "message" for batch in open_dump(path) for row in batch["record"].to_pylist())
        land(str(path), str(home.root), name="a", max_quarantine=1.0, speakers="person")
        query = "SELECT messages_read, utterances + quarantined FROM corpora"
        ((messages, accounted),) = home.query(query)
        kept = "SELECT (SELECT count(*) FROM utterances) + count(*) FROM quarantine WHERE record = 'message'"
        ((rows,),) = home.query(kept)
        if not read == messages == accounted == rows:
            raise AssertionError(
                f"{read} read, {messages} counted, {accounted} accounted for, {rows} in tables"
            )

    yield attempt


@contextmanager
def sets(folder: Path, bench: Bench) -> Iterator[Attempt]:
    """Annotated sets of every layout, with their own layout, another or none named."""

    def attempt(draw: random.Random) -> None:
        name = draw.choice(list(SETS))
        files = {k: packed(draw, content) for k, content in SETS[name].items()}
        layout = draw.choice((None, name.split()[0], draw.choice(list(LAYOUTS))))
        read_set(written(folder, files), layout)

    yield attempt


@contextmanager
def archives(folder: Path, bench: Bench) -> Iterator[Attempt]:
    """Archives of an evaluator, whose bytes or whose members are damaged; one that unpacks is loaded and scores."""
    sound = (bench.inputs / "ssrem.ssrem").read_bytes()
    with zipfile.ZipFile(io.BytesIO(sound)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}

    def attempt(draw: random.Random) -> None:
        file, place = folder / "a.ssrem", folder / "model"
        if draw.random() < 0.5:
            file.write_bytes(damaged(draw, sound))
        else:
            hurt = draw.choice(list(members))
            with zipfile.ZipFile(file, "w") as archive:
                for name, content in members.items():
                    text = (
                        damaged(draw, name.encode()).decode("utf-8", "replace")
                        if draw.random() < 0.05
                        else name
                    )
                    archive.writestr(text or "a", damaged(draw, content) if name == hurt else content)
        shutil.rmtree(place, ignore_errors=True)
        unpack(file, place)
        _checked(str(file), place, ())

    yield attempt


@contextmanager
def sql(folder: Path, bench: Bench) -> Iterator[Attempt]:
    """SQL, of which every statement that is a SELECT runs, in the sandbox of `ssrem sql`."""
    bench.reset("correlated")
    calls: list[Any] = []
    ready, done = threading.Semaphore(0), threading.Semaphore(0)

    def work(connection: duckdb.DuckDBPyConnection) -> None:
        calls.append(connection)
        done.release()
        ready.acquire()

    thread = threading.Thread(target=lambda: confined(bench.home, work), daemon=True)
    thread.start()
    done.acquire()
    connection = calls[0]

    def attempt(draw: random.Random) -> None:
        table = draw.choice(list(TABLES.values()))
        text = draw.choice(SQL).format(t=table.name, c=draw.choice(table.column_names))
        tokens = re.findall(r"\w+|\S", text)
        for _ in range(draw.randint(0, 4)):
            at = draw.randrange(len(tokens) + 1)
            tokens[at : at + draw.randrange(3)] = draw.choices(
                [*WORDS, *tokens, table.name], k=draw.randrange(3)
            )
        text = " ".join(tokens)
        if draw.random() < 0.2:
            text = damaged(draw, text.encode("utf-8", "surrogateescape"), 2).decode(
                "utf-8", "surrogateescape"
            )
        try:
            _, rows = _answer(connection, text)
        except duckdb.Error as error:
            raise SsremError(f"SQL: {_one_line(error)}") from None
        if any("root:x:" in str(row) for row in rows):
            raise AssertionError(f"it read a file: {text}")

    try:
        yield attempt
    finally:
        ready.release()
        thread.join()


@contextmanager
def commands(folder: Path, bench: Bench) -> Iterator[Attempt]:
    """Command lines of every verb, parsed: a value that is wrong gives one line and exit 2."""

    def attempt(draw: random.Random) -> None:
        words = bench._arguments(
            draw.choice([text for verb, (_, text) in VERBS.items() if verb != "reproduce"])
        )
        for _ in range(draw.randint(0, 4)):
            at = draw.randrange(len(words) + 1)
            words[at : at + draw.randrange(3)] = draw.choices([*VALUES, *words], k=draw.randrange(3))
        try:
            with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
                parse(words)
        except SystemExit as end:
            if end.code not in (0, 2) or (end.code and len(said.getvalue().strip().splitlines()) != 1):
                raise AssertionError(f"exit {end.code}: {said.getvalue()!r} after {words}") from None
            if end.code:
                raise SsremError("refused") from None

    yield attempt


KINDS = {
    "dumps": dumps,
    "sets": sets,
    "archives": archives,
    "sql": sql,
    "commands": commands,
    "landings": landings,
}


def _hangs(*_: object) -> None:
    raise TimeoutError(f"no answer after {PATIENCE:g} s")


def fuzz(
    bench: Bench, kind: str, first: int, count: int, seed: int, seconds: float
) -> tuple[Counter[str], list[str]]:
    """Feed the inputs `first` to `first + count` of a kind, for at most so long; how many ended how, and findings."""
    folder = bench.folder / f"fuzz-{kind}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    signal.signal(signal.SIGALRM, _hangs)
    deadline = time.monotonic() + seconds
    with KINDS[kind](folder, bench) as attempt:
        for number in range(first, first + count):
            if time.monotonic() > deadline:
                break
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            try:
                attempt(random.Random(f"{seed} {kind} {number}"))
                ends["read"] += 1
            except SsremError as error:
                ends["refused"] += 1
                if len(str(error).splitlines()) != 1:
                    wrong.append(f"{kind} {number}: not one line: {str(error)!r}")
            except Exception as error:
                ends["failed"] += 1
                where = traceback.extract_tb(error.__traceback__)[-1]
                wrong.append(
                    f"{kind} {number}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})"
                )
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    return ends, wrong
