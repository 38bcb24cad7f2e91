"""Stage `ingest`: a dump lands once and completely; rows that cannot land are quarantined with the reason."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem.errors import DumpError, say
from ssrem.files import sha256
from ssrem.readers import open_dump, prefetched
from ssrem.readers.fields import WITHOUT_CONVERSATIONS
from ssrem.readers.files.sources import absolute
from ssrem.readers.people import NONE
from ssrem.schemas import LANDED
from ssrem.tables.landing import create_ids, create_landed, create_raw, reject, scope_to_files, seats
from ssrem.tables.people import people_notes
from ssrem.tables.places import order_note, replies_note
from ssrem.tasks.ingest.dataset_names import as_text, checked_name, corpus_name
from ssrem.tasks.ingest.landed_before import landed_as
from ssrem.tasks.privacy.ingest_filter import check_same_way, key_for, private
from ssrem.tasks.privacy.purge import derived_partitions, held_texts, purge, schedule_purge
from ssrem.tasks.stage.ledger import Recipe
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.protocol import Built, run_stage
from ssrem.tasks.stage.stage import Output, Resources, Stage
from ssrem.tasks.stage.steps import step
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import PartitionKey

if TYPE_CHECKING:
    import pyarrow as pa

    from ssrem.privacy.key import PseudonymKey
    from ssrem.readers.base import Reader

SCOPES = ("auto", "person", "conversation")


@step("land")
def land(
    source: str | Sequence[str],
    home: str,
    *,
    format: str | None = None,
    mapping: Mapping[str, str] | None = None,
    encoding: str | None = None,
    time_format: str | None = None,
    name: str | None = None,
    speakers: str = "auto",
    not_people: Sequence[str] = (),
    replace: bool = False,
    max_quarantine: float = 0.05,
    pseudonymise: bool = False,
    pseudonym_key_file: str | None = None,
    landed_at: datetime | None = None,
    resources: Resources | None = None,
) -> tuple[str, bool]:
    """Land the dump at `source` in the home folder; returns the corpus's name and whether it is new.

    Several sources, or a pattern of files, are one corpus; ids that repeat across them are scoped to their file.
    `encoding` and `time_format` say how text and times are written; None: guessed. `speakers` says what an id names: a
    `person`, a seat in one `conversation`, or `auto`: a person, unless two ids speak in nearly every conversation,
    which stops the ingest. Ids of messages that repeat across conversations are scoped to their conversation, with a
    note on stderr. A dump is refused if more than the share `max_quarantine` (0 to 1) of its messages cannot land;
    messages of forgotten people and placeholders of removed texts do not count.

    `not_people` names speakers that are not people, besides those of the format; `none` among them switches the
    format's off. stderr lists those that occur, with their messages, and speakers that probably are not people either.

    Content that has landed before is not landed again, even under another file name, unless `replace`; DumpError if
    an option that is given (neither None nor the default) differs from the one with which it landed. With
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
    warehouse = Warehouse.at(home)
    key = key_for(warehouse, pseudonymise, pseudonym_key_file)
    reader = open_dump(source, format=format, mapping=mapping, encoding=encoding, time_format=time_format)
    reader.named_not_people = tuple(not_people)
    sources = [source] if isinstance(source, str) else list(source)
    stamps = _stamps(reader)
    digest = content_hash(reader.files())
    given = {
        "corpus": name,
        "speakers": None if speakers == "auto" else speakers,
        "format": format,
        "mapping": mapping or None,
        "encoding": encoding,
        "time_format": time_format,
        "not_people": not_people or None,
    }
    landing = _Landing(
        home=warehouse,
        corpus=corpus,
        reader=reader,
        written={
            "mapping": dict(mapping) if mapping else None,
            **{key: given[key] for key in ("encoding", "time_format") if given[key] is not None},
        },
        given=[parameter for parameter, value in given.items() if value is not None],
        sources=sources,
        stamps=stamps,
        digest=digest,
        speakers=speakers,
        max_quarantine=max_quarantine,
        replace=replace,
        key=key,
        landed_at=landed_at,
    )
    return run_stage(
        warehouse,
        "ingest",
        landing.recipe,
        landing.build,
        done=landing.landed_before,
        resources=resources,
    )


@dataclass(frozen=True)
class _Landing:
    """A dump that is being landed; fields that are not described here are parameters of `land`.

    written: parameters that describe how the dump is written. given: the parameters of `recipe` that the user gave.
    stamps: of the dump's files before they were hashed. digest: of their content. key: of pseudonyms, None without.
    """

    home: Warehouse
    corpus: str
    reader: Reader
    written: Mapping[str, Any]
    given: Sequence[str]
    sources: list[str]
    stamps: list[tuple[int, int]]
    digest: str
    speakers: str
    max_quarantine: float
    replace: bool
    key: PseudonymKey | None
    landed_at: datetime | None

    @property
    def source(self) -> str:
        """The sources in the form used in messages."""
        return _shown(self.sources)

    @property
    def where(self) -> str:
        """The sources in the form of the column `source`: absolute."""
        return as_text(_shown([absolute(one) for one in self.sources]))

    def recipe(self) -> Recipe:
        """What determines the corpus: its content, and the parameters that it is read and landed with."""
        not_people = self.reader.named_not_people
        parameters: dict[str, Any] = {
            "corpus": self.corpus,
            "format": self.reader.format,
            "speakers": self.speakers,
            **self.written,
        }
        if not_people:
            parameters["not_people"] = _fingerprint(not_people)
        if len(self.sources) > 1:
            parameters["sources"] = [as_text(absolute(one)) for one in self.sources]
        if self.key:
            parameters["pseudonym_key"] = self.key.fingerprint
        return Recipe(parameters, {self.where: self.digest})

    def landed_before(self, recipe: Recipe) -> tuple[str, bool] | None:
        """The name under which the content has landed and False; None if it has not, or is to land anew.

        DumpError as `landed_as`, and for another choice of pseudonyms.
        """
        if self.replace:
            return None
        given = {parameter: recipe.parameters.get(parameter) for parameter in self.given}
        known = landed_as(self.home, self.corpus, self.digest, given)
        if known is None:
            return None
        check_same_way(self.home, known, self.key)
        return known, False

    def build(self, stage: Stage) -> Built[tuple[str, bool]]:
        """Stage the tables of the corpus, and say what a user should know about the dump."""
        reader = self.reader
        self._read(stage)
        if _stamps(reader) != self.stamps:
            raise DumpError(f"{self.source} changed while it was read; land it again when it is complete")
        scoped = (scope_to_files(stage), create_ids(stage, unique=not reader.ids_may_repeat))
        for note in (*reader.all_notes(), *filter(None, scoped)):
            self._say(note)
        self._reject(stage)
        scope = self._speaker_scope(stage)
        self._say_not_people(stage)
        values = {
            "corpus": self.corpus,
            "format": reader.format,
            "source": self.where,
            "sha256": self.digest,
            "bytes": reader.total_bytes,
            "speaker_scope": scope,
            "landed_at": self.landed_at or stage.started,
        }
        with progress(f"landing {self.corpus}"):
            create_landed(stage, **values)
            stage.create("corpora", "1_ingest/corpora", **values)
        if order := order_note(stage):
            self._say(f"{order} with --replace")
        if replies := replies_note(stage):
            self._say(replies)
        return self._built(stage)

    def _built(self, stage: Stage) -> Built[tuple[str, bool]]:
        """What is published, and what leaves the snapshot with the corpus that it replaces."""
        answer, of_corpus = (self.corpus, True), PartitionKey(corpus=self.corpus)
        outputs = [Output(table, of_corpus) for table in LANDED]
        replaced = {p.address for p in stage.partitions if p.key.corpus == self.corpus}
        if self.key and ("corpora", of_corpus) in replaced:
            # The corpus that landed with names is deleted, with all tables built from it.
            schedule_purge(self.home, stage.run_id)
            retired = derived_partitions(self.home, self.corpus)
            return Built(
                answer, outputs, retired=retired, after=lambda: purge(self.home, held_texts(self.home))
            )
        # Speaker tables of the replaced content are outdated; those of a damaged corpus that is restored are not.
        outdated = [(table, of) for table, of in replaced if of == of_corpus and table not in LANDED]
        return Built(answer, outputs, retired=[] if self.landed_at else outdated)

    def _read(self, stage: Stage) -> None:
        """Stream batches, pseudonymised if wanted, into the scratch table `raw`."""
        reader = self.reader
        batches = private(reader, self.home, self.corpus, self.speakers, self.key)
        with progress(f"reading {self.source} ({reader.format})", reader.total_bytes) as advance:

            def stream() -> Iterator[pa.RecordBatch]:
                for batch in prefetched(batches):
                    yield batch
                    advance(reader.bytes_read)

            create_raw(stage, stream())

    def _reject(self, stage: Stage) -> None:
        """Create the tables of messages that cannot land; DumpError if they are too many."""
        reader, source = self.reader, self.source
        rejected = reject(stage, lambda: reader.number_of)  # which may look through the file
        messages = rejected.messages
        if messages == 0:
            raise DumpError(
                f"{source} has no message (read as {reader.format}); is it the right file and --format?"
            )
        is_text = "undecodable" in rejected.reasons and reader.is_text
        ways = ["give their encoding with --encoding"] if is_text else []
        ways += rejected.remedies("name the columns with --map, or the format with --format")
        if "no_conversation" in rejected.reasons and reader.takes_mapping:
            ways.append(f"give --map {WITHOUT_CONVERSATIONS}")
        way_out = ", or ".join(ways)
        if messages == rejected.total:
            raise DumpError(
                f"none of the {messages:,} messages of {source} (read as {reader.format}) can land: {rejected.counts}; "
                f"{way_out}"
            )
        if rejected.unexpected > self.max_quarantine * messages:
            raise DumpError(
                f"{rejected.unexpected:,} of the {messages:,} messages of {source} (read as {reader.format}) cannot "
                f"land, more than {100 * self.max_quarantine:g}%: {rejected.counts}; such as {rejected.examples}; "
                f"{way_out}, or land the rest with --max-quarantine 100%"
            )

    def _speaker_scope(self, stage: Stage) -> str:
        """What an id of a speaker names; DumpError where that was not given and ids seem to name seats."""
        if self.speakers != "auto":
            return self.speakers
        if (named := seats(stage)) is None:
            return "person"
        owner = f", or {way}" if (way := self.reader.ways_to_people) else ""
        raise DumpError(
            f"{self.source}: {named}; use --speakers conversation to keep them apart by conversation, or --speakers "
            f"person if they are two people{owner}"
        )

    def _say_not_people(self, stage: Stage) -> None:
        """Print which speakers do not count as people, and which others may not be people; see `people_notes`."""

        def option(names: Sequence[str]) -> str:
            hidden = self.key is not None and NONE not in names
            listed = "NAME, as the dump writes it," if hidden else " ".join(map(shlex.quote, names))
            return f"--not-people {listed} --replace"

        for note in people_notes(stage, self.reader.named_not_people, option):
            self._say(note)

    def _say(self, note: str) -> None:
        say(f"{self.source}: {note}")


def _shown(sources: Sequence[str]) -> str:
    """The sources in the form used in messages."""
    return sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1:,} more"


def content_hash(files: list[Path]) -> str:
    """sha256 of a dump's content, independent of file names: of its file, or of the sorted digests of its files."""
    digests = sorted(map(sha256, files))
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def _stamps(reader: Reader) -> list[tuple[int, int]]:
    """Size and modification time of a dump's files."""
    return [(status.st_size, status.st_mtime_ns) for status in (path.stat() for path in reader.files())]


def _fingerprint(names: Sequence[str]) -> str:
    """16 hex digits of a digest of the names: the ledger must not hold an id that may have to be forgotten."""
    content = json.dumps(sorted(set(names)), ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]
