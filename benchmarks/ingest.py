"""Times `ssrem ingest` of a large dump against DuckDB's reader of the same file, and against convokit.Corpus.

python -m benchmarks.generate_corpus --output benchmarks/data/corpus.jsonl
python -m benchmarks.ingest benchmarks/data/corpus.jsonl [--formats jsonl csv parquet interleaved]
    [--convokit-conversations 200000]

DuckDB reads into a table on disk, and writes the other files of the dump: CSV, Parquet, and JSON lines in the order of
time, in which conversations are interleaved. Compare CPU on a shared machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Measured, measure

FORMATS = ("jsonl", "csv", "parquet", "interleaved")


def scan(dump: str, database: str) -> None:
    """Read the dump into a table by DuckDB's own reader."""
    import duckdb

    with duckdb.connect(database) as connection:
        connection.execute("SET memory_limit = '2GB'")
        connection.execute(f"CREATE TABLE dump AS FROM {_reader(dump)}")


def convert(dump: str, to: str) -> None:
    """Write the dump as the file `to`, CSV, Parquet or JSON by its name; JSON in the order of time."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '2GB'")
        order = " ORDER BY time" if to.endswith(".jsonl") else ""
        connection.execute(f"COPY (FROM {_reader(dump)}{order}) TO '{to}'{' (FORMAT json)' if order else ''}")


def _reader(dump: str) -> str:
    name = {".jsonl": "read_json", ".csv": "read_csv", ".parquet": "read_parquet"}[Path(dump).suffix]
    return f"{name}('{dump}')"


def landed(dump: str, home: Path) -> Measured:
    """Run `ssrem ingest` into a new home folder, which is deleted afterwards, and measure it."""
    ours = measure(["-m", "ssrem", "ingest", dump, "--home", str(home)])
    shutil.rmtree(home)
    return ours


def load_convokit(folder: str) -> None:
    """Load a corpus folder by convokit, and print its number of conversations."""
    from convokit import Corpus

    print(len(Corpus(filename=folder).conversations))


def write_subset(dump: str, conversations: int, jsonl: Path, folder: Path) -> None:
    """Write the first conversations of the dump as JSONL and as a ConvoKit folder."""
    folder.mkdir()
    speakers: dict[str, dict[str, object]] = {}
    seen: dict[str, dict[str, object]] = {}
    with (
        Path(dump).open(encoding="utf-8") as lines,
        jsonl.open("w", encoding="utf-8") as plain,
        (folder / "utterances.jsonl").open("w", encoding="utf-8") as utterances,
    ):
        for line in lines:
            row = json.loads(line)
            seen.setdefault(row["conversation_id"], {"meta": {}, "vectors": []})
            if len(seen) > conversations:
                break
            speakers.setdefault(row["speaker"], {"meta": {}, "vectors": []})
            plain.write(line)
            fields = {
                "id": row["utterance_id"],
                "conversation_id": row["conversation_id"],
                "text": row["text"],
            }
            fields |= {"speaker": row["speaker"], "reply-to": row.get("reply_to"), "timestamp": row["time"]}
            utterances.write(json.dumps({**fields, "meta": {}, "vectors": []}) + "\n")
    kept_conversations = dict(itertools.islice(seen.items(), conversations))
    index = {"utterances-index": {}, "speakers-index": {}, "conversations-index": {}, "overall-index": {}}
    for name, content in (
        ("speakers", speakers),
        ("conversations", kept_conversations),
        ("corpus", {}),
        ("index", {**index, "version": 1, "vectors": []}),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content))


def main() -> None:
    """Print both comparisons."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("dump", help="dump written by benchmarks.generate_corpus")
    options.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    options.add_argument("--rounds", type=int, default=1, help="times that each is measured, in turn")
    options.add_argument("--convokit-conversations", type=int, default=200_000, help="0 leaves convokit out")
    parsed = options.parse_args()
    me = ["-m", "benchmarks.ingest"]
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        for format in parsed.formats:
            dump = parsed.dump
            if format != "jsonl":
                dump = str(place / f"corpus.{format.replace('interleaved', 'jsonl')}")
                measure([*me, "--convert", parsed.dump, dump])
            for _ in range(parsed.rounds):
                base = measure([*me, "--scan", dump, str(place / "scan.duckdb")])
                (place / "scan.duckdb").unlink()
                ours = landed(dump, place / "home")
                print(f"{format}: DuckDB's reader {base}\n{format}: ssrem ingest    {ours}")
                print(
                    f"{format} ratio {ours.wall / base.wall:.2f}, of CPU {ours.cpu / base.cpu:.2f}",
                    flush=True,
                )
        if parsed.convokit_conversations:
            jsonl, folder = place / "subset.jsonl", place / "convokit"
            write_subset(parsed.dump, parsed.convokit_conversations, jsonl, folder)
            ours = landed(str(jsonl), place / "subset-home")
            theirs = measure([*me, "--convokit", str(folder)])
            print(f"{parsed.convokit_conversations:,} conversations:")
            print(
                f"convokit.Corpus        {theirs}\nssrem ingest           {ours}\nratio {theirs.wall / ours.wall:.2f}"
            )


if __name__ == "__main__":
    workers = {"--scan": scan, "--convert": convert, "--convokit": load_convokit}
    if len(sys.argv) > 1 and sys.argv[1] in workers:
        workers[sys.argv[1]](*sys.argv[2:])
    else:
        main()
