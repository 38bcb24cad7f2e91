"""Run everything, and store the results."""

from __future__ import annotations

import csv
import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from benchmarks.same_results.command import ROOT, spelled, ssrem
from benchmarks.same_results.inputs import write_inputs
from benchmarks.same_results.masks import masked, masked_table, parsed
from benchmarks.same_results.renames import RENAMES
from benchmarks.same_results.report_page import Page
from benchmarks.same_results.steps import LOOKED_UP, steps
from schemas import TABLES

ANNOTATED = ROOT.parent / "shared/data/annotations"

KEYS = {
    "runs": ("stage", "parameters", "outputs"),
    "quality_results": ("stage", "table_name", "expectation"),
}
"""Tables whose own keys hold ids of runs, which differ from run to run; rows of the same values are counted up."""

Results = dict[str, Any]


def keep(folder: Path, homes: list[str]) -> int:
    """Run everything into a new folder, the homes side by side, and write what came out as its kept.json; how many
    commands failed."""
    if folder.exists():
        raise SystemExit(f"{folder} exists; name a new folder, or remove it")
    folder.mkdir(parents=True)
    make = {"default": default_home, "small": small_home}
    with ThreadPoolExecutor() as pool:
        every: Results = {}
        for results in pool.map(lambda home: make[home](folder), homes):
            every |= results
    (folder / "kept.json").write_text(json.dumps(every, indent=1, default=str))
    return sum(
        answer["status"] != 0 for home in every.values() for answer in home.get("answers", {}).values()
    )


def default_home(folder: Path) -> Results:
    """The default run with the annotated sets."""
    sets = sorted(map(str, ANNOTATED.glob("*.json")))
    if not sets:
        raise SystemExit(f"no annotated sets in {ANNOTATED}; --homes small does without them")
    answer = ask(folder, "home-default", "run", ("run", "--annotations", *sets, "--json"))
    return {"home-default": {"answers": {"run": answer}, **published(folder, "home-default")}}


def small_home(folder: Path) -> Results:
    """A small home on which every verb is run, and its restored backup, on which `forget` and `collect` are."""
    write_inputs(folder)
    answers = {}
    for name, what in steps():
        if callable(what):
            what(folder)
        else:
            answers[name] = ask(folder, "home-small", name, what)
    small = {"answers": answers, **published(folder, "home-small")}
    for file in sorted((folder / "figures-small").glob("*.csv")):
        with file.open(newline="") as lines:
            small["files"][f"figures/{file.name}"] = masked(list(csv.DictReader(lines)), folder)
    return {"home-small": small, "home-restored": published(folder, "home-restored")}


def ask(folder: Path, home: str, name: str, arguments: tuple[str, ...]) -> Results:
    """The exit status of a command and what it answers."""
    line = spelled(arguments)
    for place, query in LOOKED_UP.items():
        if place in line:
            with duckdb.connect(str(folder / home / "catalog.duckdb"), read_only=True) as connection:
                row = connection.execute(query).fetchone()
            line[line.index(place)] = str(row[0]) if row else "none"
    line = [one.replace("{folder}", str(folder)) for one in line]
    begun = time.monotonic()
    done = ssrem(*line, *(() if "--home" in line else ("--home", str(folder / home))))
    print(f"{time.monotonic() - begun:6.1f} s  {home}  {name}: status {done.returncode}", flush=True)
    if done.returncode:
        print(f"          ssrem {' '.join(line)}\n          {done.stderr.strip()[-500:]}", flush=True)
    return {"status": done.returncode, "answer": masked(parsed(done.stdout), folder)}


def published(folder: Path, home: str) -> Results:
    """The tables of a home folder, and its report by section."""
    results: Results = {"tables": tables_of(folder / home, folder), "report": {}, "files": {}}
    if (report := folder / home / "reports/report.html").exists():
        page = Page(report.read_text(), folder)
        results |= {"report": page.sections, "files": page.files}
    return results


def tables_of(home: Path, folder: Path) -> Results:
    """Keep each published table as Parquet in key order; name to its key, rows and a digest of each column."""
    tables: Results = {}
    target = folder / "tables" / home.name
    target.mkdir(parents=True)
    with duckdb.connect(str(home / "catalog.duckdb"), read_only=True) as connection:
        names = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        for (name,) in names:
            rows = pl.DataFrame(connection.sql(f'SELECT * FROM "{name}"').to_arrow_table())
            old = next((old for old, new in RENAMES["tables"].items() if new == name), name)
            frame = masked_table(old, rows, folder)
            key = list(KEYS.get(old) or (TABLES[name].key if name in TABLES else ()))
            rest = [c for c, kind in frame.schema.items() if c not in key and not kind.is_nested()]
            frame = frame.sort([*key, *rest])
            frame.write_parquet(target / f"{name}.parquet")
            digests = {column: digest(frame[column]) for column in frame.columns}
            tables[name] = {"key": key, "rows": frame.height, "columns": digests}
    return tables


def digest(column: pl.Series) -> str:
    """SHA-256 of the values of a column in their order."""
    sha = hashlib.sha256()
    for begin in range(0, len(column), 100_000):
        sha.update(repr(column[begin : begin + 100_000].to_list()).encode())
    return sha.hexdigest()
