"""Collect ratings: write a batch of responses for raters, and make an annotated set of their answers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from ssrem.annotated_sets.annotated import GROUND_TRUTH_SYSTEMS
from ssrem.annotation import sheets
from ssrem.annotation.batch import (
    BM25,
    EDGES,
    ON_TOPIC,
    Batch,
    BatchPlan,
    Bm25,
    Context,
    contexts_needed,
    draw_batch,
    length_balanced,
)
from ssrem.annotation.sheets import Answer, read_answers
from ssrem.errors import AnnotationError, HomeError
from ssrem.files import read_text
from ssrem.responses import read_samples
from ssrem.samples import context_key
from ssrem.sql import statement
from ssrem.tasks.warehouse.files import check_target, whole_file, whole_folder
from ssrem.tasks.warehouse.home import Warehouse, landed_corpora

if TYPE_CHECKING:
    from ssrem.annotation.review import Review

KEY = "key.json"
POOL = 200_000
"""The most contexts of the training split that BM25 searches."""


def export_batch(
    home: Warehouse,
    folder: Path,
    plan: BatchPlan,
    *,
    corpus: str | None = None,
    split: str = "test",
    responses: Mapping[str, Path] | None = None,
    bm25: bool = True,
) -> Batch:
    """Draw a batch from the published tables and write it into `folder`, which must be new or empty.

    The files for raters are in the subfolder `raters`, apart from the key and the list of contexts, which raters must
    not see. corpus: by default the only one that has landed. responses: system → file of its responses; contexts are
    then drawn from those that every file answers.
    Raises HomeError or AnnotationError if the batch cannot be drawn; nothing is written then.
    """
    if folder.resolve() == Path.cwd():  # replacing it would leave the shell in a deleted folder
        raise AnnotationError(f"{folder} is the current folder; name a new folder for the batch")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise AnnotationError(f"{folder} is there already; name a new folder, so that no key is overwritten")
    answered = {system: _answered(path) for system, path in (responses or {}).items()}
    of_batch = {*GROUND_TRUTH_SYSTEMS, *([BM25] if bm25 else [])}
    if taken := next((system for system in answered if system.lower() in of_batch), None):
        raise AnnotationError(f"--responses {taken}=…: the batch has that system already; rename it")
    landed = landed_corpora(str(home.root), corpus and [corpus])
    if corpus is None and len(landed) > 1:
        raise HomeError(f"{len(landed)} corpora have landed ({', '.join(landed)}); choose one with --corpus")
    name = corpus or landed[0]
    if not home.query("SELECT 1 FROM responses WHERE corpus = ? LIMIT 1", [name]):
        raise HomeError(f"the tables of {name} are not built in {home.root}; run ssrem tables first")
    within = set.intersection(*map(set, answered.values())) if answered else None
    count = contexts_needed(plan)
    most = 20 * count if within is None else 1 << 62  # a few of each length are enough to choose from
    with home.reader() as connection:
        try:
            candidates = _contexts(connection, name, split, plan.seed, most)
            contexts = length_balanced(candidates, count, within=within)
        except AnnotationError as error:
            raise AnnotationError(f"{split} split of {name}: {error}") from None
        rated = contexts[: plan.contexts]
        systems = {system: [own[context_key(one.texts)] for one in rated] for system, own in answered.items()}
        if bm25:
            systems = {BM25: _retrieved(connection, name, plan.seed, rated), **systems}
    batch = draw_batch(name, split, plan, contexts, systems)
    files = {
        KEY: batch.as_json(),
        "contexts.jsonl": sheets.contexts_jsonl(batch),
        "raters/page.html": sheets.render(batch),
        "raters/items.jsonl": sheets.as_jsonl(batch),
        **{f"raters/{rater}.csv": sheets.as_csv(batch, rater) for rater in batch.sheets},
    }
    with whole_folder(folder) as draft:
        draft.chmod(0o700)
        (draft / "raters").mkdir()
        for file, text in files.items():
            encoding = (
                "utf-8-sig" if file.endswith(".csv") else "utf-8"
            )  # Excel reads a table as UTF-8 by its mark
            (draft / file).write_text(text, encoding=encoding, newline="")
        (draft / KEY).chmod(0o600)
    return batch


def import_answers(
    folder: Path, files: Sequence[Path], *, output: Path, least: float, kappa: float | None
) -> tuple[Batch, Review]:
    """Read the raters' files, filter the raters, and write the annotated set to `output`.

    Two more files are written into the folder of the batch: `ratings.csv`, every rating with its systems and whether it
    counts, and `import.json`, the excluded raters and the agreement of the others. least: smallest share of attention
    checks to pass. kappa: smallest mean κ with the other raters, None to keep all. Raises AnnotationError if a file is
    wrong; nothing is written then.
    """
    from ssrem.annotation.review import annotated_rows, record, review  # SciPy takes seconds to load

    key = folder / KEY
    try:
        batch = Batch.from_json(read_text(key), str(key))
    except (OSError, UnicodeDecodeError):
        raise AnnotationError(f"{key} cannot be read; give the folder of ssrem ratings collect") from None
    answers = read_answers(files, batch)
    check_target(output)
    reviewed = review(batch, answers, least=least, kappa=kappa)
    contents = {folder / "ratings.csv": _ratings_csv(batch, answers, reviewed)}
    rows = annotated_rows(batch, reviewed)
    for target, content in ((folder / "import.json", record(batch, reviewed)), (output, rows)):
        contents[target] = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    for target, text in contents.items():
        with whole_file(target) as draft:
            draft.write_text(text, encoding="utf-8", newline="")
    return batch, reviewed


def _contexts(
    connection: duckdb.DuckDBPyConnection, corpus: str, split: str, seed: int, most: int
) -> Iterator[Context]:
    """Contexts of the split in random order by the seed, at most `most` for each band of response lengths."""
    values = {"corpus": corpus, "split": split, "seed": seed, "most": most}
    edges = dict(zip(("short", "middle", "long"), EDGES, strict=True))
    answer = connection.execute(statement("6_annotation/contexts"), {**values, **edges})
    while rows := answer.fetchmany(1000):
        for response_id, speakers, texts, responder, response in rows:
            seats: dict[str, str] = {}
            for speaker in (*speakers, responder):  # A to Z, then A1, B1, …
                turn, letter = divmod(len(seats), 26)
                seats.setdefault(speaker, f"{chr(ord('A') + letter)}{turn or ''}")
            turns = tuple((seats[speaker], text) for speaker, text in zip(speakers, texts, strict=True))
            yield Context(response_id, turns, seats[responder], response)


def _retrieved(
    connection: duckdb.DuckDBPyConnection, corpus: str, seed: int, contexts: Sequence[Context]
) -> list[str]:
    """The response to each context that BM25 retrieves from the training split."""
    values = {"corpus": corpus, "seed": seed, "most": POOL}
    pool = connection.execute(statement("6_annotation/pool"), values).fetchall()
    if not pool:
        raise AnnotationError(f"{corpus} has no training split for BM25 to look in; use --without-bm25")
    retrieval = Bm25(*map(list, zip(*pool, strict=True)))
    responses = [retrieval.respond(" ".join(context.texts)) for context in contexts]
    if None in responses:
        number = contexts[responses.index(None)].response_id
        raise AnnotationError(
            f"BM25 knows no word of the context of response {number} of {corpus}; use another --seed, or --without-bm25"
        )
    return [response for response in responses if response is not None]


def _answered(path: Path) -> dict[str, str]:
    """`context_key` of each context in the file → the first response to it; AnnotationError if a response is empty."""
    responses: dict[str, str] = {}
    for number, sample in enumerate(read_samples(path), 1):
        if not sample.response.strip():
            raise AnnotationError(f"{path}, row {number}: the response is empty; leave the row out")
        responses.setdefault(context_key(sample.context), sample.response)
    return responses


def _ratings_csv(batch: Batch, answers: Sequence[Answer], reviewed: Review) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    second, items = [ON_TOPIC] if batch.plan.on_topic else [], batch.by_id
    writer.writerow(("rater", "item", "systems", "expected", "score", *second, "counts"))
    for answer in sorted(answers, key=lambda a: (a.rater, a.item)):
        item = items[answer.item]
        expected = "-".join(map(str, item.expected or ()))
        counts = int(item.expected is None and answer.rater in reviewed.remaining)
        scores = (answer.score, answer.on_topic)[: 1 + len(second)]
        writer.writerow((answer.rater, answer.item, " ".join(item.systems), expected, *scores, counts))
    return text.getvalue()
