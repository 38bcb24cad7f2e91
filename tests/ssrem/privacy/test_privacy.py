"""Pseudonyms, masks and mentions: what identifies people goes, what does not stays."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssrem.errors import PrivacyError
from ssrem.privacy.key import PseudonymKey, load_key
from ssrem.privacy.people import ratings_alone
from ssrem.privacy.text import EMAIL, PHONE, USER, Mentions, mask_texts

SECRET = "0123456789abcdef" * 4
KEY = PseudonymKey(SECRET.encode())


# The key


def test_a_pseudonym_is_a_keyed_hash_by_kind_and_the_key_is_not_shown() -> None:
    expected = hmac.new(SECRET.encode(), b"p\0ann", hashlib.sha256).hexdigest()[:16]
    assert KEY.pseudonym("ann") == f"p{expected}"
    assert KEY.pseudonym("ann", "c")[1:] != expected
    assert PseudonymKey(b"x" * 32).pseudonym("ann") != KEY.pseudonym("ann")
    assert SECRET not in repr(KEY)
    assert KEY.fingerprint not in SECRET


def test_the_key_comes_from_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{SECRET}\n")
    home = tmp_path / "home"
    monkeypatch.delenv("SSREM_PSEUDONYM_KEY", raising=False)
    assert load_key(file, outside=home) == KEY
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", f" {SECRET}\n")
    assert load_key(outside=home) == KEY
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", "y" * 40)
    assert load_key(file, outside=home) == KEY


@pytest.mark.parametrize(
    ("file", "variable", "says"),
    [
        (None, None, "need a key"),
        (None, "  ", "need a key"),
        (None, "short", "5 bytes"),
        ("home/key", None, "in the home folder"),
        ("home/link", None, "in the home folder"),
        ("weak", None, "4 bytes"),
        ("missing", None, "No such file"),
    ],
)
def test_a_key_that_will_not_do_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str | None, variable: str | None, says: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "key").write_text(SECRET)
    (tmp_path / "weak").write_text("weak")
    (home / "link").symlink_to(home / "key")
    monkeypatch.delenv("SSREM_PSEUDONYM_KEY", raising=False)
    if variable is not None:
        monkeypatch.setenv("SSREM_PSEUDONYM_KEY", variable)
    with pytest.raises(PrivacyError, match=says) as error:
        load_key(file and tmp_path / file, outside=home)
    assert "\n" not in str(error.value)
    assert "secrets.token_hex(32)" in str(error.value) or "home folder" in str(error.value)


def test_a_message_does_not_repeat_what_may_be_the_key(tmp_path: Path) -> None:
    for key in (SECRET, f"~{SECRET}"):
        with pytest.raises(PrivacyError, match=r"its file cannot be read .*token_hex\(32\)") as error:
            load_key(key, outside=tmp_path)
        assert SECRET not in str(error.value)


# Masks

PHONES = [
    *(
        "555-123-4567",
        "(555) 123-4567",
        "+1 (555) 123-4567",
        "1-800-555-0199",
        "555.123.4567",
        "555 234 5678",
    ),
    *("5551234567", "555-1234", "+49 170 1234567", "+33 6 12 34 56 78", "0049 170 1234567", "020 7946 0958"),
    *("06 12 34 56 78", "07700 900123", "030/1234567", "98765 43210", "138 1234 5678"),
]


# A call compiles all expressions, which takes longer than to mask: each test masks all its texts at once.


def test_what_identifies_is_masked() -> None:
    written = {
        "mail bob.smith+x@mail.example.co.uk now": f"mail {EMAIL} now",
        "joe@x.com,ann@y.org": f"{EMAIL},{EMAIL}",
        "root@localhost": EMAIL,
        '"bob smith"@x.com': EMAIL,
        "жанна@почта.рф": EMAIL,
        "hi @bob_42, (@ann)": f"hi {USER}, ({USER})",
        "<@123456789012345678>": f"<{USER}>",
        "@2pac and @50cent": f"{USER} and {USER}",
        "u/bobby": USER,
        "https://reddit.com/user/bobby/": f"https://reddit.com/{USER}/",
        "see twitter.com/bob_1?x": f"see twitter.com/{USER}?x",
        **dict.fromkeys(PHONES, PHONE),
        "tel:555-123-4567, or 555-123-4568.": f"tel:{PHONE}, or {PHONE}.",
    }
    written |= {f"well, {text} then": f"well, {masked} then" for text, masked in written.items()}
    assert mask_texts([*written]) == [*written.values()]


def test_what_does_not_identify_stays() -> None:
    texts = [
        "from 1999 to 2004, 1999-2004",
        "we won 3-2, then 21-19 and 15-13",
        "at 10:30 or 12:30:45, or @5pm, @10:30",
        "$1,000,000 or £12.99 or $1234567890",
        "5 @ 10, 2 for @20",
        "on 2020-01-02, 10/12/2020, 01.02.2020",
        "pi is 3.14159265358979",
        "192.168.100.100 and 978-3-16-148410-0",
        "and/or, 24/7, 1/2, 9-5",
        "agent 007, 100 200 300",
    ]
    assert mask_texts(texts) == texts


WORDS = st.one_of(
    st.integers(0, 99_999_999).map(str),
    st.integers(1000, 2999).map("in {}".format),
    st.tuples(st.integers(0, 199), st.integers(0, 199)).map("{0[0]}-{0[1]}".format),
    st.tuples(st.integers(0, 23), st.integers(0, 59)).map("{0[0]}:{0[1]:02}".format),
    st.integers(0, 10**12).map("${:,}".format),
    st.floats(0, 1e6).map("€{:.2f}".format),
    st.dates().map(str),
    st.text(st.characters(categories=["L"]), max_size=12),
)


@given(st.lists(st.lists(WORDS, max_size=8).map(", ".join), max_size=30))
@settings(max_examples=4)
def test_years_scores_times_and_prices_stay(texts: list[str]) -> None:
    assert mask_texts(texts) == texts


NAMES = st.from_regex(r"Qz[A-Za-z0-9_]{1,15}", fullmatch=True)
AROUND = st.text(st.characters(codec="utf-8", exclude_characters="Q"), max_size=20)


ANY = st.lists(st.text() | st.text("@.+-0123456789 ()u/abc"), max_size=50)


@given(st.lists(st.tuples(NAMES, AROUND, AROUND), min_size=1, max_size=10), ANY)
@settings(max_examples=6)
def test_addresses_and_handles_never_stay_and_masking_twice_is_masking_once(
    named: list[tuple[str, str, str]], texts: list[str]
) -> None:
    ways = ("{0}@host.com", "@{0}", "u/{0}")
    texts += [f"{before} {way.format(name)} {after}" for name, before, after in named for way in ways]
    once = mask_texts(texts)
    assert not any("Qz" in masked for masked in once[-len(named) * len(ways) :])
    assert mask_texts(once) == once


def test_time_is_linear_in_the_text() -> None:
    pieces = ("a", "1 ", "@", "a@", "+1", "0", "(", "u/", "555-", "x.com/", '"')
    started = time.perf_counter()
    mask_texts([piece * 100_000 for piece in pieces])
    assert time.perf_counter() - started < 20  # tenths of a second; quadratic would be hours


# Mentions


def test_known_ids_are_masked_where_they_are_words() -> None:
    mentions = Mentions(["will", "bob_42", "Monica Geller", "A", "12345", "123456", "user"])
    texts = {
        "Will will. WILL willing wiLL": f"{USER} {USER}. {USER} willing wiLL",
        "BOB_42: bob_421, xbob_42": f"{USER}: bob_421, xbob_42",
        "x_will __will__ bob_42_43": f"x_{USER} __{USER}__ {USER}_43",
        "Monica Geller, Monica": f"{USER}, Monica",
        "A 12345 123456": f"A 12345 {USER}",
        f"{USER} says user": f"{USER} says user",
    }
    assert [mentions.mask(text) for text in texts] == list(texts.values())


@given(st.lists(st.text(min_size=1), max_size=5), st.lists(st.text(), max_size=5))
@settings(max_examples=20)
def test_a_series_is_masked_as_its_texts_are(ids: list[str], texts: list[str]) -> None:
    texts += [f"{text} {id}!" for text in texts for id in ids]
    mentions = Mentions(ids)
    masked = mentions.mask_all(pa.array(texts, pa.string())).to_pylist()
    assert masked == [mentions.mask(text) for text in texts]


# Ratings


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"ratings": {"fun": 4, "depth": 2.5}}, {"fun": 4, "depth": 2.5}),
        ({"ratings": {"fun": 4, "ann": 3, "bob@x.org": 2, "note": "by ann", "ok": True}}, {"fun": 4}),
        ({"ratings": {"ann": {"fun": 3}}}, None),
        ({"ratings": [1, 2]}, None),
        ({"prompt": "who are you"}, None),
    ],
)
def test_only_ratings_stay_of_a_conversation(metadata: Any, expected: Any) -> None:
    ratings = ratings_alone(json.dumps(metadata), {"ann"})
    assert (json.loads(ratings)["ratings"] if ratings else None) == expected
