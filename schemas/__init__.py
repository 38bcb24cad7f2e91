"""Contracts of the published tables, in the order in which the data flow."""

import hashlib

from ssrem.schemas import agreement, evaluators, human_ratings, ingest, ledger, speaker_tables
from ssrem.schemas.contract import Table, View

_CONTRACTS = [
    contract
    for module in (ingest, speaker_tables, evaluators, human_ratings, agreement, ledger)
    for contract in vars(module).values()
]

TABLES: dict[str, Table] = {table.name: table for table in _CONTRACTS if isinstance(table, Table)}

VIEWS: dict[str, View] = {view.name: view for view in _CONTRACTS if isinstance(view, View)}
"""Views over the tables, which users query like tables."""

LANDED = tuple(value.name for value in vars(ingest).values() if isinstance(value, Table))
"""Tables that ingest fills from a dump; all others can be built from these, from models and from annotated sets."""


def fingerprint() -> str:
    """8 hex digits of the tables' columns and keys; files written under another fingerprint cannot be read."""
    shape = [(t.name, t.key, [(c.name, c.type) for c in t.columns]) for t in TABLES.values()]
    return hashlib.sha256(repr(shape).encode()).hexdigest()[:8]
