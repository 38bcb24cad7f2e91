"""Measures the rows of the table of speed in docs/results.md, and writes what was measured into it.

python -m benchmarks.speed [ROW …] [--write]

Without names, it measures the rows that take minutes altogether; ingest, tables and run take longer or need a corpus,
and are measured only if they are named. Prints the machine, which the table leaves out: compare ratios, or CPU seconds
of one machine. --write: replace the measured rows between the markers of docs/results.md.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ingest import FORMATS
from benchmarks.measure import ROOT, Measured, measure

PAGE = ROOT / "docs" / "results.md"
BEGIN, END = "<!-- speed: make benchmarks -->", "<!-- end of speed -->"
CORPUS, TWICE = "benchmarks/data/corpus.jsonl", "benchmarks/data/corpus2x.jsonl"
RESPONSES = {"ssrem": 10_000, "blend-fast": 200}
TEXTS = 500


@dataclass(frozen=True)
class Row:
    """A row of the table: what is measured, against what, and the function that measures it and gives the last cell.

    quick: whether it is measured without being named.
    """

    what: str
    against: str
    measured: Callable[[], str]
    quick: bool = True


def command(*arguments: str) -> Measured:
    """Run a whole `ssrem` command and measure it."""
    return measure(["-m", "ssrem", *arguments])


def number(name: str, text: str) -> str:
    """The last number that follows the word `name` in what a benchmark printed."""
    return re.findall(rf"{name}:?\s+([\d.]+)", text)[-1]


def answers() -> str:
    with tempfile.TemporaryDirectory() as folder:
        dump, home = f"{folder}/small.jsonl", ["--home", f"{folder}/home"]
        size = ["--conversations", "400", "--speakers", "40"]
        measure(["-m", "benchmarks.generate_corpus", *size, "--output", dump])
        command("run", dump, *home)
        parts = {
            "`run` again": command("run", dump, *home),
            "`status`": command("status", *home),
            '`sql "SELECT 1"`': command("sql", "SELECT 1", *home),
            "`--help`": command("--help"),
        }
    return ", ".join(f"{name} {part.cpu:.2f}" for name, part in parts.items()) + " s of CPU"


def scored(evaluator: str, references: bool = False) -> Callable[[], str]:
    def score() -> str:
        count = RESPONSES[evaluator]
        with tempfile.TemporaryDirectory() as folder:
            drawn, several, one = (Path(folder) / f"{name}.json" for name in ("drawn", "several", "one"))
            code = "import sys; from benchmarks.evaluators import write_samples; write_samples(*sys.argv[1:])"
            measure(["-c", code, str(drawn), "", str(count), "0"])
            samples = json.loads(drawn.read_text(encoding="utf-8"))
            read = ["context", "response", *["reference"] * references]
            samples = [{key: sample[key] for key in read} for sample in samples]
            several.write_text(json.dumps(samples))
            one.write_text(json.dumps(samples[:1]))
            options = ["--evaluator", evaluator, "--home", f"{folder}/home", "--output", f"{folder}/scores"]
            start, whole = (command("score", str(file), *options) for file in (one, several))
        rate = (count - 1) / (whole.cpu - start.cpu)
        return f"{rate:,.0f} a second of CPU, after {start.cpu:.1f} s to start"

    return score


def encoded(form: str) -> str:
    code = f"""
import time, torch
from benchmarks.evaluators import draw_samples
from ssrem.encoders import load_encoder
torch.set_num_threads(1)
texts = [sample.response for sample in draw_samples({TEXTS}, 0)]
for spec in ("all-minilm-l6-v2", "all-minilm-l6-v2:{form}"):
    encoder = load_encoder(spec)
    encoder.encode(texts[:16])
    start = time.process_time()
    encoder.encode(texts)
    print("taken", time.process_time() - start)
"""
    full, mixed = (float(taken) for taken in re.findall(r"taken (\S+)", measure(["-c", code]).output))
    return f"{full / mixed:.1f} times as fast, {TEXTS / mixed:.0f} texts a second of CPU"


def figures() -> str:
    match = re.search(r"([\d.]+) s CPU, ([\d.]+) times", measure(["-m", "benchmarks.figures"]).output)
    assert match is not None
    return f"{match[1]} s of CPU, {match[2]} times those of half as many"


def training_step() -> str:
    return f"{number('ratio', measure(['-m', 'benchmarks.training_step']).output)} times as fast"


def ingest() -> str:
    options = ["--convokit-conversations", "0", "--rounds", "3"]
    printed = measure(["-m", "benchmarks.ingest", CORPUS, *options]).output
    parts = []
    for format in FORMATS:
        ratios = sorted(float(ratio) for ratio in re.findall(rf"{format} ratio ([\d.]+)", printed))
        parts.append(f"{format} {ratios[1]:.1f}")
    return ", ".join(parts) + " times its time (medians of 3)"


def tables() -> str:
    printed = measure(["-m", "benchmarks.speaker_tables", CORPUS, TWICE]).output
    parts = (number(name, printed) for name in ("ratio", "growth", "peak"))
    return "{} times its time; {} times the time for twice the turns; {} GB".format(*parts)


def default_run() -> str:
    with tempfile.TemporaryDirectory() as folder:
        whole = command("run", "--home", f"{folder}/home")
    return f"{whole.wall:.0f} s ({whole.cpu:.0f} s of CPU), {whole.peak / 1e9:.1f} GB"


ROWS = {
    "answers": Row("answers on a small corpus that has been run", "", answers),
    "ssrem": Row(
        f"`ssrem score --evaluator ssrem`, {RESPONSES['ssrem']:,} responses after five turns",
        "",
        scored("ssrem"),
    ),
    "ssrem-references": Row(
        f"`ssrem score --evaluator ssrem`, {RESPONSES['ssrem']:,} with references: g is the mover's similarity",
        "",
        scored("ssrem", references=True),
    ),
    "blend-fast": Row("`ssrem score` by the default, `blend-fast`", "", scored("blend-fast")),
    **{
        form: Row(
            f"`all-minilm-l6-v2:{form}`, random turns of chitchat",
            "float32",
            functools.partial(encoded, form),
        )
        for form in ("bf16", "int8")
    },
    "figures": Row("figures of 9,500 responses, 3 evaluators, 2 criteria, scores at hand", "", figures),
    "step": Row(
        "a training step, batch 5,000, 200 dimensions",
        "row × row, as the paper's code multiplies",
        training_step,
    ),
    "ingest": Row(
        "`ssrem ingest` of 5.4 M messages", "DuckDB's reader into a table on disk", ingest, quick=False
    ),
    "tables": Row(
        "speaker tables and candidates of them", "DuckDB's sort of the same turns", tables, quick=False
    ),
    "run": Row("`ssrem run` on the default corpus, installed", "", default_run, quick=False),
}


def machine() -> str:
    """The processor, how many cores this process may use, and the versions that matter."""
    from importlib.metadata import version

    model = re.search(r"model name\s*: (.*)", _read("/proc/cpuinfo"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    packages = ", ".join(f"{name} {version(name)}" for name in ("duckdb", "numpy", "torch"))
    name = model[1] if model else platform.processor() or platform.machine()
    load = f"{os.getloadavg()[0]:.1f} processes were running"
    return f"{name}, {cores} cores, Python {platform.python_version()}, {packages}; {load}"


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""


def written(page: str, lines: dict[str, str]) -> str:
    """The page with the lines (what is measured → line) in its table: each replaces the old one or is added last."""
    before, _, rest = page.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{PAGE} has no {BEGIN} … {END}")
    rows, new = table.strip().splitlines(), dict(lines)
    rows = [new.pop(row.split(" | ")[0].removeprefix("| "), row) for row in rows]
    return "\n".join([before + BEGIN, "", *rows, *new.values(), "", END + after])


def main() -> None:
    """Measure, print and, if wanted, write the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.rows) - set(ROWS):
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    print(machine(), flush=True)
    for name in options.rows or [name for name, row in ROWS.items() if row.quick]:
        row = ROWS[name]
        line = f"| {row.what} | {row.against} | {row.measured()} |"
        print(line, flush=True)
        if options.write:
            PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), {row.what: line}), encoding="utf-8")


if __name__ == "__main__":
    main()
