"""Privacy at ingest: forgotten people are left out, and ids pseudonymised, before anything is written."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ssrem.errors import DumpError, HomeError
from ssrem.privacy.key import CONVERSATION, SPEAKER, PseudonymKey, load_key
from ssrem.privacy.traces import Traces, digest
from ssrem.tasks.stage.stage import last_parameters
from ssrem.tasks.warehouse.files import sync_path
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

    from ssrem.readers.base import Reader

FILE = "forgotten.json"
"""The list of forgotten people in a home folder."""


@dataclass(frozen=True)
class Forgotten:
    """Who is forgotten: digest of an id → the corpora in which it is; None: in all, also future ones.

    Digests are under the home folder's own salt: whoever has the list can only check whether it contains an id that
    they already know.
    """

    salt: bytes
    people: dict[str, list[str] | None]

    @classmethod
    def of(cls, home: Warehouse) -> Forgotten:
        """The home folder's list, or a new one; HomeError if the file is damaged."""
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
        """Add ids to the list, whole or not at all; corpora as in `people`. The caller holds the home's lock."""
        for one in (digest(id, self.salt) for id in ids):
            before = self.people.get(one, [])
            either = corpora is None or before is None
            self.people[one] = None if either else sorted({*before, *corpora})  # type: ignore[misc]
        content = {
            "salt": self.salt.hex(),
            "people": [{"digest": one, "corpora": corpora} for one, corpora in sorted(self.people.items())],
        }
        draft = home.root / f".{FILE}.{os.getpid()}.tmp"
        draft.write_text(json.dumps(content, indent=1), encoding="utf-8")
        sync_path(draft)
        draft.replace(home.root / FILE)
        sync_path(home.root)


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
    forgotten = Forgotten.of(home)
    seats = speakers == "conversation"
    if not forgotten.people and key is None:
        return stream
    from ssrem.privacy.record_batches import pseudonymised, speakers_of, without

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
