"""The corpora that have landed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ssrem.errors import HomeError
from ssrem.registry import did_you_mean
from ssrem.tasks.warehouse.home import Warehouse


def landed(home: Warehouse) -> dict[str, tuple[str, str]]:
    """Name of each corpus, oldest first → its content hash and speaker scope."""
    rows = home.query("SELECT corpus, sha256, speaker_scope FROM corpora ORDER BY landed_at")
    return {name: (digest, scope) for name, digest, scope in rows}


def chosen_corpora(home: Warehouse, chosen: Iterable[str] | None) -> list[str]:
    """Names of the chosen corpora, by default of all, oldest first; HomeError for one that has not landed."""
    names, wanted = list(landed(home)), list(chosen or ())
    _check(home, names, wanted)
    return [name for name in names if not wanted or name in wanted]


def landed_corpora(home: str, chosen: Sequence[str] | None = None) -> list[str]:
    """Names of all corpora, oldest first; HomeError where none has landed, or one of `chosen` has not."""
    warehouse = Warehouse.at(home)
    if not (names := list(landed(warehouse))):
        raise HomeError(f"no corpus has landed in {warehouse.root}; run ssrem ingest SOURCE first")
    _check(warehouse, names, chosen or ())
    return names


def corpora_to_learn_from(
    home: Warehouse, chosen: Sequence[str] | None = None, *, labels_alone: bool = False
) -> list[str]:
    """Names of the chosen corpora, by default of all, oldest first.

    HomeError for one that has not landed, or where none has, unless human scores alone are learned from.
    """
    if not labels_alone:
        landed_corpora(str(home.root))
    return chosen_corpora(home, chosen)


def landed_corpus(home: Warehouse, corpus: str) -> tuple[str, str]:
    """Content hash and speaker scope of a corpus; HomeError, which lists those that have landed, without it."""
    corpora = landed(home)
    _check(home, list(corpora), [corpus])
    return corpora[corpus]


def _check(home: Warehouse, names: Sequence[str], chosen: Iterable[str]) -> None:
    """HomeError for a chosen name that is not among those of the landed corpora."""
    for name in chosen:
        if name not in names:
            raise HomeError(
                f"no corpus {name!r} has landed in {home.root} (landed: {', '.join(names) or 'none yet'})"
                f"{did_you_mean(name, names) or '; run ssrem ingest first'}"
            )
