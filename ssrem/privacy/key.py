"""The key of the pseudonyms: where it comes from, and what it makes of an id. It is never written or printed."""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ssrem.errors import PrivacyError

VARIABLE = "SSREM_PSEUDONYM_KEY"

SHORTEST_KEY = 32
"""Bytes of a key at least: a shorter one could be found by trying."""

WAY_OUT = 'make one with: python -c "import secrets; print(secrets.token_hex(32))"'

SPEAKER, CONVERSATION, UTTERANCE = "p", "c", "u"
"""Kinds of id: the first letter of its pseudonym, and part of what is hashed."""


@dataclass(frozen=True)
class PseudonymKey:
    """A secret that turns ids into pseudonyms: the same id gives the same one, and none leads back without it."""

    secret: bytes = field(repr=False)

    def pseudonym(self, id: str, kind: str = SPEAKER) -> str:
        """`kind` and 16 hex digits of HMAC-SHA256: 64 bits, so among a million ids two share one by 3e-8."""
        message = f"{kind}\0{id}".encode("utf-8", "surrogatepass")
        return kind + hmac.digest(self.secret, message, "sha256").hex()[:16]

    @property
    def fingerprint(self) -> str:
        """Tells keys apart in a ledger and says nothing of them: 8 hex digits of a hash keyed by the secret."""
        return hmac.digest(self.secret, b"fingerprint", "sha256").hex()[:8]


def load_key(
    file: str | Path | None = None, *, outside: Path, environment: Mapping[str, str] = os.environ
) -> PseudonymKey:
    """The key in `file`, or, where none is given, in the environment variable SSREM_PSEUDONYM_KEY.

    outside: the home folder, which is what the key must not lie beside. Blanks around the key do not count. Raises
    PrivacyError where there is no key, it is shorter than 32 bytes, or its file lies in the home folder.
    """
    if file is not None:
        path = Path(file).expanduser().resolve()
        if path.is_relative_to(outside.resolve()):
            raise PrivacyError(
                f"--pseudonym-key {file} lies in the home folder, beside what it protects; move it elsewhere"
            )
        try:
            secret, where = path.read_bytes().strip(), "--pseudonym-key"
        except OSError as error:
            # The file is not named: whoever gave the key itself would find it in logs.
            raise PrivacyError(
                f"--pseudonym-key: its file cannot be read ({error.strerror}); {WAY_OUT}"
            ) from None
    else:
        secret, where = (
            environment.get(VARIABLE, "").encode("utf-8", "surrogateescape").strip(),
            VARIABLE,
        )
        if not secret:
            raise PrivacyError(f"pseudonyms need a key in {VARIABLE} or --pseudonym-key FILE; {WAY_OUT}")
    if len(secret) < SHORTEST_KEY:
        raise PrivacyError(
            f"the key in {where} is {len(secret)} bytes long, and needs {SHORTEST_KEY}; {WAY_OUT}"
        )
    return PseudonymKey(secret)


def key_at_hand(
    file: str | Path | None = None, *, outside: Path, environment: Mapping[str, str] = os.environ
) -> PseudonymKey | None:
    """`load_key`, or None where neither a file nor the variable is given."""
    if file is None and not environment.get(VARIABLE):
        return None
    return load_key(file, outside=outside, environment=environment)
