"""Stage `ingest`: a dump lands once and completely; rows that cannot land are quarantined with the reason."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from schemas import LANDED
from sql import statement
from ssrem.errors import DumpError, SsremError
from ssrem.files import sha256
from ssrem.privacy.record_batches import FORGOTTEN
from ssrem.readers import open_dump, prefetched
from tasks.ingest.dataset_names import as_text, checked_name
from tasks.ingest.row_numbers import SCHEMA, numbered
from tasks.privacy.ingest_filter import check_same_way, key_for, private
from tasks.privacy.purge import derived_partitions, held_texts, purge
from tasks.stage.ledger import Recipe
from tasks.stage.progress import progress
from tasks.stage.protocol import Built, run_stage
from tasks.stage.stage import Output, Resources, Stage, bound
from tasks.stage.steps import step
from tasks.warehouse.home import Warehouse
from tasks.warehouse.partition import PartitionKey

if TYPE_CHECKING:
    import pyarrow as pa

    from ssrem.readers.base import Reader

SCOPES = ("auto", "person", "conversation")
_SUFFIXES = (
    ".jsonl",
    ".json",
    ".csv",
    ".tsv",
    ".parquet",
    ".gz",
    ".zst",
    ".bz2",
    ".zip",
    ".tar",
    ".tgz",
    ".ndjson",
    ".txt",
)


@step("land")
def land(
    source: str,
    home: str,
    *,
    format: str | None = None,
    mapping: Mapping[str, str] | None = None,
    name: str | None = None,
    speakers: str = "auto",
    replace: bool = False,
    max_quarantine: float = 0.05,
    pseudonymise: bool = False,
    pseudonym_key_file: str | None = None,
    landed_at: datetime | None = None,
    resources: Resources | None = None,
) -> tuple[str, bool]:
    """Land the dump at `source` in the home folder; returns the corpus's name and whether it is new.

    `speakers` says what an id names: a `person`, a seat in one `conversation`, or `auto`: a person, unless two ids
    speak in nearly every conversation, which stops the ingest. Ids of messages that repeat across conversations are
    scoped to their conversation, which stderr says. A dump of which more than the share `max_quarantine` (0 to 1) of
    the messages cannot land is refused; messages of people who were forgotten do not count.

    Content that has landed before is not landed again, even under another file name, unless `replace`. With
    `pseudonymise` nothing that identifies a person is written: ids become keyed hashes, and text is masked.
    `pseudonym_key_file` holds the key; by default the environment variable SSREM_PSEUDONYM_KEY does. A repair passes
    the `landed_at` of a damaged corpus, so that tables built from it stay valid.

    Raises DumpError if the dump cannot be read, is empty, names seats, has too few messages that can land, or landed
    before with a different choice of pseudonyms; PrivacyError if there is no key.
    """
    if not 0 <= max_quarantine <= 1:
        raise DumpError(f"max_quarantine is a share from 0 to 1, not {max_quarantine}")
    if speakers not in SCOPES:
        raise DumpError(f"--speakers {speakers}: expected one of {', '.join(SCOPES)}")
    wanted = corpus_name(source) if name is None else name
    corpus = checked_name(wanted, "a corpus", "give another with --name", DumpError)
    place = Warehouse.at(home)
    key = key_for(place, pseudonymise, pseudonym_key_file)
    reader = open_dump(source, format=format, mapping=mapping)
    stamps = _stamps(reader)
    digest = content_hash(reader.files())
    where = as_text(str(Path(source).resolve()) if Path(source).exists() else source)
    columns = dict(mapping) if mapping else None
    parameters = {"corpus": corpus, "format": reader.format, "speakers": speakers, "mapping": columns}
    if key:
        parameters["pseudonym_key"] = key.fingerprint

    def landed_before(_: Recipe) -> tuple[str, bool] | None:
        if replace or not (known := _landed(place, corpus, digest)):
            return None
        check_same_way(place, known, key)
        return known, False

    def build(stage: Stage) -> Built[tuple[str, bool]]:
        replaced = {p.address for p in stage.partitions if p.key.corpus == corpus}
        _read(stage, reader, source, private(reader, place, corpus, speakers, key))
        if _stamps(reader) != stamps:
            raise DumpError(f"{source} changed while it was read; land it again when it is complete")
        _say_left_out(reader, source)
        _scope_ids(stage, reader, source)
        _reject(stage, reader, source, max_quarantine)
        scope = _speaker_scope(stage, reader, source, speakers)
        values = {
            "corpus": corpus,
            "format": reader.format,
            "source": where,
            "sha256": digest,
            "bytes": reader.total_bytes,
            "speaker_scope": scope,
            "landed_at": landed_at or stage.started,
        }
        with progress(f"landing {corpus}"):
            for table in (
                "linked",
                "moved",
                "places",
                "utterances",
                "conversations",
                "quarantine",
                "corpora",
            ):
                stage.create(table, f"1_ingest/{table}", **values)
        of_corpus = PartitionKey(corpus=corpus)
        outputs = [Output(table, of_corpus) for table in LANDED]
        if key and ("corpora", of_corpus) in replaced:
            # The corpus that landed with names is deleted, with all tables built from it.
            retired = derived_partitions(place, corpus)
            return Built(
                (corpus, True), outputs, retired=retired, after=lambda: purge(place, held_texts(place))
            )
        # Speaker tables of the replaced content are outdated; those of a damaged corpus that is restored are not.
        outdated = [(table, of) for table, of in replaced if of == of_corpus and table not in LANDED]
        return Built((corpus, True), outputs, retired=[] if landed_at else outdated)

    return run_stage(
        place,
        "ingest",
        lambda: Recipe(parameters, {where: digest}),
        build,
        done=landed_before,
        resources=resources,
    )


def corpus_name(source: str) -> str:
    """Default name of a corpus: the name of its file or folder without the suffixes of formats."""
    name = Path(source).name
    if name in ("", ".."):
        name = Path(source).resolve().name
    while Path(name).suffix in _SUFFIXES:
        name = Path(name).stem
    return name


def content_hash(files: list[Path]) -> str:
    """sha256 of a dump's content, independent of file names: of its file, or of the sorted digests of its files."""
    digests = sorted(map(sha256, files))
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def _landed(home: Warehouse, corpus: str, digest: str) -> str | None:
    """Name under which this content has landed, if it has; DumpError if `corpus` has landed with other content."""
    with home.reader(partial=True) as connection:  # a corpus whose row is damaged may land again
        landed = dict(connection.execute("SELECT corpus, sha256 FROM corpora").fetchall())
    known = next((name for name, known_digest in landed.items() if known_digest == digest), None)
    if known is None and corpus in landed:
        raise DumpError(
            f"a corpus {corpus!r} with other content has landed before; give this one a name of its own with --name, "
            "or take the other's place with --replace"
        )
    return known


def _stamps(reader: Reader) -> list[tuple[int, int]]:
    """Size and modification time of a dump's files."""
    return [(status.st_size, status.st_mtime_ns) for status in (path.stat() for path in reader.files())]


def _read(stage: Stage, reader: Reader, source: str, batches: Iterable[pa.RecordBatch]) -> None:
    """Stream batches, pseudonymised if wanted, into the scratch table `raw`."""
    import pyarrow as pa

    failure: list[SsremError] = []

    def stream() -> Iterator[pa.RecordBatch]:
        try:
            for batch in numbered(prefetched(batches)):
                yield batch
                advance(reader.bytes_read)
        except SsremError as error:  # DuckDB would wrap it in an error of its own
            failure.append(error)

    with progress(f"reading {source} ({reader.format})", reader.total_bytes) as advance:
        stage.connection.register("dump", pa.RecordBatchReader.from_batches(SCHEMA, stream()))
        stage.connection.execute("CREATE TABLE raw AS SELECT * FROM dump")
        stage.connection.unregister("dump")
    if failure:
        raise failure[0]


def _say_left_out(reader: Reader, source: str) -> None:
    """Print on stderr what the reader decided, and how many rows of which kind it left out."""
    counts = ", ".join(f"{count:,} {kind}" for kind, count in reader.left_out.most_common())
    for note in (*reader.notes, *([f"left out, because nobody said it: {counts}"] if counts else ())):
        print(f"ssrem: {source}: {note}", file=sys.stderr)


def _scope_ids(stage: Stage, reader: Reader, source: str) -> None:
    """Create the table `ids`. Ids that start anew in each conversation are scoped to it, and stderr says so.

    In formats with fixed fields ids are unique by definition, and one that repeats is an error.
    """
    stage.create("ids", "1_ingest/ids")
    if not reader.takes_mapping:
        return
    stage.create("repeated_ids", "1_ingest/repeated_ids")
    most = stage.connection.execute(
        "SELECT utterance_id, conversations FROM repeated_ids ORDER BY conversations DESC, utterance_id LIMIT 1"
    ).fetchone()
    if most is None:
        return
    stage.create("raw", "1_ingest/scoped_ids")
    stage.create("ids", "1_ingest/ids")
    print(
        f"ssrem: {source}: message ids repeat across conversations ({most[0]!r} in {most[1]:,}); each was scoped to "
        "its conversation, as CONVERSATION/ID",
        file=sys.stderr,
    )


def _reject(stage: Stage, reader: Reader, source: str, max_quarantine: float) -> None:
    """Create the tables of messages that cannot land; DumpError if they are too many."""
    for table in ("replies", "reply_cycles", "rejected", "conversation_ranks"):
        stage.create(table, f"1_ingest/{table}")
    query = "SELECT count(*) FROM raw WHERE record = 'message'"
    ((messages,),) = stage.connection.execute(query).fetchall()
    query = "SELECT reason, count(*) FROM rejected GROUP BY ALL ORDER BY count(*) DESC, reason"
    counts = dict(stage.connection.execute(query).fetchall())
    rejected = sum(counts.values())
    if messages == 0:
        raise DumpError(
            f"{source} has no message (read as {reader.format}); is it the right file and --format?"
        )
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
    if messages == rejected:
        raise DumpError(
            f"none of the {messages:,} messages of {source} (read as {reader.format}) can land: {reasons}; "
            "name the columns with --map, or the format with --format"
        )
    unexpected = rejected - counts.get(FORGOTTEN, 0)
    if unexpected > max_quarantine * messages:
        raise DumpError(
            f"{unexpected:,} of the {messages:,} messages of {source} (read as {reader.format}) cannot land, more than "
            f"{100 * max_quarantine:g}%: {reasons}; such as {_examples(stage)}; name the columns with --map, or the "
            "format with --format, or land the rest with --max-quarantine 100%"
        )


def _examples(stage: Stage) -> str:
    """The first three messages that cannot land: file and line, reason, and their first characters."""
    rows = stage.connection.execute(
        f"""
        SELECT raw.file, raw.line, rejected.reason, raw.raw, raw.utterance_id, raw.speaker, raw.text
        FROM raw INNER JOIN rejected ON raw.row_no = rejected.row_no
        WHERE rejected.reason <> '{FORGOTTEN}' ORDER BY raw.row_no LIMIT 3
        """
    ).fetchall()
    examples = []
    for file, line, reason, unread, *fields in rows:
        begins = [value[:40] for value in fields if value is not None]
        if unread:
            begins = [unread[:60].decode("utf-8", "backslashreplace")]
        examples.append(f"{file} line {line:,} ({reason}: {', '.join(map(repr, begins))})")
    return ", ".join(examples)


def _speaker_scope(stage: Stage, reader: Reader, source: str, speakers: str) -> str:
    if speakers != "auto":
        return speakers
    text = statement("1_ingest/seats")
    seats = stage.connection.execute(text, bound(text, {})).fetchall()
    if not seats:
        return "person"
    (first, count, total), (second, other, _) = seats
    owner = ", or name what holds the person with --map speaker=KEY" if reader.takes_mapping else ""
    raise DumpError(
        f"{source}: speaker ids {first!r} and {second!r} speak in {min(count, other):,} of {total:,} conversations; "
        "they seem to name seats, not people; use --speakers conversation to keep them apart by conversation, or "
        f"--speakers person if they are two people{owner}"
    )
