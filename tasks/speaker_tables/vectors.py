"""Encoders and their cached vectors in a home folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from ssrem.encoders import DEFAULT_ENCODER, load_encoder, load_saved
from ssrem.encoders.store import VectorStore
from ssrem.errors import EvaluatorError, say
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.shards import (
    distributed,
    incoming,
    map_shards,
    room_for_shards,
    save_arrays,
    shard_ranges,
)
from ssrem.tasks.warehouse.clock import utc_now
from ssrem.tasks.warehouse.files import whole_folder
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.incidents import log_incident

if TYPE_CHECKING:
    from ssrem.encoders import Encoder
    from ssrem.encoders.base import Vectors
    from ssrem.evaluators.base import Evaluator
    from ssrem.samples import Encode

TEXTS = 16_384
"""Texts per shard: as many as a transformer sorts into batches at once, so that shards do not change the batches."""


def encoder_for(
    home: Warehouse, spec: str, seed: int, corpora: dict[str, str], texts: Callable[[], Sequence[str]]
) -> Encoder:
    """The encoder that `spec` names; one that learns from the corpora is trained once and cached under `encoders/`.

    corpora: corpus to content hash. texts: returns the turns of their training splits; called only to train.
    """
    if "word2vec" not in spec.split("+"):
        return load_encoder(spec, seed=seed)
    content = json.dumps([spec, seed, corpora], sort_keys=True)
    folder = home.root / "encoders" / hashlib.sha256(content.encode()).hexdigest()[:16]
    if (folder / "encoder.json").exists():
        try:
            return load_saved(folder)
        except EvaluatorError as error:  # damaged, or written by another version
            log_incident(home.root, utc_now(), f"{error}; it was trained again")
    train_texts = texts()
    say(
        f"the encoder {spec} is trained first, on {len(train_texts):,} turns of {', '.join(corpora)}; "
        f"the default, {DEFAULT_ENCODER}, needs no training"
    )
    with progress("training word2vec"):
        encoder = load_encoder(spec, train_texts=train_texts, seed=seed)
    with whole_folder(folder) as draft:
        encoder.save(draft)
    return encoder


def cached_encode(home: Warehouse, encoder: Encoder, scratch: Path) -> Encode:
    """`encoder.encode`, of a slow encoder through the home folder's cache of vectors. scratch: folder for the shards of
    workers."""
    if not encoder.slow:
        return lambda texts: encoded_in_shards(encoder, texts, scratch)
    store = VectorStore(home.vectors)
    return lambda texts: store.encode(
        encoder, texts, compute=lambda new: encoded_in_shards(encoder, new, scratch)
    )


def encode_option(home: Warehouse, evaluator: Evaluator, scratch: Path) -> dict[str, Encode]:
    """`encode=` through the cache for the methods of an evaluator with an encoder; empty for one without."""
    return {"encode": cached_encode(home, evaluator.encoder, scratch)} if evaluator.encoder else {}


def encoded_in_shards(encoder: Encoder, texts: Sequence[str], scratch: Path) -> Vectors:
    """`encoder.encode(texts)` by shards, on workers if there are any and more than one shard."""
    pieces = [texts[first:last] for first, last in shard_ranges(len(texts), TEXTS)]
    if not distributed() or len(pieces) == 1:
        return np.concatenate([encoder.encode(piece) for piece in pieces])
    saved = scratch / "encoders" / hashlib.sha256(encoder.signature.encode()).hexdigest()[:16]
    if not saved.exists():
        encoder.save(saved)
    with room_for_shards(scratch) as folder:
        shards = []
        for number, piece in enumerate(pieces):
            file = folder / f"{number}.json"
            file.write_text(json.dumps(list(piece)), encoding="utf-8")
            shards.append({"encoder": str(saved), "texts": str(file)})
        return np.concatenate([np.load(file)["vectors"] for file in map_shards(encode_shard, shards)])


def encode_shard(encoder: str, texts: str) -> str:
    """Encode a file of texts with a saved encoder; returns the file of their vectors."""
    shard = json.loads(incoming(Path(texts)).read_text(encoding="utf-8"))
    vectors = _saved_encoder(str(incoming(Path(encoder)))).encode(shard)
    return save_arrays(Path(texts).with_suffix(".npz"), {"vectors": vectors})


@lru_cache(maxsize=1)
def _saved_encoder(folder: str) -> Encoder:
    return load_saved(Path(folder))


def training_texts(connection: duckdb.DuckDBPyConnection, corpora: Sequence[str]) -> list[str]:
    """Turns of the training splits of the corpora, in order."""
    rows = connection.execute(
        "SELECT text FROM turns WHERE list_contains(?, corpus) AND split = 'train' ORDER BY corpus, turn_id",
        [list(corpora)],
    )
    return [text for (text,) in rows.fetchall()]
