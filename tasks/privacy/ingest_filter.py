"""What an ingest does for people's privacy: those who were forgotten stay out, and pseudonyms come before any write."""

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
    """The key, if pseudonyms are asked for. PrivacyError where there is none, DumpError for a file without need."""
    if not pseudonymise:
        if file is not None:
            raise DumpError("--pseudonym-key speaks of --pseudonymise; give both")
        return None
    return load_key(file, outside=home.root)


def private(
    reader: Reader, home: Warehouse, corpus: str, speakers: str, key: PseudonymKey | None
) -> Iterable[pa.RecordBatch]:
    """The reader's batches as they may be written. Where people have to be known first, the dump is read twice."""
    stream: Iterable[pa.RecordBatch] = reader
    forgotten = ForgottenList.of(home)
    if forgotten.people:
        from ssrem.privacy.excluded_people import listed_in, without
        from ssrem.privacy.traces import Traces

        def is_listed(id: str) -> bool:
            return any(forgotten.holds(one, corpus) for one in ids_of(id, key))

        if found := listed_in(reader, is_listed, scoped=speakers == "conversation"):
            stream = without(stream, Traces(found))
    if key is not None:
        from ssrem.privacy.pseudonyms import pseudonymised, speakers_of

        # A seat's id, such as user or agent, is a word of its own in every text.
        known = speakers_of(reader) if speakers != "conversation" else ()
        stream = pseudonymised(stream, key, known)
    return stream


def landed_key(home: Warehouse, corpus: str) -> str | None:
    """Fingerprint of the key by which a corpus's ids became pseudonyms when it landed; None where they did not."""
    with home.reader() as connection:
        row = connection.execute(
            "SELECT parameters FROM runs WHERE stage = 'ingest' AND parameters->>'$.corpus' = ? "
            "ORDER BY started DESC LIMIT 1",
            [corpus],
        ).fetchone()
    found: str | None = json.loads(row[0]).get("pseudonym_key") if row else None
    return found


def check_same_way(home: Warehouse, corpus: str, key: PseudonymKey | None) -> None:
    """Raise DumpError where content that has landed is to land another way: with pseudonyms, without, or by another
    key. Nothing is done then, and saying that it is done already would be wrong."""
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
