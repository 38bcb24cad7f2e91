"""Masks: e-mail addresses, user handles and phone numbers in text become [email], [user] and [phone].

The regular expressions run in RE2, which does not backtrack, so time is linear in the length of the text. RE2 has no
look-around: what must precede or follow a match is captured and put back.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

EMAIL, USER, PHONE = "[email]", "[user]", "[phone]"

_NAME = r"[\w][\w.-]*"
_SITES = "twitter|x|instagram|facebook|fb|tiktok|snapchat|linkedin|github|youtube|twitch|t|discord|vk|threads"

# Not after a digit with a decimal point, a letter or a currency sign, as part of a number, a word or a price.
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
"""(placeholder, characters of which a text must contain one, expression whose first group is put back), in order."""


_CLASSES = {r"\w": r"\pL\pM\p{Nd}\p{Nl}\p{Pc}", r"\d": r"\p{Nd}"}
"""Letters and digits of all scripts, where RE2 means those of ASCII."""


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
