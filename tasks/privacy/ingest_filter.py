"""Privacy at ingest: forgotten people are excluded, and ids pseudonymised before anything is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ssrem.errors import DumpError
from ssrem.privacy.key import PseudonymKey, load_key
from ssrem.tasks.privacy.forgotten_list import ForgottenList, ids_of
from ssrem.tasks.privacy.people import last_parameters
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

    from ssrem.readers.base import Reader


def key_for(home: Warehouse, pseudonymise: bool, file: str | None) -> PseudonymKey | None:
    """The key; None without `pseudonymise`. PrivacyError if it is missing or unusable; DumpError if a key file is given
    without `--pseudonymise`."""
    if pseudonymise:
        return load_key(file, outside=home.root)
    if file is not None:
        raise DumpError("--pseudonym-key is used only with --pseudonymise; give both")
    return None


def private(
    reader: Reader, home: Warehouse, corpus: str, speakers: str, key: PseudonymKey | None
) -> Iterable[pa.RecordBatch]:
    """The reader's batches without forgotten people and, with a key, pseudonymised.

    If the ids in the dump must be known first, it is read twice.
    """
    stream: Iterable[pa.RecordBatch] = reader
    forgotten = ForgottenList.of(home)
    seats = speakers == "conversation"
    if not forgotten.people and key is None:
        return stream
    from ssrem.privacy.record_batches import pseudonymised, speakers_of, without
    from ssrem.privacy.traces import Traces

    if forgotten.people:
        listed = {
            id
            for id in speakers_of(reader, seats=seats)
            if any(forgotten.holds(one, corpus) for one in ids_of(id, key))
        }
        stream = without(stream, Traces(listed)) if listed else stream
    if key is not None:
        # The id of a seat, such as user or agent, is an ordinary word, which is not masked in text.
        stream = pseudonymised(stream, key, () if seats else speakers_of(reader))
    return stream


def check_same_way(home: Warehouse, corpus: str, key: PseudonymKey | None) -> None:
    """DumpError if a landed corpus was pseudonymised with another key, or with one where `key` is None or the other way
    round: the content then has not landed in the same form."""
    before, now = last_parameters(home, corpus, "ingest").get("pseudonym_key"), key and key.fingerprint
    if before == now:
        return
    if before is None:
        how = "without pseudonyms; to have them, land it again with --pseudonymise --replace"
    elif now is None:
        how = "with pseudonyms; give --pseudonymise to leave it so, or land it in clear with --replace"
    else:
        how = "with pseudonyms by another key; give that key, or land it again with --replace"
    raise DumpError(f"this content has landed as {corpus!r} {how}")
