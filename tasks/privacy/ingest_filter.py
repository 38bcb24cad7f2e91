"""Privacy at ingest: forgotten people are excluded, and ids pseudonymised before anything is written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ssrem.errors import DumpError
from ssrem.privacy.key import PseudonymKey, load_key
from tasks.privacy.forgotten_list import ForgottenList, ids_of
from tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

    from ssrem.readers.base import Reader


def key_for(home: Warehouse, pseudonymise: bool, file: str | None) -> PseudonymKey | None:
    """The key; None without `pseudonymise`. PrivacyError if it is missing or unusable; DumpError if a key file is given
    without `--pseudonymise`."""
    if not pseudonymise:
        if file is not None:
            raise DumpError("--pseudonym-key is used only with --pseudonymise; give both")
        return None
    return load_key(file, outside=home.root)


def private(
    reader: Reader, home: Warehouse, corpus: str, speakers: str, key: PseudonymKey | None
) -> Iterable[pa.RecordBatch]:
    """The reader's batches without forgotten people and, with a key, pseudonymised.

    If the ids in the dump must be known first, it is read twice.
    """
    stream: Iterable[pa.RecordBatch] = reader
    forgotten = ForgottenList.of(home)
    if forgotten.people:
        from ssrem.privacy.excluded_people import listed_in, without
        from ssrem.privacy.traces import Traces

        def is_listed(id: str) -> bool:
            return any(forgotten.holds(one, corpus) for one in ids_of(id, key))

        if excluded := listed_in(reader, is_listed, scoped=speakers == "conversation"):
            stream = without(stream, Traces(excluded))
    if key is not None:
        from ssrem.privacy.pseudonyms import pseudonymised, speakers_of

        # The id of a seat, such as user or agent, is an ordinary word, which is not masked in text.
        known = speakers_of(reader) if speakers != "conversation" else ()
        stream = pseudonymised(stream, key, known)
    return stream


def landed_key(home: Warehouse, corpus: str) -> str | None:
    """Fingerprint of the key with which a corpus was pseudonymised when it landed; None if it was not."""
    with home.reader() as connection:
        row = connection.execute(
            "SELECT parameters FROM runs WHERE stage = 'ingest' AND parameters->>'$.corpus' = ? "
            "ORDER BY started DESC LIMIT 1",
            [corpus],
        ).fetchone()
    fingerprint: str | None = json.loads(row[0]).get("pseudonym_key") if row else None
    return fingerprint


def check_same_way(home: Warehouse, corpus: str, key: PseudonymKey | None) -> None:
    """DumpError if a landed corpus was pseudonymised with another key than `key`, or one of both is without pseudonyms,
    so that it cannot count as landed already."""
    before, now = landed_key(home, corpus), key.fingerprint if key else None
    if before == now:
        return
    if before is None:
        how = "without pseudonyms; to have them, land it again with --pseudonymise --replace"
    elif now is None:
        how = "with pseudonyms; give --pseudonymise to leave it so, or land it in clear with --replace"
    else:
        how = "with pseudonyms by another key; give that key, or land it again with --replace"
    raise DumpError(f"this content has landed as {corpus!r} {how}")
