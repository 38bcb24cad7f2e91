"""Stage `ingest`: a dump lands once and completely; rows that cannot land are quarantined with the reason.

The dumps in a drop folder land one by one, and are moved away after they landed or were rejected.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from ssrem.errors import DumpError, GateError, say
from ssrem.files import sha256
from ssrem.privacy.key import PseudonymKey, load_key
from ssrem.readers import open_dump, prefetched, reader_class
from ssrem.readers.fields import WITHOUT_CONVERSATIONS, checked_mapping
from ssrem.readers.files.sources import STDIN, absolute, base_name, common_name
from ssrem.readers.files.streams import checked_encoding
from ssrem.readers.people import NONE
from ssrem.readers.times import checked_format
from ssrem.schemas import LANDED
from ssrem.tables.landing import Landed, create_rest, create_utterances
from ssrem.tables.notes import (
    alike_note,
    landed_note,
    one_sided,
    order_note,
    people_notes,
    repeated_notes,
    replies_notes,
    seats,
)
from ssrem.tasks.privacy import derived, private, purge
from ssrem.tasks.settings import DumpSettings, Resources
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import Built, Output, Recipe, Stage, already_done, last_parameters, run_stage
from ssrem.tasks.warehouse.catalog import PartitionKey, of_turns
from ssrem.tasks.warehouse.home import Warehouse, checked_name
from ssrem.tasks.warehouse.prune import unused_runs

if TYPE_CHECKING:
    import pyarrow as pa

DONE, REJECTED = "done", "rejected"
"""Subfolders of a drop folder."""

NO_CORPORA = ("tables", "labels")
"""Names that no corpus may have: inputs other than corpora in the ledger's recipe of a training."""

UNFINISHED = (".part", ".partial", ".tmp", ".crdownload", ".filepart", ".swp", "~")
"""Name endings under which programs write incomplete files."""

_SUFFIXES = (
    *(".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".parquet", ".txt", ".log"),
    *(".gz", ".zst", ".bz2", ".zip", ".tar", ".tgz"),
)
"""Suffixes of a file that do not become part of its corpus's name."""


def land(
    source: str | Sequence[str],
    home: str,
    settings: DumpSettings = DumpSettings(),
    *,
    resources: Resources = Resources(),
) -> tuple[str, bool]:
    """Land the dump at `source` in the home folder; returns the corpus's name and whether it is new.

    Several sources, or a pattern of files, are one corpus. Ids that repeat across files are scoped to their file, and
    message ids that repeat across conversations to their conversation; a note on stderr says so. Messages of forgotten
    people and placeholders of removed texts do not count for `max_quarantine`. With `pseudonymise` nothing that
    identifies a person is written: ids become keyed hashes, and text is masked.

    Content that has landed before, even under another file name, does not land again, unless `replace`.

    Raises DumpError if the dump cannot be read or is empty, if its speaker ids are names of seats, if too few messages
    can land, or if it landed before with another value of a given setting (one that differs from its default) or with
    another choice of pseudonyms; PrivacyError if there is no key.
    """
    landing = _DumpLanding([source] if isinstance(source, str) else source, home, settings)
    done, build, warehouse = landing.landed_before, landing.build, landing.home
    replaces_names = landing.key and settings.replace
    before = replaces_names and warehouse.query("FROM corpora WHERE corpus = ?", [landing.corpus])
    landed = run_stage(warehouse, "ingest", landing.recipe, build, done=done, resources=resources)
    # Delete what had landed with the real names, including the files of older runs, which an earlier run may have left.
    if before and (
        landed[1] or any((run / "utterances.parquet").exists() for run in unused_runs(warehouse, 0, 0))
    ):
        purge(warehouse)
    return landed


def _key(settings: DumpSettings, home: Warehouse) -> PseudonymKey | None:
    """The key of the pseudonyms, or None. Raises DumpError or PrivacyError if no dump can land with these settings."""
    checked_mapping(settings.map)
    checked_encoding(settings.encoding)
    checked_format(settings.time_format)
    if settings.format:
        reader_class(settings.format)
    if settings.pseudonymise:
        return load_key(settings.pseudonym_key, outside=home.root)
    if settings.pseudonym_key is not None:
        raise DumpError("--pseudonym-key is used only with --pseudonymise; give both")
    return None


def corpus_name(sources: Sequence[str]) -> str:
    """Default name of a corpus: its file or folder without suffixes such as .csv.gz; for several, the folder of all."""
    if not sources:
        raise DumpError("no dump is named; give the path of a dump, or chitchat")
    if len(sources) > 1:
        return common_name(sources)
    if sources[0] == STDIN:
        raise DumpError("- is what is piped in and has no name; name the corpus with --name")
    name = base_name(sources[0])
    while Path(name).suffix in _SUFFIXES:
        name = Path(name).stem
    return name


class _DumpLanding:
    """A dump that is being landed.

    source: name of the dump in messages. places: absolute paths for tables; bytes that are not UTF-8 are escaped. key:
    key of the pseudonyms, or None. stamps: size and modification time of each file before it was hashed. digest: hash
    of the files' content, whatever their names.
    """

    def __init__(self, sources: Sequence[str], home: str, settings: DumpSettings) -> None:
        self.source, self.settings = _shown(sources), settings
        name = corpus_name(sources) if settings.name is None else settings.name
        self.corpus = checked_name(name, "a corpus", "give another with --name", DumpError, NO_CORPORA)
        self.home = Warehouse.at(home).anew(corpus=self.corpus)
        self.key = _key(settings, self.home)
        how = settings.model_dump(include={"format", "encoding", "time_format"})
        self.reader = open_dump(sources, mapping=settings.map, **how)
        self.reader.named_not_people = settings.not_people
        files = self.reader.files()
        self.stamps, digests = _stamps(files), sorted(map(sha256, files))
        one = len(digests) == 1
        self.digest = digests[0] if one else hashlib.sha256("".join(digests).encode()).hexdigest()
        self.places = [os.fsencode(absolute(at)).decode("utf-8", "backslashreplace") for at in sources]

    def recipe(self) -> Recipe:
        """What determines the corpus: its content, and the settings with which it is read and landed."""
        decided = self.settings.model_dump(exclude={"name", "replace", "max_quarantine", "pseudonymise"})
        # The ledger must neither hold the key nor an id that may have to be forgotten: digests stand for them.
        names = json.dumps(sorted(set(self.settings.not_people)), ensure_ascii=False)
        hidden = hashlib.sha256(names.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        decided["not_people"] = hidden if self.settings.not_people else None
        decided["pseudonym_key"] = self.key and self.key.fingerprint
        decided |= {"corpus": self.corpus, "format": self.reader.format, "sources": self.places}
        return Recipe(decided, {_shown(self.places): self.digest})

    def landed_before(self, recipe: Recipe) -> tuple[str, bool] | None:
        """(Name under which the content has landed, False); None if it has not landed, or is to land anew.

        DumpError if other content has landed under the name, or this content under another name than the one given,
        with other settings than those given, or with another choice of pseudonyms.
        """
        if self.settings.replace:
            return (self.corpus, False) if already_done(self.home, "ingest", recipe) else None
        rows = self.home.query("SELECT corpus, sha256, speaker_scope FROM corpora")
        same = {name: scope for name, digest, scope in rows if digest == self.digest}
        known = self.corpus if self.corpus in same else next(iter(same), None)
        if known is None or (known != self.corpus and self.settings.name is not None):
            if any(name == self.corpus for name, *_ in rows):
                other = f"a corpus {self.corpus!r} with other content has landed before"
                raise DumpError(f"{other}; take another --name, or its place with --replace")
            if known is None:
                return None
            raise DumpError(f"this content landed as {known!r}; --replace lands it as {self.corpus!r} too")
        landed = last_parameters(self.home, known, "ingest") | {"speakers": same[known]}
        given = self.settings.model_dump(exclude_defaults=True, exclude={"pseudonym_key"})
        for name, value in recipe.parameters.items():
            if given.get(name) and value != landed.get(name):
                how = "without" if landed.get(name) is None else "with another"
                option = f"--{name.replace('_', '-')}"
                raise DumpError(f"{known} landed {how} {option}; add --replace to land it again")
        before, now = landed.get("pseudonym_key"), recipe.parameters["pseudonym_key"]
        if before == now:
            return known, False
        if before is None:
            how = "without pseudonyms; to have them, land it again with --pseudonymise --replace"
        elif now is None:
            how = "with pseudonyms; give --pseudonymise to leave it so, or land it in clear with --replace"
        else:
            how = "with pseudonyms by another key; give that key, or land it again with --replace"
        raise DumpError(f"this content has landed as {known!r} {how}")

    def build(self, stage: Stage) -> Built[tuple[str, bool]]:
        """Stage the tables of the corpus, and say what a user should know about the dump."""
        reader, scope = self.reader, self.settings.speakers.replace("auto", "person")
        read = private(reader, self.home, self.corpus, self.settings.speakers, self.key)

        def stream() -> Iterator[pa.RecordBatch]:
            with progress(f"reading {self.source} ({reader.format})", reader.total_bytes) as advance:
                for batch in prefetched(read()):
                    yield batch
                    advance(reader.bytes_read)

        landed = create_utterances(
            stage,
            stream,
            corpus=self.corpus,
            speaker_scope=scope,
            unique=not reader.ids_may_repeat,
            number_of=reader.number_of,
        )
        if _stamps(reader.files()) != self.stamps:
            raise DumpError(f"{self.source} changed while it was read; land it again when it is complete")
        self._say(reader.columns, *reader.all_notes(), *landed.notes)
        self._check(landed)
        if self.settings.speakers == "auto" and (named := seats(stage, reader.roles)) is not None:
            owner = f", or {reader.ways_to_people}" if reader.ways_to_people else ""
            raise DumpError(
                f"{self.source}: {named}; use --speakers conversation to keep them apart by conversation, or "
                f"--speakers person if they are people{owner}"
            )
        values = {
            "corpus": self.corpus,
            "format": reader.format,
            "source": _shown(self.places),
            "sha256": self.digest,
            "bytes": reader.total_bytes,
            "speaker_scope": scope,
            "landed_at": stage.started,
        }
        create_rest(stage, **values)
        stage.create("corpora", "1_ingest/corpora", messages=landed.messages, **values)

        def not_people(names: Sequence[str]) -> str:
            hidden = self.key is not None and NONE not in names  # `names` are pseudonyms
            listed = "NAME, as the dump writes it," if hidden else shlex.join(names)
            return f"--not-people {listed} --replace"

        hidden = self.key is not None
        self._say(*people_notes(stage, scope, reader.named_not_people, not_people, hidden=hidden))
        if sentence := one_sided(stage):
            way_out = (
                "name who says each message with --map speaker=COLUMN"
                if reader.takes_mapping
                else "is it whole?"
            )
            raise DumpError(f"{self.source}: {sentence}; {way_out}")
        order, of_corpus = order_note(stage), PartitionKey(corpus=self.corpus)
        again = [f"{note} with --replace" for note in (order, *repeated_notes(stage)) if note]
        others = (landed_note(stage, self.corpus), alike_note(stage) if scope == "person" else None)
        self._say(*again, *replies_notes(stage, landed), *filter(None, others))
        outputs = [Output(table, of_corpus) for table in LANDED]
        in_use, retired = list[Output](), of_turns(stage.partitions, self.corpus)  # of earlier content
        if self.key and any(p.address == ("corpora", of_corpus) for p in stage.partitions):
            in_use, retired = derived(stage, self.corpus)  # nothing stays that was derived from real names
        return Built((self.corpus, True), [*outputs, *in_use], retired=retired)

    def _check(self, rejected: Landed) -> None:
        """Raise DumpError if the dump has no messages, or too few of them can land."""
        reader, most = self.reader, self.settings.max_quarantine
        count, dump = rejected.messages, f"{self.source} (read as {reader.format})"
        if count == 0:
            raise DumpError(f"{dump} has no message; is it the right file and --format?")
        is_text = "undecodable" in rejected.reasons and reader.is_text
        ways = ["give their encoding with --encoding"] if is_text else []
        naming = "name the columns with --map, or " * reader.takes_mapping
        ways += rejected.remedies(f"{naming}name the format with --format")
        if "no_conversation" in rejected.reasons and reader.takes_mapping:
            ways.append(f"give --map {WITHOUT_CONVERSATIONS}")
        way_out = ", or ".join(ways)
        if count == rejected.total:
            raise DumpError(
                f"none of the {count:,} messages of {dump} can land: {rejected.counts}; such as {rejected.examples}; "
                f"{way_out}"
            )
        if rejected.unexpected > most * count:
            raise DumpError(
                f"{rejected.unexpected:,} of the {count:,} messages of {dump} cannot land, more than {100 * most:g}%: "
                f"{rejected.counts}; such as {rejected.examples}; {way_out}, or land the rest with "
                "--max-quarantine 100%"
            )

    def _say(self, *notes: str | None) -> None:
        for note in filter(None, notes):
            say(f"{self.source}: {note}")


def _shown(sources: Sequence[str]) -> str:
    return sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1:,} more"


def _stamps(files: Sequence[Path]) -> dict[Path, tuple[int, int]]:
    """Size and modification time in ns of each file, by which a change is noticed."""
    return {path: ((stat := path.stat()).st_size, stat.st_mtime_ns) for path in files}


def land_folder(
    folder: str,
    home: str,
    settings: DumpSettings = DumpSettings(),
    *,
    settle: float = 5.0,
    resources: Resources = Resources(),
    land: Callable[..., tuple[str, bool]] = land,
) -> dict[str, str]:
    """Land every complete dump of a drop folder with these settings; returns what became of each file or folder.

    Dumps that land are moved to `done/`; dumps that cannot land to `rejected/`, with the reason in a file beside them.
    When all were tried, DumpError lists the rejected ones. A dump that fails for another reason, such as a full disk,
    stays where it is, and its error is raised at once. No dump is moved and DumpError or PrivacyError raised if the
    folder does not exist, the settings name a corpus (each is named after its file), or no dump can land with them.

    settle: seconds without a change after which a dump is complete. land: called for each dump, in place of `land`.
    """
    if settings.name is not None:
        raise DumpError(f"dumps of a folder are named as their files; leave out the name {settings.name}")
    _key(settings, Warehouse.at(home))  # otherwise a mistake in a setting would have every dump rejected
    outcomes, rejected, before = dict[str, str](), list[str](), _dumps(Path(folder))
    if not os.access(folder, os.W_OK):
        raise DumpError(
            f"{folder} cannot be written to, so no dump can be moved out of it; change its permissions"
        )
    # Stamps are compared with each other: the clock may be wrong, and copies may keep the time of the original.
    time.sleep(settle if before else 0)
    for path in sorted(path for path, stamps in _dumps(Path(folder)).items() if before.get(path) == stamps):
        try:
            corpus, new = land(str(path), home, settings, resources=resources)
        except (DumpError, GateError) as error:
            rejected.append(f"{path.name} was moved to {_file_away(path, REJECTED, str(error))}: {error}")
        except Exception:
            for line in (*_said(outcomes), *rejected):  # which the error would hide
                say(line)
            raise
        else:
            _file_away(path, DONE)
            outcomes[path.name] = f"landed as {corpus}" if new else f"is there already, as {corpus}"
    if rejected:
        for line in _said(outcomes):
            say(line)
        raise DumpError("; ".join(rejected))
    return outcomes


def _said(outcomes: Mapping[str, str]) -> list[str]:
    """A line for each dump that landed or was there already."""
    return [f"{name} {outcome}" for name, outcome in outcomes.items()]


def _dumps(folder: Path) -> dict[Path, dict[Path, tuple[int, int]]]:
    """The dumps of a drop folder, with the stamps of their files; without hidden files and UNFINISHED ones."""
    if not folder.is_dir():
        raise DumpError(f"{folder} is not a folder; create it, or name another one")
    dumps = {}
    for path in folder.iterdir():
        if path.name not in (DONE, REJECTED) and path.name[0] != "." and not path.name.endswith(UNFINISHED):
            with suppress(FileNotFoundError):  # renamed meanwhile, so not complete
                dumps[path] = _stamps([*path.rglob("*")] if path.is_dir() else [path])
    return dumps


def _file_away(path: Path, where: str, reason: str | None = None) -> Path:
    """Move a dump into the subfolder `where` under a free name; the reason is written first, into a file beside it."""
    folder = path.parent / where
    folder.mkdir(exist_ok=True)
    names = (folder / (path.name if number == 1 else f"{path.name}.{number}") for number in count(1))
    target = next(name for name in names if not name.exists())
    if reason is not None:
        target.with_name(f"{target.name}.reason.txt").write_text(reason + "\n", encoding="utf-8")
    return path.rename(target)
