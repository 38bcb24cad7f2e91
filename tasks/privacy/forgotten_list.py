"""The list of forgotten people, so that landing their dump again does not bring them back.

It holds digests under the home folder's own salt, never ids: whoever has the list can only check whether it contains an
id that they already know.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ssrem.errors import HomeError
from ssrem.privacy.key import CONVERSATION, SPEAKER, PseudonymKey
from ssrem.privacy.traces import digest
from ssrem.tasks.warehouse.files import sync_path
from ssrem.tasks.warehouse.home import Warehouse

FILE = "forgotten.json"


@dataclass(frozen=True)
class ForgottenList:
    """Who is forgotten: digest of an id → the corpora in which it is; None: in all, also future ones."""

    salt: bytes
    people: dict[str, tuple[str, ...] | None]

    @classmethod
    def of(cls, home: Warehouse) -> ForgottenList:
        """The home folder's list, or a new one; HomeError if the file is damaged."""
        path = home.root / FILE
        if not path.exists():
            return cls(secrets.token_bytes(16), {})
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            people = {
                p["digest"]: None if p["corpora"] is None else tuple(p["corpora"]) for p in content["people"]
            }
            return cls(bytes.fromhex(content["salt"]), people)
        except (ValueError, KeyError, TypeError):
            raise HomeError(
                f"{path} is damaged; restore it from a backup, or forget those people again"
            ) from None

    @classmethod
    def saved_in(cls, home: Warehouse) -> ForgottenList:
        """As `of`, with the salt saved, so that digests stay valid; safe to call in two processes at once."""
        path = home.root / FILE
        if not path.exists():
            draft = cls.of(home)._draft(home)
            with suppress(FileExistsError):
                path.hardlink_to(draft)
            draft.unlink()
        return cls.of(home)

    def digests(self, ids: Iterable[str]) -> list[str]:
        """Digests of the ids, sorted."""
        return sorted(digest(id, self.salt) for id in ids)

    def holds(self, id: str, corpus: str) -> bool:
        """Whether the id is forgotten in the corpus."""
        return self.holds_digest(digest(id, self.salt), corpus)

    def holds_digest(self, of_id: str, corpus: str) -> bool:
        """Whether the id with this digest is forgotten in the corpus."""
        corpora = self.people.get(of_id, ())
        return corpora is None or corpus in corpora

    def with_people(self, digests: Sequence[str], corpora: Sequence[str] | None) -> ForgottenList:
        """The list with these people added; corpora as in `people`."""
        people = dict(self.people)
        for one in digests:
            before = people.get(one, ())
            both = None if corpora is None or before is None else tuple(sorted({*before, *corpora}))
            people[one] = both
        return replace(self, people=people)

    def save(self, home: Warehouse) -> None:
        """Write the list atomically; the caller holds the home's lock."""
        self._draft(home).replace(home.root / FILE)
        sync_path(home.root)

    def _draft(self, home: Warehouse) -> Path:
        content = {
            "salt": self.salt.hex(),
            "people": [{"digest": one, "corpora": corpora} for one, corpora in sorted(self.people.items())],
        }
        draft = home.root / f".{FILE}.{os.getpid()}.tmp"
        draft.write_text(json.dumps(content, indent=1), encoding="utf-8")
        sync_path(draft)
        return draft


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
