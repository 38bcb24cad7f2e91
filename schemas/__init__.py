"""Contracts of the published tables, in the order in which the data flow."""

import hashlib
from importlib import import_module

from schemas.contract import Table, View

MODULES = (
    "corpora",
    "conversations",
    "utterances",
    "quarantine",
    "turns",
    "responses",
    "speaker_sets",
    "candidates",
    "negatives",
    "set_similarity",
    "evaluators",
    "learning_curves",
    "scores",
    "identification",
    "human_ratings",
    "agreement",
    "correlations",
    "comparisons",
    "rater_agreement",
    "studies",
    "ledger",
)
"""Modules of this package that define contracts: each holds one `Table` or several that belong together."""

TABLES: dict[str, Table] = {
    table.name: table
    for module in MODULES
    for table in vars(import_module(f"schemas.{module}")).values()
    if isinstance(table, Table)
}

VIEWS: dict[str, View] = {
    view.name: view
    for module in MODULES
    for view in vars(import_module(f"schemas.{module}")).values()
    if isinstance(view, View)
}
"""Views of the tables, which readers query as tables."""

LANDED = ("corpora", "conversations", "utterances", "quarantine")
"""Tables that ingest fills from a dump; every other one can be built from them, models and annotated sets."""


def fingerprint() -> str:
    """8 hex digits of the tables' columns and keys; files written under another fingerprint cannot be read."""
    shape = [(t.name, t.part, t.key, [(c.name, c.type) for c in t.columns]) for t in TABLES.values()]
    return hashlib.sha256(repr(shape).encode()).hexdigest()[:8]
