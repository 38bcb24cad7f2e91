"""Mutated dumps, annotated sets, archives of evaluators, SQL and command lines: each is read, or refused in one line.

Every input has a seed of its own, KIND and number, so that each finding can be repeated alone. The functions that the
commands call are called in one process, at hundreds to thousands a second.
"""

from __future__ import annotations

import contextlib
import gzip
import io
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
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import duckdb

from benchmarks.attack.bench import VERBS, Bench
from benchmarks.attack.samples import DUMPS, NASTY, SETS, SQL, VALUES, WORDS
from ssrem.annotated_sets import LAYOUTS, read_set
from ssrem.cli.parser import parse
from ssrem.errors import SsremError
from ssrem.evaluators.core.archive import unpack
from ssrem.readers import FORMATS, open_dump
from ssrem.schemas import TABLES
from ssrem.tasks.ingest.land import land
from ssrem.tasks.query.sandbox import _answer, _one_line, confined
from ssrem.tasks.training.transfer import _checked
from ssrem.tasks.warehouse.home import Warehouse

PATIENCE = 20.0
"""Seconds after which an input counts as one that hangs."""

Attempt = Callable[[random.Random], None]
"""Makes one input from a generator of random numbers and feeds it to the program."""


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
        landed = (
            "SELECT (SELECT count(*) FROM utterances) + count(*) FROM quarantine WHERE record = 'message'"
        )
        ((rows,),) = home.query(landed)
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
    bench.prepare([])
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
                    archive.writestr(
                        text.split("\0")[0] or "a", damaged(draw, content) if name == hurt else content
                    )
        shutil.rmtree(place, ignore_errors=True)
        unpack(file, place)
        _checked(str(file), place, ())

    yield attempt


@contextmanager
def sql(folder: Path, bench: Bench) -> Iterator[Attempt]:
    """SQL, of which every statement that is a SELECT runs, in the sandbox of `ssrem sql`."""
    bench.prepare([])
    bench.reset("correlated")
    opened: Future[duckdb.DuckDBPyConnection] = Future()
    finished = threading.Event()

    def work(connection: duckdb.DuckDBPyConnection) -> None:
        opened.set_result(connection)
        finished.wait()

    def hold() -> None:
        try:
            confined(bench.home, work)
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    connection = opened.result()

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
        finished.set()
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
