"""Annotate: a batch for raters leaves the home folder, and their answers become an annotated set."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from sql import statement
from ssrem.agreement.annotated import read_samples
from ssrem.annotation import page, sheets
from ssrem.annotation.answers import Answer, read_answers
from ssrem.annotation.draw import EDGES, context_key, contexts_needed, draw_batch, length_balanced
from ssrem.annotation.items import TRUE_SYSTEM, Batch, Context, Plan
from ssrem.annotation.retrieval import NAME as BM25
from ssrem.annotation.retrieval import Retrieval
from ssrem.errors import AnnotationError, HomeError
from tasks.warehouse.home import Warehouse, landed_corpora

if TYPE_CHECKING:
    from ssrem.annotation.review import Review

KEY = "key.json"
POOL = 200_000
"""Contexts of the training split among which BM25 looks, at most."""
_EVERY = 1 << 62


def export_batch(
    home: Warehouse,
    folder: Path,
    plan: Plan,
    *,
    corpus: str | None = None,
    split: str = "test",
    responses: Mapping[str, Path] | None = None,
    bm25: bool = True,
) -> Batch:
    """Draw a batch from the published tables and write it into `folder`, new or empty: what raters get into `raters/`,
    the key and the contexts beside it.

    responses: system to a file of its responses; contexts are then drawn from those that every file answers. Raises
    HomeError or AnnotationError, in one line, where that cannot be; nothing is written then.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise AnnotationError(f"{folder} is there already; name a new folder, so that no key is overwritten")
    answered = {system: _answered(path) for system, path in (responses or {}).items()}
    if taken := {TRUE_SYSTEM, *([BM25] if bm25 else [])} & set(answered):
        raise AnnotationError(
            f"--responses {taken.pop()}=…: the batch has a system of that name; give another"
        )
    name = _corpus(home, corpus)
    within = set.intersection(*(set(one) for one in answered.values())) if answered else None
    with home.reader() as connection:
        candidates = _contexts(connection, name, split, plan.seed, contexts_needed(plan), within is None)
        try:
            contexts = length_balanced(candidates, contexts_needed(plan), within=within)
        except AnnotationError as error:
            raise AnnotationError(f"{split} split of {name}: {error}") from None
        rated = contexts[: plan.contexts]
        systems = {
            system: [found[context_key(context.texts)] for context in rated]
            for system, found in answered.items()
        }
        if bm25:
            systems = {BM25: _retrieved(connection, name, plan.seed, rated), **systems}
    batch = draw_batch(name, split, plan, contexts, systems)
    _write(folder, batch)
    return batch


def import_answers(
    folder: Path, files: Sequence[Path], *, output: Path, least: float, kappa: float | None
) -> tuple[Batch, Review]:
    """Read the raters' files, filter the raters, and write the annotated set to `output`.

    Beside the key lie then `ratings.csv`, every rating with its system and whether it counts, and `import.json`, who
    was left out and how far the others agree. AnnotationError, in one line, where a file is wrong; nothing is written.
    """
    from ssrem.annotation.review import annotated_rows, record, review  # SciPy takes seconds to load

    path = folder / KEY
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise AnnotationError(
            f"{path} cannot be read; give the folder that ssrem ratings collect wrote"
        ) from None
    batch = Batch.from_json(text, str(path))
    answers = read_answers(files, batch)
    outcome = review(batch, answers, least=least, kappa=kappa)
    _replace(folder / "ratings.csv", _ratings_csv(batch, answers, outcome))
    _replace(folder / "import.json", json.dumps(record(batch, outcome), indent=1, ensure_ascii=False) + "\n")
    _replace(output, json.dumps(annotated_rows(batch, outcome), indent=1, ensure_ascii=False) + "\n")
    return batch, outcome


def _corpus(home: Warehouse, corpus: str | None) -> str:
    """The corpus asked for, or the only one that has landed, with its tables built."""
    landed = landed_corpora(str(home.root))
    if corpus is None and len(landed) > 1:
        raise HomeError(f"{len(landed)} corpora have landed ({', '.join(landed)}); choose one with --corpus")
    if corpus is None:
        corpus = landed[0]
    elif corpus not in landed:
        raise HomeError(f"no corpus {corpus!r} has landed in {home.root} (landed: {', '.join(landed)})")
    with home.reader() as connection:
        if not connection.execute("SELECT 1 FROM responses WHERE corpus = ? LIMIT 1", [corpus]).fetchone():
            raise HomeError(f"the tables of {corpus} are not built in {home.root}; run ssrem tables first")
    return corpus


def _contexts(
    connection: duckdb.DuckDBPyConnection, corpus: str, split: str, seed: int, count: int, few: bool
) -> Iterator[Context]:
    """Contexts in random order; if `few`, only so many of each length that enough are left without repetitions."""
    values = {"corpus": corpus, "split": split, "seed": seed, "most": 20 * count if few else _EVERY}
    edges = dict(zip(("short", "middle", "long"), EDGES, strict=True))
    answer = connection.execute(statement("6_annotation/contexts"), {**values, **edges})
    while rows := answer.fetchmany(1000):
        for response_id, speakers, texts, responder, response in rows:
            seats: dict[str, str] = {}
            for speaker in (*speakers, responder):
                seats.setdefault(speaker, _seat(len(seats)))
            turns = tuple((seats[speaker], text) for speaker, text in zip(speakers, texts, strict=True))
            yield Context(response_id, turns, seats[responder], response)


def _seat(number: int) -> str:
    """A to Z, then A1, B1, …"""
    return chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")


def _retrieved(
    connection: duckdb.DuckDBPyConnection, corpus: str, seed: int, contexts: Sequence[Context]
) -> list[str]:
    pool = connection.execute(
        statement("6_annotation/pool"), {"corpus": corpus, "seed": seed, "most": POOL}
    ).fetchall()
    if not pool:
        raise AnnotationError(f"{corpus} has no training split for BM25 to look in; use --without-bm25")
    retrieval = Retrieval([context for context, _ in pool], [response for _, response in pool])
    responses = []
    for context in contexts:
        response = retrieval.respond(" ".join(context.texts))
        if response is None:
            raise AnnotationError(
                f"BM25 knows no word of the context of response {context.response_id} of {corpus}; use another --seed, "
                "or --without-bm25"
            )
        responses.append(response)
    return responses


def _answered(path: Path) -> dict[str, str]:
    """Context's key to response, the first one given."""
    responses: dict[str, str] = {}
    for number, sample in enumerate(read_samples(path), 1):
        if not sample.response.strip():
            raise AnnotationError(f"{path}, row {number}: the response is empty; leave the row out")
        responses.setdefault(context_key(sample.context), sample.response)
    return responses


def _write(folder: Path, batch: Batch) -> None:
    """The whole folder at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        (draft / "raters").mkdir()
        files = {
            KEY: batch.as_json(),
            "contexts.jsonl": sheets.contexts_jsonl(batch),
            "raters/page.html": page.render(batch),
            "raters/items.jsonl": sheets.as_jsonl(batch),
            **{f"raters/{rater}.csv": sheets.as_csv(batch, rater) for rater in batch.sheets},
        }
        for name, text in files.items():
            (draft / name).write_text(text, encoding="utf-8", newline="")
        (draft / KEY).chmod(0o600)
        draft.replace(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _replace(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8", newline="")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _ratings_csv(batch: Batch, answers: Sequence[Answer], outcome: Review) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(("rater", "item", "systems", "expected", "score", "counts"))
    items, remaining = batch.by_id, set(outcome.remaining)
    for answer in sorted(answers, key=lambda a: (a.rater, a.item)):
        item = items[answer.item]
        expected: Any = "" if item.expected is None else f"{item.expected[0]}-{item.expected[1]}"
        counts = int(item.expected is None and answer.rater in remaining)
        writer.writerow((answer.rater, answer.item, " ".join(item.systems), expected, answer.score, counts))
    return text.getvalue()
