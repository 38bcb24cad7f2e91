"""The people in a home folder, and the digests of their ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ssrem.errors import PrivacyError
from ssrem.privacy.key import PseudonymKey
from ssrem.tasks.privacy.forgotten_list import ForgottenList, ids_of
from ssrem.tasks.warehouse.corpora import chosen_corpora
from ssrem.tasks.warehouse.home import Warehouse


def who_is(
    home: Warehouse, speaker: str, corpora: Sequence[str] | None = None, key: PseudonymKey | None = None
) -> list[str]:
    """Digests of the speaker's ids. `forget` takes digests so that neither flow parameters nor the ledger hold an id.

    HomeError for a corpus that has not landed, PrivacyError if the speaker is in none of the corpora.
    """
    searched = chosen_corpora(home, corpora)
    listed = ForgottenList.of(home)
    ids = ids_of(speaker, key)
    known = any(set(ids) & people_of(home, corpus) for corpus in searched)
    if not known and not any(listed.holds(id, corpus) for id in ids for corpus in searched or [""]):
        hint = "" if key else "; where it landed with pseudonyms, give --pseudonym-key"
        where = ", ".join(searched) or f"{home.root}, where no corpus has landed"
        raise PrivacyError(f"nobody is called {speaker!r} in {where}{hint}")
    return ForgottenList.saved_in(home).digests(ids)


def people_of(home: Warehouse, corpus: str) -> set[str]:
    """All speakers and addressees of a corpus, and the speakers of its readable quarantined rows."""
    rows = home.query(
        "SELECT speaker FROM utterances WHERE corpus = $corpus UNION "
        "SELECT addressee FROM utterances WHERE corpus = $corpus",
        {"corpus": corpus},
    )
    raws = home.query("SELECT raw FROM quarantine WHERE corpus = ?", [corpus])
    return {id for (id,) in rows if id is not None} | {id for (raw,) in raws if (id := speaker_of(raw))}


def speaker_of(raw: bytes) -> str | None:
    """The speaker of a quarantined row; None if the row is unreadable."""
    try:
        row = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    speaker = row.get("speaker") if isinstance(row, dict) else None
    return speaker if isinstance(speaker, str) else None


def last_parameters(home: Warehouse, corpus: str, *stages: str) -> dict[str, Any]:
    """Parameters of the newest run of one of the stages for the corpus; empty if there is none."""
    rows = home.query(
        "SELECT parameters FROM runs WHERE list_contains(?, stage) AND parameters->>'$.corpus' = ? "
        "ORDER BY started DESC LIMIT 1",
        [stages, corpus],
    )
    return dict(json.loads(rows[0][0])) if rows else {}
