"""Encoders and their cached vectors in a home folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import duckdb

from ssrem.encoders import load_encoder, load_saved
from ssrem.errors import EvaluatorError
from tasks.home import Home, utc_now
from tasks.incidents import note
from tasks.progress import progress
from tasks.snapshot import whole_folder

if TYPE_CHECKING:
    from ssrem.encoders import Encoder
    from ssrem.evaluators.base import Encode, Evaluator


def encoder_for(
    home: Home, spec: str, seed: int, corpora: dict[str, str], texts: Callable[[], Sequence[str]]
) -> Encoder:
    """The encoder that `spec` names; one that learns from the corpora is trained once and kept under `encoders/`.

    corpora: corpus to content hash; texts: turns of their training splits, fetched only where they are needed.
    """
    if "word2vec" not in spec.split("+"):
        return load_encoder(spec, seed=seed)
    content = json.dumps([spec, seed, corpora], sort_keys=True)
    folder = home.root / "encoders" / hashlib.sha256(content.encode()).hexdigest()[:16]
    if (folder / "encoder.json").exists():
        try:
            return load_saved(folder)
        except (
            EvaluatorError
        ) as error:  # it was damaged, or made by another version: here it can be made again
            note(home.root, utc_now(), f"{error}; it was trained again")
    with progress("training word2vec"):
        encoder = load_encoder(spec, train_texts=texts(), seed=seed)
    with whole_folder(folder) as draft:
        encoder.save(draft)
    return encoder


def cached_encode(home: Home, encoder: Encoder) -> Encode:
    """`encoder.encode` through the home folder's cache of vectors."""
    from ssrem.encoders.store import VectorStore

    store = VectorStore(home.vectors)
    return lambda texts: store.encode(encoder, texts)


def encode_option(home: Home, evaluator: Evaluator) -> dict[str, Encode]:
    """`encode=` through the cache, for the methods of an evaluator that has an encoder; nothing for the others."""
    return {"encode": cached_encode(home, evaluator.encoder)} if evaluator.encoder else {}


def training_texts(connection: duckdb.DuckDBPyConnection, corpora: Sequence[str]) -> list[str]:
    """Turns of the training splits of the corpora, in order."""
    rows = connection.execute(
        "SELECT text FROM turns WHERE list_contains(?, corpus) AND split = 'train' ORDER BY corpus, turn_id",
        [list(corpora)],
    )
    return [text for (text,) in rows.fetchall()]
