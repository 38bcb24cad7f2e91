"""Stage `forget`: remove people from tables, run folders and caches, then audit that nothing is left of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ssrem.errors import PrivacyError
from ssrem.privacy.traces import Traces
from ssrem.readers.rows import PROBLEMS
from ssrem.schemas import LANDED, TABLES
from ssrem.tables.places import create_places
from ssrem.tasks.privacy.erasure_audit import Words, left_of, other_files, words_of
from ssrem.tasks.privacy.forgotten_list import ForgottenList
from ssrem.tasks.privacy.people import last_parameters, people_of, speaker_of
from ssrem.tasks.privacy.purge import derived_partitions, hashes_of, held_texts, purge
from ssrem.tasks.speaker_tables.build import without_tables
from ssrem.tasks.stage.ledger import Recipe
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.protocol import Built, run_stage
from ssrem.tasks.stage.stage import Output, Resources, Stage
from ssrem.tasks.stage.steps import step
from ssrem.tasks.warehouse.corpora import chosen_corpora, landed_corpus
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import PartitionKey

_KEPT = {
    "quarantine": "kept_quarantine",
    "utterances": "kept_messages",
    "conversations": "kept_conversations",
    "corpora": "kept_corpora",
}
"""Landed table → scratch table of what remains in it, in the order in which these are built."""


@step("forget")
def forget(
    people: Sequence[str],
    home: str,
    *,
    corpora: Sequence[str] | None = None,
    resources: Resources | None = None,
) -> dict[str, Any]:
    """Remove the people with these digests (see `who_is`) from the corpora; by default from all, also future ones.

    Returns what was removed by corpus, the evaluators that learned from the corpora before, and the audit's counts, all
    zero. The speaker tables are unpublished: see `unbuilt_tables`. Another run completes one that was killed.
    PrivacyError if the audit finds anything left.
    """
    warehouse = Warehouse.at(home)
    searched = chosen_corpora(warehouse, corpora)
    listed = ForgottenList.of(warehouse)
    everyone = {corpus: people_of(warehouse, corpus) for corpus in searched}
    ids = {
        corpus: {id for id in known if set(listed.digests([id])) & set(people)}
        for corpus, known in everyone.items()
    }
    held_by = [corpus for corpus in searched if ids[corpus]]
    if not held_by and not any(
        listed.holds_digest(one, corpus) for one in people for corpus in searched or [""]
    ):
        raise PrivacyError(
            f"nobody of these digests is in {', '.join(searched) or warehouse.root}; see ssrem forget"
        )
    traces = Traces({id for known in ids.values() for id in known})
    with progress("collecting their messages"), warehouse.reader() as connection:
        words = words_of(connection, traces.ids, held_by)
        # The turns of others return when the tables are rebuilt, so their encodings are not deleted.
        turns = hashes_of(
            connection,
            "SELECT DISTINCT text FROM turns WHERE NOT (list_contains(?, speaker) AND list_contains(?, corpus))",
            [sorted(traces.ids), held_by],
        )
    removed = {
        corpus: _forget_in(
            warehouse, corpus, sorted(ids[corpus]), Traces(ids[corpus]), words, people, corpora, resources
        )
        for corpus in held_by
    }
    with warehouse.lock("forget"):
        if not held_by:  # forgotten before, perhaps interrupted before the caches were purged
            ForgottenList.of(warehouse).with_people(people, corpora).save(warehouse)
        with progress("emptying caches"):
            purged = purge(warehouse, np.union1d(held_texts(warehouse), turns))
        with progress("auditing what is left"):
            skip = _of_other_corpora(warehouse, searched) if corpora else ()
            left = left_of(warehouse, traces, words, skip)
    if left["ids"] or left["texts"] or left["vectors"]:
        raise PrivacyError(
            f"forgotten, but {warehouse.root} still holds {left['ids']} ids, {left['texts']} texts and "
            f"{left['vectors']} vectors of theirs; keep it from others, and report this"
        )
    return {
        "corpora": removed,
        "evaluators": _outdated_evaluators(warehouse, people),
        "purged": purged,
        "left": left,
        "other_files": other_files(warehouse, traces),
    }


def _forget_in(
    home: Warehouse,
    corpus: str,
    ids: list[str],
    traces: Traces,
    words: Words,
    people: Sequence[str],
    corpora: Sequence[str] | None,
    resources: Resources | None,
) -> dict[str, int]:
    def recipe() -> Recipe:
        parameters = {"corpus": corpus, "people": list(people), "tables": _table_settings(home, corpus)}
        return Recipe(parameters, {corpus: landed_corpus(home, corpus)[0]})

    def build(stage: Stage) -> Built[dict[str, int]]:
        _, scope = landed_corpus(home, corpus)
        # Saved first, so that the dump does not bring them back when it lands again after an interruption.
        ForgottenList.of(home).with_people(people, corpora).save(home)
        with progress(f"removing them from {corpus}"):
            theirs, changed = _quarantined(stage, corpus, traces, words)
            values = {"corpus": corpus, "people": ids, "theirs": theirs}
            for table in ("forgotten_people", "forgotten_messages"):
                stage.create(table, f"5_privacy/{table}", **values)
            stage.create("linked", "5_privacy/kept_links", **values)
            create_places(stage)
            for table in _KEPT.values():
                stage.create(table, f"5_privacy/{table}", **values)
            # Only now, since the statements join rows by ids as they landed.
            _update(stage, "kept_quarantine", "row_no", "raw", changed)
            for table in ("kept_messages", "kept_conversations"):
                _clean(stage, table, traces, scope)
        counts, key = _counts(stage, corpus), PartitionKey(corpus=corpus)
        retired = derived_partitions(home, corpus)
        if not counts["utterances_left"]:  # nobody else is in the corpus: all of it is unpublished
            return Built(counts, retired=[*retired, *((table, key) for table in LANDED)])
        for table in LANDED:
            stage.create(table)
            stage.connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM {_KEPT[table]}")
        return Built(counts, [Output(table, key) for table in LANDED], retired=retired)

    return run_stage(home, "forget", recipe, build, done=lambda _: None, resources=resources)


def unbuilt_tables(home: Warehouse) -> dict[str, dict[str, Any]]:
    """Corpus to settings of the speaker tables that an erasure has unpublished and nobody has built again since."""
    return {
        corpus: settings
        for corpus in without_tables(str(home.root), chosen_corpora(home, None))
        if (settings := _table_settings(home, corpus)) is not None
    }


def _table_settings(home: Warehouse, corpus: str) -> dict[str, Any] | None:
    """Settings of a corpus's speaker tables, which may be unpublished by an erasure; None if it has none."""
    if without_tables(str(home.root), [corpus]):  # a corpus that landed again has no tables yet
        return last_parameters(home, corpus, "ingest", "forget").get("tables")
    settings = last_parameters(home, corpus, "tables")
    return {name: value for name, value in settings.items() if name != "corpus"}


def _quarantined(
    stage: Stage, corpus: str, traces: Traces, words: Words
) -> tuple[list[int], dict[int, bytes]]:
    """Quarantined rows of these people, and new content of others' rows that mention or quote them.

    A readable row is cleaned, an unreadable one emptied. Returns row numbers, and row number → new bytes.
    """
    theirs, changed = [], {}
    rows = stage.connection.execute(
        "SELECT row_no, record, reason, raw FROM quarantine WHERE corpus = ? AND octet_length(raw) > 0",
        [corpus],
    )
    for row_no, record, reason, raw in rows.fetchall():
        readable = reason not in PROBLEMS
        if readable and record == "message" and speaker_of(raw) in traces.ids:
            theirs.append(row_no)
        elif readable and (cleaned := traces.clean_row(raw)) != raw:
            changed[row_no] = cleaned
        elif not readable and (traces.in_bytes(raw) or words.in_bytes(raw)):
            changed[row_no] = b""
    return theirs, changed


def _clean(stage: Stage, table: str, traces: Traces, scope: str) -> None:
    """Remove mentions of these people from the ids and metadata of the remaining rows."""
    changes: dict[str, Any] = dict.fromkeys(("conversation_id", "utterance_id", "reply_to"), traces.clean_id)
    changes |= dict.fromkeys(("metadata", "ratings"), traces.clean_json)
    if scope == "conversation":  # CONVERSATION/SPEAKER
        changes |= dict.fromkeys(("speaker", "addressee"), traces.clean_id)
    columns = {d[0] for d in stage.connection.execute(f"FROM {table} LIMIT 0").description or []}
    for column in sorted(columns & changes.keys()):
        rows = stage.connection.execute(
            f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL "
            f"AND len(list_filter(?, lambda id: contains({column}, id))) > 0",
            [sorted(traces.ids)],
        ).fetchall()
        cleaned = {value: changes[column](value) for (value,) in rows}
        _update(stage, table, column, column, {old: new for old, new in cleaned.items() if old != new})


def _update(stage: Stage, table: str, key: str, column: str, values: Mapping[Any, Any]) -> None:
    """Set `column` to `values[k]` in the rows whose `key` is k."""
    import pyarrow as pa

    if not values:
        return
    changes = pa.table({"key": pa.array(values.keys()), "value": pa.array(values.values())})
    stage.connection.register("changes", changes)
    stage.connection.execute(
        f"UPDATE {table} SET {column} = c.value FROM changes AS c WHERE {table}.{key} = c.key"
    )
    stage.connection.unregister("changes")


def _counts(stage: Stage, corpus: str) -> dict[str, int]:
    (row,) = stage.connection.execute(
        "SELECT (SELECT count(*) FROM forgotten_messages), (SELECT count(*) FROM kept_messages), "
        "(SELECT count(*) FROM conversations WHERE corpus = ?) - (SELECT count(*) FROM kept_conversations)",
        [corpus],
    ).fetchall()
    return dict(zip(("utterances", "utterances_left", "conversations"), row, strict=True))


def _outdated_evaluators(home: Warehouse, people: Sequence[str]) -> list[dict[str, Any]]:
    """Versions of evaluators that learned from a corpus before these people were removed from it."""
    runs = home.query("SELECT parameters, started FROM runs WHERE stage = 'forget' ORDER BY started")
    erasures = [(json.loads(parameters), started) for parameters, started in runs]
    erased_at = {one["corpus"]: started for one, started in erasures if set(one["people"]) & set(people)}
    rows = home.query(
        "SELECT evaluator, version, promoted, corpora, trained_at FROM evaluators ORDER BY evaluator, version"
    )
    outdated = []
    for name, version, promoted, corpora, trained_at in rows:
        learned = [c for c in sorted(json.loads(corpora)) if c in erased_at and erased_at[c] > trained_at]
        if learned:
            row = {"evaluator": name, "version": version, "promoted": promoted, "corpora": learned}
            outdated.append(row)
    return outdated


def _of_other_corpora(home: Warehouse, corpora: Collection[str]) -> set[Any]:
    """Published files of other corpora, in which nobody is to be forgotten."""
    return {
        home.root / partition.path
        for partition in home.partitions()
        if "corpus" in TABLES[partition.table].column_names and partition.key.corpus not in corpora
    }
