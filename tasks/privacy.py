"""Privacy in a home folder: ids become pseudonyms and forgotten people are left out before anything is written;
`ssrem forget` publishes each corpus again without the person, and deletes what was derived from it."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ssrem.errors import HomeError, PrivacyError
from ssrem.privacy.key import CONVERSATION, SPEAKER, VARIABLE, PseudonymKey, load_key
from ssrem.privacy.people import SHORTEST_WORDS, Traces, digest
from ssrem.readers.rows import PROBLEMS
from ssrem.registry import did_you_mean
from ssrem.schemas import LANDED
from ssrem.sql import statement
from ssrem.tables.landing import create_rest, create_utterances
from ssrem.tasks.settings import Resources
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import Built, Output, Recipe, Stage, last_parameters, run_stage
from ssrem.tasks.versions import of_versions, reinstated
from ssrem.tasks.warehouse.catalog import Address, PartitionKey, of_turns
from ssrem.tasks.warehouse.files import delete, whole_file
from ssrem.tasks.warehouse.home import Warehouse, landed_corpora, landed_corpus, records
from ssrem.tasks.warehouse.prune import MODELS, prune

if TYPE_CHECKING:
    import pyarrow as pa

    from ssrem.readers.base import Reader

FILE = "forgotten.json"
"""Name of the file in a home folder that lists the forgotten people."""

FOLDERS = ("failures", "reports", "checkpoints", "staging", "vectors", *MODELS)
"""Folders of files that may hold anyone's words and can be made again."""

_HELD = """
    WITH said AS (SELECT corpus, speaker, text FROM utterances UNION ALL SELECT corpus, speaker, text FROM turns)
    SELECT text FROM said WHERE NOT (list_contains($corpora, corpus) AND list_contains($ids, speaker))
    UNION ALL SELECT text FROM negatives WHERE NOT list_contains($corpora, corpus)
    UNION ALL SELECT unnest([response, reference] || context) FROM rated_responses"""
"""Texts of the published tables that stay when the people `$ids` leave the corpora `$corpora`."""

_FIELDS = ("conversation_id", "utterance_id", "speaker", "addressee", "reply_to", "text", "time", "metadata")
_BATCH = 65_536


@dataclass(frozen=True)
class Forgotten:
    """Who is forgotten. people: digest of an id → the corpora in which it is forgotten; None: in all, also future ones.

    Digests are salted, with a salt for each home folder: whoever has the list can only check whether it contains an id
    that they already know.
    """

    salt: bytes
    people: dict[str, list[str] | None]

    @classmethod
    def of(cls, home: Warehouse) -> Forgotten:
        """The home folder's list, or an empty one if there is none; HomeError if its file is damaged."""
        path = home.root / FILE
        if not path.exists():
            return cls(secrets.token_bytes(16), {})
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            people = {str(p["digest"]): p["corpora"] and list(p["corpora"]) for p in content["people"]}
            return cls(bytes.fromhex(content["salt"]), people)
        except (ValueError, KeyError, TypeError):
            raise HomeError(
                f"{path} is damaged; restore it from a backup, or delete it and forget those people again"
            ) from None

    def holds(self, id: str, corpus: str) -> bool:
        """Whether the id is forgotten in the corpus."""
        corpora = self.people.get(digest(id, self.salt), ())
        return corpora is None or corpus in corpora

    def add(self, home: Warehouse, ids: Iterable[str], corpora: Sequence[str] | None) -> None:
        """Add the ids and write the list, all or nothing; corpora as in `people`. The caller holds the home's lock."""
        for one in (digest(id, self.salt) for id in ids):
            before = self.people.get(one, [])
            either = corpora is None or before is None
            self.people[one] = None if either else sorted({*before, *corpora})  # type: ignore[misc]
        content = {
            "salt": self.salt.hex(),
            "people": [{"digest": one, "corpora": corpora} for one, corpora in sorted(self.people.items())],
        }
        with whole_file(home.root / FILE) as draft:
            draft.write_text(json.dumps(content, indent=1), encoding="utf-8")


def ids_of(speaker: str, key: PseudonymKey | None) -> list[str]:
    """The ids that tables may have for the speaker: the id itself and, with the key, its pseudonym.

    An id of the form CONVERSATION/SPEAKER names a seat, whose pseudonym is made of both parts.
    """
    if key is None:
        return [speaker]
    ids = [speaker, key.pseudonym(speaker, SPEAKER)]
    for at, sign in enumerate(speaker):
        if sign == "/":
            seat = key.pseudonym(speaker[:at], CONVERSATION), key.pseudonym(speaker[at + 1 :], SPEAKER)
            ids.append("/".join(seat))
    return ids


def private(
    reader: Reader, home: Warehouse, corpus: str, speakers: str, key: PseudonymKey | None
) -> Callable[[], Iterable[pa.RecordBatch]]:
    """A function that gives the reader's batches without forgotten people and, with a key, pseudonymised.

    The dump is read one more time beforehand if the ids in it must be known first.
    """
    forgotten = Forgotten.of(home)
    seats = speakers == "conversation"
    if not forgotten.people and key is None:
        return lambda: reader
    from ssrem.privacy.people import pseudonymised, speakers_of, without

    listed = {
        id
        for id in (speakers_of(reader, seats=seats) if forgotten.people else ())
        if any(forgotten.holds(one, corpus) for one in ids_of(id, key))
    }

    def read() -> Iterable[pa.RecordBatch]:
        return without(reader, Traces(listed)) if listed else reader

    if key is None:
        return read
    # The id of a seat, such as user or agent, is an ordinary word, which is not masked in text.
    known = () if seats else speakers_of(reader)
    return lambda: pseudonymised(read(), key, known)


def forget(
    speaker: str,
    home: str,
    corpora: Sequence[str] | None = None,
    *,
    pseudonym_key: str | None = None,
    resources: Resources | None = None,
) -> dict[str, Any]:
    """Publish each corpus in which the speaker occurs without them, and delete what was derived from these corpora.

    corpora: None for all, also those that land later. pseudonym_key: file of the key, which finds a pseudonym by the
    original id. Returns the counts of utterances and conversations that left each corpus, the versions of evaluators
    that left, and the number of judges' answers deleted. If it is killed, each corpus is published as it was or as it
    should be; running it again does the rest.

    Raises HomeError for a corpus that has not landed, and PrivacyError if none has the speaker or had them forgotten.
    """
    warehouse = Warehouse.at(home)
    given = pseudonym_key or os.environ.get(VARIABLE)
    key = load_key(pseudonym_key, outside=warehouse.root) if given else None
    searched = landed_corpora(home, corpora, even_none=True)
    ids, listed = ids_of(speaker, key), Forgotten.of(warehouse)
    people = {corpus: _people(warehouse, corpus) for corpus in searched}
    holding = [corpus for corpus in searched if not people[corpus].isdisjoint(ids)]
    if not holding and not any(listed.holds(id, corpus) for id in ids for corpus in searched or [""]):
        where = ", ".join(searched) or f"{warehouse.root}, where no corpus has landed"
        near = did_you_mean(repr(speaker), map(repr, set().union(*people.values())))
        landed = (last_parameters(warehouse, one, "ingest").get("pseudonym_key") for one in searched)
        keys = set(filter(None, landed))
        if key and keys and key.fingerprint not in keys:
            near = f"; they landed with another key than this one (fingerprint {', '.join(sorted(keys))})"
        hint = near or ("" if key else "; where it landed with pseudonyms, give --pseudonym-key")
        raise PrivacyError(f"nobody is called {speaker!r} in {where}{hint}")
    with warehouse.lock("forget"):
        listed.add(warehouse, ids, corpora)  # first, so that they stay away however this ends
    evaluators = [{"evaluator": name, "version": version} for name, version in _leaving(warehouse, holding)]
    answers = purge(warehouse, holding, ids)
    removed = {corpus: _publish_without(warehouse, corpus, ids, resources) for corpus in holding}
    prune(warehouse, 0, 0, keep_seconds=0)
    return {"corpora": removed, "evaluators": evaluators, "deleted": {"judgments": answers}}


def derived(stage: Stage, corpus: str) -> tuple[list[Output], list[Address]]:
    """(Outputs, retired) of a change to a corpus. Retired are the partitions computed from it: its tables, the versions
    of evaluators that learned from it, and whatever these scored. Outputs are the versions, staged here, that come into
    use again in place of retired ones. `prune` deletes the models of versions that are no longer published."""
    home = stage.home
    gone = _leaving(home, [corpus])
    retired = [*of_turns(home.partitions(), corpus), *of_versions(home, gone)]
    return reinstated(stage, gone), list(dict.fromkeys(retired))


def purge(home: Warehouse, corpora: Sequence[str] = (), ids: Sequence[str] = ()) -> int:
    """Delete what no published table needs: older run folders, FOLDERS, and judges' answers about texts that are in no
    table, or that only these people wrote in these corpora; returns how many answers were deleted.

    Queries that still read an older snapshot may then fail.
    """
    import numpy as np

    from ssrem.encoders.store import text_hashes
    from ssrem.evaluators.judge.endpoint import retain

    answers, held = 0, [np.zeros(0, np.uint64)]
    with home.lock("purge"), progress("emptying caches"):
        if any(home.judgments.glob("*")):
            with home.reader() as connection:
                cursor = connection.execute(_HELD, {"corpora": list(corpora), "ids": list(ids)})
                for rows in iter(lambda: cursor.fetchmany(_BATCH), []):
                    held.append(text_hashes([text for (text,) in rows if text is not None]))
            answers = retain(home.judgments, np.concatenate(held))
        for name in FOLDERS:
            delete(home.root / name)
    prune(home, 0, 0, keep_seconds=0)
    return answers


def _publish_without(
    home: Warehouse, corpus: str, ids: Sequence[str], resources: Resources | None
) -> dict[str, int]:
    """Publish the corpus without these people and retire what was derived from it; returns the rows lost, by table."""

    def build(stage: Stage) -> Built[dict[str, int]]:
        (before,) = records(stage.connection, "FROM corpora WHERE corpus = ?", [corpus])
        with progress(f"removing them from {corpus}"):
            _land_again(stage, before, ids)
        (after,) = records(stage.connection, "FROM main.corpora")
        counts = {name: before[name] - after[name] for name in ("utterances", "conversations")}
        landed = [(table, PartitionKey(corpus=corpus)) for table in LANDED]
        again, retired = derived(stage, corpus)
        if not after["utterances"]:  # nobody else was in it
            return Built(counts, again, retired=[*retired, *landed])
        return Built(counts, [*again, *(Output(*address) for address in landed)], retired=retired)

    def recipe() -> Recipe:
        return Recipe({"corpus": corpus}, {corpus: landed_corpus(home, corpus)[0]})

    return run_stage(home, "forget", recipe, build, done=lambda _: None, resources=resources)


def _land_again(stage: Stage, landed: dict[str, Any], ids: Sequence[str]) -> None:
    """Stage the tables of a corpus as an ingest without these people would, by reading its published tables like a
    dump. landed: its row of `corpora`."""
    from ssrem.privacy.people import FORGOTTEN, without

    corpus, execute = landed["corpus"], stage.connection.execute
    said = execute(
        "SELECT DISTINCT text FROM utterances WHERE corpus = ? AND list_contains(?, speaker) AND length(text) >= ?",
        [corpus, ids, SHORTEST_WORDS],
    ).fetchall()
    execute("CREATE TABLE forgotten_people AS SELECT unnest(?::VARCHAR[]) AS id", [ids])
    values = {
        "corpus": corpus,
        "seats": landed["speaker_scope"] == "conversation",
        "unreadable": [*PROBLEMS, FORGOTTEN],
        "fields": json.dumps({name: "TIMESTAMP" if name == "time" else "VARCHAR" for name in _FIELDS}),
    }
    with stage.connection.cursor() as cursor:  # it reads while the connection writes

        def read() -> Iterable[pa.RecordBatch]:
            batches: Any = cursor.sql(statement("5_privacy/landed"), params=values).to_arrow_reader(_BATCH)
            return without(batches, Traces(ids, [text for (text,) in said]))

        rows = create_utterances(
            stage, read, corpus=corpus, speaker_scope=landed["speaker_scope"], unique=True
        )
    create_rest(stage, **landed)
    stage.create("corpora", "1_ingest/corpora", messages=rows.messages, **landed)


def _people(home: Warehouse, corpus: str) -> set[str]:
    """All speakers and addressees of a corpus, and the speakers of those of its quarantined rows that can be read."""
    query = "SELECT DISTINCT unnest([speaker, addressee]) FROM utterances WHERE corpus = ?"
    people = {id for (id,) in home.query(query, [corpus])}
    for (raw,) in home.query("SELECT raw FROM quarantine WHERE corpus = ?", [corpus]):
        try:
            row = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        people.add(row.get("speaker") if isinstance(row, dict) else None)
    return {id for id in people if isinstance(id, str)}


def _leaving(home: Warehouse, corpora: Sequence[str]) -> list[tuple[str, int]]:
    """The versions of evaluators that learned from one of these corpora, are a blend of one that did, or read a model
    of MODELS; not those that come with ssrem."""
    from ssrem.evaluators import comes_packaged

    rows = home.query("SELECT evaluator, version, signature, corpora, config FROM evaluators ORDER BY ALL")
    learned = [
        sign
        for name, _, sign, learned_from, _ in rows
        if not json.loads(learned_from).keys().isdisjoint(corpora) and not comes_packaged(name, sign)
    ]
    folders = [str(home.root / name) for name in MODELS] if corpora else []
    return [
        (name, version)
        for name, version, sign, _, config in rows
        if sign in learned
        or any(f"[{part}]" in sign for part in learned)
        or any(folder in config for folder in folders)
    ]
