"""The secret key of the pseudonyms, read from a file or the environment; it is never written or printed."""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass, field
from pathlib import Path

from ssrem.errors import PrivacyError, SsremError
from ssrem.files import check_regular, resolved

VARIABLE = "SSREM_PSEUDONYM_KEY"

SHORTEST_KEY = 32
"""Minimum length of a key in bytes; a shorter one could be guessed."""

WAY_OUT = 'make one with: python -c "import secrets; print(secrets.token_hex(32))"'

SPEAKER, CONVERSATION, UTTERANCE = "p", "c", "u"
"""Kinds of id: of a person, a conversation, a message. The kind begins the pseudonym, and is hashed with the id."""


@dataclass(frozen=True)
class PseudonymKey:
    """A secret that maps ids to pseudonyms: deterministic, and irreversible without the secret."""

    secret: bytes = field(repr=False)

    def pseudonym(self, id: str, kind: str = SPEAKER) -> str:
        """`kind` and 16 hex digits of HMAC-SHA256: 64 bits, so a collision among a million ids has probability 3e-8."""
        message = f"{kind}\0{id}".encode("utf-8", "surrogatepass")
        return kind + hmac.digest(self.secret, message, "sha256").hex()[:16]

    @property
    def fingerprint(self) -> str:
        """8 hex digits of a hash keyed by the secret, which tell keys apart in a ledger without revealing them."""
        return hmac.digest(self.secret, b"fingerprint", "sha256").hex()[:8]


def load_key(file: str | Path | None = None, *, outside: Path) -> PseudonymKey:
    """Read the key from `file`, by default from the environment variable SSREM_PSEUDONYM_KEY.

    outside: the home folder, in which the key must not be stored. Whitespace around the key is ignored. PrivacyError if
    there is no key, it is shorter than 32 bytes, or its file lies in the home folder.
    """
    secret, where = os.environ.get(VARIABLE, "").encode("utf-8", "surrogateescape").strip(), VARIABLE
    if file is None and not secret:
        raise PrivacyError(f"pseudonyms need a key in {VARIABLE} or --pseudonym-key FILE; {WAY_OUT}")
    if file is not None:
        # A message on a file that cannot be read does not repeat the value: a user may have given the key itself, which
        # must not get into logs.
        try:
            path = resolved(file)
        except SsremError:
            raise PrivacyError(
                f"--pseudonym-key: its file cannot be read (unknown home folder); {WAY_OUT}"
            ) from None
        if path.is_relative_to(outside.resolve()):
            raise PrivacyError(
                f"--pseudonym-key {file} lies in the home folder, beside what it protects; move it elsewhere"
            )
        try:
            check_regular(path)
            secret, where = path.read_bytes().strip(), "--pseudonym-key"
        except OSError as error:
            raise PrivacyError(
                f"--pseudonym-key: its file cannot be read ({error.strerror}); {WAY_OUT}"
            ) from None
    if len(secret) < SHORTEST_KEY:
        raise PrivacyError(
            f"the key in {where} is {len(secret)} bytes long, and needs {SHORTEST_KEY}; {WAY_OUT}"
        )
    return PseudonymKey(secret)
