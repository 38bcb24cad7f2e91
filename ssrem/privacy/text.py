"""Masks identifying text: e-mail addresses, user handles and phone numbers become [email], [user] and [phone], and
known ids [user].

The regular expressions of the masks run in RE2, which does not backtrack, so time is linear in the length of the text.
RE2 has no look-around: what must precede or follow a match is captured and put back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

EMAIL, USER, PHONE = "[email]", "[user]", "[phone]"

SHORTEST, SHORTEST_NUMBER = 3, 6
"""Minimum length of an id, and of a numeric id, that is masked; shorter ones are likely ordinary words or numbers."""

# An underscore separates ids as a hyphen does: ann_bob names two people.
_WORD = re.compile(r"[^\W_]+")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_PLACEHOLDERS = {"email", "user", "phone"}

_NAME = r"[\w][\w.-]*"
_SITES = "twitter|x|instagram|facebook|fb|tiktok|snapchat|linkedin|github|youtube|twitch|t|discord|vk|threads"

# What may precede a phone number; after a letter, a decimal point or a currency sign it is a word, a number or a price.
_BEFORE_NUMBER = r"(^|[^\w.,$€£¥+]|[^\d][.,+])"
_GAP = r"[ .\x{a0}‑–-]"

RULES: tuple[tuple[str, str, str], ...] = (
    # name@host.tld, "name"@host, name@host where the host begins with a letter
    (
        EMAIL,
        "@＠",
        r"""(?i)(?:"[^"\n]{1,64}"|[\w.!#$%&'*+=?^{|}~-]+)[@＠](?:[\w-]+(?:\.[\w-]+)+|\pL[\w-]*|\[[\da-f.:]+\])()""",
    ),
    # @name, @name@host; not a time or a price after an @, such as @5pm, @10:30 or @20
    (
        USER,
        "@＠",
        rf"(?i)(^|[^\w])[@＠](?:(?:[\pL_][\w.-]*|\d+(?:[b-oq-z_]|[ap][a-ln-z0-9_])[\w.-]+|\d{{6,}}[\w.-]*)"
        rf"(?:[@＠]{_NAME})?)",
    ),
    # u/name, /u/name, and the addresses of profiles
    (USER, "/", r"(?i)(^|[^\w])u/[\w-]{2,}"),
    (USER, "/", r"(?i)(/)users?/[\w.-]+"),
    (USER, "/", rf"(?i)((?:^|[^\w])(?:{_SITES})\.(?:com|me|tv|gg|net)/(?:in/|c/|add/|user/)?)@?{_NAME}"),
    # +49 170 1234567, 0049 170 1234567: up to fifteen digits
    (PHONE, "+0", rf"(^|[^\w])(?:\+|00)[1-9](?:(?:{_GAP}|[()/]){{0,3}}\d){{7,14}}\b"),
    # (555) 123-4567, 555-123-4567, 1 555.123.4567
    (
        PHONE,
        "0123456789",
        rf"{_BEFORE_NUMBER}(?:1{_GAP})?(?:\(\d{{3}}\){_GAP}?|\d{{3}}[.‑–-])\d{{3}}{_GAP}\d{{4}}\b",
    ),
    (PHONE, "23456789", rf"{_BEFORE_NUMBER}(?:1 )?[2-9]\d\d [2-9]\d\d[ -]\d{{4}}\b"),
    (PHONE, "0123456789", rf"{_BEFORE_NUMBER}\d{{3}}-\d{{4}}\b"),
    # 06 12 34 56 78, 020 7946 0958, 0170 1234567, 030/1234567, 07700 900123
    (PHONE, "0", rf"{_BEFORE_NUMBER}0\d{{1,3}}(?:{_GAP}\d\d){{4}}\b"),
    (PHONE, "0", rf"{_BEFORE_NUMBER}\(?0\d{{2,4}}\)?(?:{_GAP}|/){{1,3}}\d{{3,4}}{_GAP}\d{{3,5}}\b"),
    (PHONE, "0", rf"{_BEFORE_NUMBER}\(?0\d{{2,4}}\)?(?:{_GAP}|/){{1,3}}\d{{6,8}}\b"),
    # 98765 43210, 138 1234 5678
    (PHONE, "6789", rf"{_BEFORE_NUMBER}[6-9]\d{{4}}[ -]\d{{5}}\b"),
    (PHONE, "1", rf"{_BEFORE_NUMBER}1[3-9]\d[ -]\d{{4}}[ -]\d{{4}}\b"),
    # ten or eleven digits in a row
    (PHONE, "0123456789", rf"{_BEFORE_NUMBER}\d{{10,11}}\b"),
)
"""The masks, applied in this order: (placeholder, characters of which a text must contain one, expression whose first
group is put back)."""


_CLASSES = {r"\w": r"\pL\pM\p{Nd}\p{Nl}\p{Pc}", r"\d": r"\p{Nd}"}
"""RE2's classes of letters and digits, which match ASCII only → the letters and digits of all scripts."""


def mask(texts: pa.Array) -> pa.Array:
    """The texts with identifying parts masked; null stays null, and masking again changes nothing."""
    for placeholder, signs, expression in RULES:
        candidates = pc.fill_null(pc.match_substring_regex(texts, f"[{signs}]"), False)
        if not pc.any(candidates).as_py():
            continue
        masked, pattern = texts.filter(candidates), expression
        # A number ends where no letter or digit follows. The sign that follows may also begin the next number, which is
        # then found by a second pass.
        passes, ending = (2, "\\2") if expression.endswith(r"\b") else (1, "")
        if ending:
            pattern = expression.removesuffix(r"\b") + r"($|[^\w])"
        for sign, signs_of_all_scripts in _CLASSES.items():
            pattern = pattern.replace(sign, signs_of_all_scripts)
        for _ in range(passes):
            masked = pc.replace_substring_regex(masked, pattern, f"\\1{placeholder}{ending}")
        texts = pc.replace_with_mask(texts, candidates, masked)
    return texts


def mask_texts(texts: Sequence[str]) -> list[str]:
    """`mask` for a few texts."""
    masked: list[str] = mask(pa.array(texts, pa.string())).to_pylist()
    return masked


def is_telling(id: str) -> bool:
    """Whether the id identifies its bearer wherever it occurs as a word, unlike an ordinary word or number."""
    core = _EDGES.sub("", id)
    return (
        len(core) >= (SHORTEST_NUMBER if core.isdecimal() else SHORTEST) and core.lower() not in _PLACEHOLDERS
    )


class Mentions:
    """Masks ids in text. An id of letters only matches as written, capitalised or in capitals (the id Will does not
    match the word will), any other id in any case. Time is linear in the text, independent of the number of ids."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._by_word: dict[str, list[str]] = {}
        """First word of an id, in lower case → the ids that begin with it, longest first."""
        for id in sorted({_EDGES.sub("", id) for id in ids if is_telling(id)}, key=len, reverse=True):
            first = _WORD.match(id)
            assert first is not None  # the edges are cut off, so an id begins with a word
            self._by_word.setdefault(first[0].lower(), []).append(id)

    def mask(self, text: str) -> str:
        """The text with [user] in place of every mention."""
        if self._by_word.keys().isdisjoint([word.lower() for word in _WORD.findall(text)]):
            return text
        pieces, done = [], 0
        for word in _WORD.finditer(text):
            if word.start() < done:
                continue
            for id in self._by_word.get(word[0].lower(), ()):
                stop = word.start() + len(id)
                if not _WORD.match(text, stop) and _same(id, text[word.start() : stop]):
                    pieces += [text[done : word.start()], USER]
                    done = stop
                    break
        return "".join([*pieces, text[done:]]) if pieces else text

    def mask_all(self, texts: pa.Array) -> pa.Array:
        """The texts with [user] in place of every mention; null stays null."""
        if not self._by_word:
            return texts
        masked = [None if text is None else self.mask(text) for text in texts.to_pylist()]
        return pa.array(masked, pa.string())


def _same(id: str, written: str) -> bool:
    return written in _spellings(id) if id.isalpha() else written.lower() == id.lower()


def mention(id: str) -> str:
    """A regular expression for what `_same` takes for the id."""
    return "|".join(map(re.escape, _spellings(id))) if id.isalpha() else f"(?i:{re.escape(id)})"


def _spellings(id: str) -> tuple[str, str, str]:
    return id, id.capitalize(), id.upper()
