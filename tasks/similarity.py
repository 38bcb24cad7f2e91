"""How alike the turns inside the four kinds of set are (Bak and Oh 2020, Table 2)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.agreement.similarity import set_similarity, summarise
from tasks.progress import progress

if TYPE_CHECKING:
    from ssrem.encoders import Encoder
    from ssrem.evaluators.base import Encode
    from tasks.stage import Stage

CHUNK = 100_000
SET_TABLES = {"SC": "sc", "SP": "sp", "SS": "ss", "Rand": "rand"}


def add_set_similarity(stage: Stage, corpus: str, encoder: Encoder, encode: Encode) -> None:
    """Create the staged `set_similarity`, and `vector_norms`, the scratch table by which the gate sees the vectors.

    The vectors lie in a file in the scratch folder, so memory does not grow with the turns.
    """
    connection = stage.connection
    row = connection.execute("SELECT count(*) FROM turns").fetchone()
    turns = int(row[0]) if row else 0
    shape = (turns, encoder.dimensions)
    vectors = np.lib.format.open_memmap(
        stage.scratch / "vectors.npy", mode="w+", dtype=np.float16, shape=shape
    )
    connection.execute("CREATE TABLE vector_norms (turn_id BIGINT, norm DOUBLE)")
    with progress(f"encoding {corpus}", turns) as advance:
        for first in range(0, turns, CHUNK):
            texts = connection.execute(
                "SELECT text FROM turns WHERE turn_id >= ? AND turn_id < ? ORDER BY turn_id",
                [first, first + CHUNK],
            ).fetchnumpy()["text"]
            part = encode(texts.tolist())
            vectors[first : first + len(part)] = part
            norms = {"turn_id": np.arange(first, first + len(part)), "norm": np.linalg.norm(part, axis=1)}
            connection.register("norms", _arrow(norms))
            connection.execute("INSERT INTO vector_norms SELECT turn_id, norm FROM norms")
            connection.unregister("norms")
            advance(first + len(part))
    # A set is named after its speaker's first turn in it, so a turn's speaker is the set's.
    people = connection.execute("SELECT speaker_no FROM turn_sets ORDER BY turn_id").fetchnumpy()[
        "speaker_no"
    ]
    kinds, owners = {}, {}
    for kind, table in SET_TABLES.items():
        found = connection.execute(
            f"SELECT set_id, turn_id FROM {table} ORDER BY set_id, position"
        ).fetchnumpy()
        kinds[kind] = set_similarity(vectors, *(found[c].astype(np.int64) for c in ("set_id", "turn_id")))
        owners[kind] = people[kinds[kind].set_id]
    rows = [
        {"corpus": corpus, "kind": kind, "encoder": encoder.signature, **asdict(summary)}
        for kind, summary in summarise(kinds, owners).items()
    ]
    stage.create_from_rows("set_similarity", rows)


def _arrow(columns: dict[str, np.ndarray[Any, Any]]) -> Any:
    import pyarrow as pa

    return pa.table(columns)
