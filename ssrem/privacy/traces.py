"""Traces of people in data: their ids, as whole values and inside other ids, metadata and raw rows."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Collection
from typing import Any

from ssrem.privacy.masks import USER
from ssrem.privacy.mentions import is_telling

_REMOVED = object()
"""Stands for a value that was one of the ids."""


def digest(id: str, salt: bytes) -> str:
    """32 hex digits of a salted hash, by which a forgotten id is recognised but not readable."""
    return hmac.digest(salt, id.encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


class Traces:
    """The ids of one or several people, in clear, and how they are removed from what mentions them.

    An id that may be an ordinary word or number (see `is_telling`) is recognised only as a whole value.
    """

    def __init__(self, ids: Collection[str]) -> None:
        self.ids = frozenset(ids)
        telling = sorted((id for id in self.ids if is_telling(id)), key=len, reverse=True)
        joined = "|".join(re.escape(id) for id in telling)
        # An underscore separates ids as a hyphen does: ann_bob names two people.
        self._mention = re.compile(rf"(?<![^\W_])(?:{joined})(?![^\W_])" if telling else r"(?!)")

    def mentions(self, text: str) -> bool:
        """Whether a telling id occurs in the text as a whole word."""
        return self._mention.search(text) is not None

    def clean_id(self, id: str) -> str:
        """Another id, such as a conversation's, with mentioned ids hashed, so that distinct ids stay distinct."""
        return self._mention.sub(lambda m: hashlib.blake2b(m[0].encode(), digest_size=6).hexdigest(), id)

    def clean_json(self, text: str) -> str | None:
        """A JSON object without members that are one of the ids, and with mentions masked; None if nothing is left."""
        cleaned = self._clean(json.loads(text))
        if not cleaned or cleaned is _REMOVED:
            return None
        return json.dumps(cleaned, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    def _clean(self, value: Any) -> Any:
        if isinstance(value, dict):
            members = ((key, self._clean(member)) for key, member in value.items() if key not in self.ids)
            return {self._mention.sub(USER, key): value for key, value in members if value is not _REMOVED}
        if isinstance(value, list):
            return [member for member in map(self._clean, value) if member is not _REMOVED]
        if isinstance(value, str):
            return _REMOVED if value in self.ids else self._mention.sub(USER, value)
        number = isinstance(value, int) and not isinstance(value, bool)
        return _REMOVED if number and str(value) in self.ids and is_telling(str(value)) else value

    def in_json(self, text: str) -> bool:
        """Whether cleaning would change the JSON object; of other text, whether it mentions an id."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self.mentions(text) or any(f'"{id}"' in text for id in self.ids)
        return bool(self._clean(value) != value)

    def clean_row(self, raw: bytes) -> bytes:
        """A readable quarantined row (its columns as JSON) as `record_batches.without` would have changed it."""
        before = json.loads(raw)
        row = dict(before)
        for name in ("conversation_id", "utterance_id", "reply_to"):
            row[name] = row[name] and self.clean_id(row[name])
        row["addressee"] = None if row["addressee"] in self.ids else row["addressee"]
        row["metadata"] = row["metadata"] and self.clean_json(row["metadata"])
        if row == before:
            return raw
        return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()

    def in_bytes(self, raw: bytes) -> bool:
        """Whether a quarantined row mentions one of the ids."""
        return self.in_json(raw.decode("utf-8", "replace"))
