"""Masks: e-mail addresses, user handles and phone numbers in text become [email], [user] and [phone].

The regular expressions run in an engine without backtracking, so time is linear in the length of the text. The engine
has no look-around: what must precede a match is captured and put back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

EMAIL, USER, PHONE = "[email]", "[user]", "[phone]"

_NAME = r"[\w][\w.-]*"
_SITES = "twitter|x|instagram|facebook|fb|tiktok|snapchat|linkedin|github|youtube|twitch|t|discord|vk|threads"

# Not after a digit with a decimal point, a letter or a currency sign, as part of a number, a word or a price.
_BEFORE_NUMBER = r"(^|[^\w.,$€£¥+]|[^\d][.,+])"
_GAP = r"[ .\u00a0‑–-]"

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
"""(placeholder, characters of which a text must contain one, expression whose first group is put back), in order."""


def mask(texts: pl.Series) -> pl.Series:
    """The texts with identifying parts masked; null stays null, and masking again changes nothing."""
    import polars as pl

    texts = texts.clone()  # scatter writes into what it is called on
    for placeholder, signs, expression in RULES:
        pattern = f"[{signs}]" if len(signs) > 1 else signs
        candidates = texts.str.contains(pattern, literal=len(signs) == 1).fill_null(value=False)
        if not candidates.any():
            continue
        masked = texts.filter(candidates).str.replace_all(expression, "${1}" + placeholder)
        texts = texts.scatter(candidates.arg_true(), masked) if not candidates.all() else masked
    return texts.cast(pl.String)


def mask_texts(texts: Sequence[str]) -> list[str]:
    """`mask` for a few texts."""
    import polars as pl

    masked: list[str] = mask(pl.Series(list(texts), dtype=pl.String)).to_list()
    return masked
