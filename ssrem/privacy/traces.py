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

SHORTEST_WORDS = 4
"""Minimum length of a message that is searched inside unreadable rows; shorter ones occur in anyone's."""

_REMOVED = object()
"""Stands for a value that was one of the ids."""

_ESCAPES = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
"""Escapes of JSON; those of one character may be two in a row."""


def digest(id: str, salt: bytes) -> str:
    """32 hex digits of a salted hash, by which a forgotten id is recognised but not readable."""
    return hmac.digest(salt, id.encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


class Traces:
    """The ids of one or several people, in clear, and how they are removed from what mentions them.

    An id that may be an ordinary word or number (see `is_telling`) is recognised only as a whole value. words: messages
    of theirs, by which an unreadable row is recognised that names nobody.
    """

    def __init__(self, ids: Collection[str], words: Collection[str] = ()) -> None:
        self.ids, self.words = frozenset(ids), words
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

    def in_bytes(self, raw: bytes) -> bool:
        """Whether an unreadable row names one of the ids or repeats their words, also where it writes them as JSON does
        in ASCII."""
        plain, before = (text := raw.decode("utf-8", "replace")), ""
        while plain != before:  # JSON may be a text within JSON
            plain, before = _ESCAPES.sub(lambda match: str(json.loads(f'"{match[0]}"')), plain), plain
        if self.mentions(plain) or any(word in plain for word in self.words):
            return True
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return any(f'"{id}"' in plain for id in self.ids)
        return bool(self._clean(value) != value)
