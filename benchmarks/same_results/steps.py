"""Commands that run on the small home: every verb, with the names of before the move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.same_results.inputs import fill_in

QUICK = ("--set", "epochs=2")
Step = tuple[str, "tuple[str, ...] | Callable[[Path], None]"]


def steps() -> list[Step]:
    """The commands in order: the name under which the answer is kept, and the arguments with old names."""
    dump, ratings, responses = "{folder}/talk.jsonl", "{folder}/people_eval.json", "{folder}/responses.json"
    restored = ("--home", "{folder}/home-restored")
    query = "SELECT evaluator, kind, count(*) AS n, avg(f) AS f FROM scores GROUP BY ALL ORDER BY ALL"
    return [
        ("score by the packaged evaluator", ("score", responses, "--json")),
        ("ingest", ("ingest", dump, "--json")),
        ("ingest again", ("ingest", dump, "--json")),
        ("tables", ("tables", "--json")),
        ("negatives", ("negatives", "random-2+drop-golden", "--responses", "20", "--json")),
        ("dry run", ("train", "ssrem", "ruber", "length", *QUICK, "--dry-run", "--json")),
        ("train", ("train", "ssrem", "rsrem", *QUICK, "--json")),
        ("agree", ("agree", ratings, "--json")),
        ("train again", ("train", "ssrem", *QUICK, "--seed", "1", "--json")),
        ("agree untrained", ("agree", ratings, "--evaluator", "length", "cosine", "bleu-2", "--json")),
        ("agree all", ("agree", ratings, "--keep-ground-truth", "--json")),
        ("promote", ("promote", "ssrem", "2", "--json")),
        ("rollback", ("rollback", "ssrem", "--json")),
        ("ingest more", ("ingest", "{folder}/more.jsonl", "--json")),
        ("tables of more", ("tables", "--corpus", "more", "--json")),
        ("retrain", ("retrain", "rsrem", "--json")),
        ("train from labels", ("train", "ruber", "--labels", ratings, *QUICK, "--json")),
        *((f"study {name}", ("study", name, "--of", "talk", "--evaluator", "ssrem", "--responses", "20", "--json"))
          for name in ("attacks", "corpus-buckets")),
        *((f"study {name}", ("study", name, "--evaluator", "ssrem", "rsrem", "length", "--json"))
          for name in ("length", "buckets", "distribution", "without-system")),
        ("status", ("status", "--deep", "--json")),
        ("evaluators", ("evaluators", "--json")),
        ("annotations list", ("annotations", "list", "--json")),
        ("score", ("score", responses, "--json")),
        ("score as text", ("score", responses, "--evaluator", "rsrem")),
        ("sql", ("sql", query, "--json")),
        ("sql as csv", ("sql", query, "--csv", "-")),
        ("sql as text", ("sql", query)),
        ("reproduce", ("reproduce", "{signature}", "--json")),
        ("annotate export",
         ("annotate", "export", "{folder}/batch", "--corpus", "talk", "--contexts", "6", "--checks", "0", "--json")),
        ("fill in", fill_in),
        ("annotate import",
         ("annotate", "import", *(f"{{folder}}/rater-{n}.csv" for n in (1, 2, 3)),
          "--batch", "{folder}/batch", "--kappa", "none", "--json")),
        ("report", ("report", "--figures", "{folder}/figures-small", "--json")),
        ("report of two runs", ("report", "--compare", "{first_run}", "{last_run}", "--json")),
        ("export", ("export", "ssrem", "--output", "{folder}/ssrem.ssrem", "--json")),
        ("backup", ("backup", "{folder}/backup.tar", "--json")),
        ("restore", ("restore", "{folder}/backup.tar", *restored, "--json")),
        ("import", ("import", "{folder}/ssrem.ssrem", "--home", "{folder}/home-import", "--json")),
        ("forget", ("forget", "p0", *restored, "--json")),
        ("status after forget", ("status", *restored, "--json")),
        ("collect", ("collect", "--keep-runs", "100", *restored, "--json")),
    ]  # fmt: skip


LOOKED_UP = {
    "{signature}": "SELECT signature FROM agreement WHERE measure = 'spearman' AND outcome = 'ok' AND score = 'f' "
    "AND resamples IS NOT NULL ORDER BY evaluator, version, criterion, aggregation, level, grouping LIMIT 1",
    "{first_run}": "SELECT run_id FROM runs ORDER BY started LIMIT 1",
    "{last_run}": "SELECT run_id FROM runs ORDER BY started DESC LIMIT 1",
}
"""Placeholder of an argument to the query of the home that gives its value."""
