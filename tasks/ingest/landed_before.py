"""Whether a dump's content has landed before, and with the options that are given now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ssrem.errors import DumpError
from ssrem.tasks.privacy.people import last_parameters
from ssrem.tasks.warehouse.home import Warehouse


def landed_as(home: Warehouse, corpus: str, digest: str, given: Mapping[str, Any]) -> str | None:
    """The name under which content of this digest has landed; None if it has not.

    given: parameters of a recipe that the user gave, among them `corpus` if the name was. DumpError if other content
    has landed under the name, or this content under another name or with other parameters than those given.
    """
    # A damaged corpus may land again.
    rows = home.query("SELECT corpus, sha256, speaker_scope FROM corpora", partial=True)
    scopes = {name: scope for name, content, scope in rows if content == digest}
    known = corpus if corpus in scopes else next(iter(scopes), None)
    if known is None or (known != corpus and "corpus" in given):
        if any(name == corpus for name, *_ in rows):
            raise DumpError(
                f"a corpus {corpus!r} with other content has landed before; give this one a name of its own with "
                "--name, or take the other's place with --replace"
            )
        if known is None:
            return None
        raise DumpError(f"this content has landed as {known!r}; add --replace to land it as {corpus!r} too")
    landed = last_parameters(home, known, "ingest") | {"corpus": known, "speakers": scopes[known]}
    for parameter, value in given.items():
        if value != landed.get(parameter):
            how = _option(parameter, landed.get(parameter))
            raise DumpError(f"{known} landed {how}; add --replace to land it again")
    return known


def _option(parameter: str, value: Any) -> str:
    """With which value of a parameter a corpus landed, as the command line has it."""
    option = "--map" if parameter == "mapping" else f"--{parameter.replace('_', '-')}"
    if value is None:
        return f"without {option}"
    if parameter == "not_people":  # the value is a fingerprint
        return f"with other {option}"
    if parameter == "mapping":
        value = " ".join(f"{field}={columns}" for field, columns in value.items())
    return f"with {option} {value}"
