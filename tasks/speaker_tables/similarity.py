"""How alike the turns inside the four kinds of set are (Bak and Oh 2020, Table 2)."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.agreement.similarity import Integers, SetMeans, set_similarity, summarise
from tasks.stage.progress import progress
from tasks.stage.shards import atomic_write, distributed, incoming, map_shards, room_for_shards, shard_task

if TYPE_CHECKING:
    from ssrem.encoders import Encoder
    from ssrem.samples import Encode
    from tasks.stage.stage import Stage

CHUNK = 100_000
MEMBERS = 200_000
"""Members of the sets of a shard, at least."""

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
    vectors.flush()
    # A set is named after its speaker's first turn in it, so a turn's speaker is the set's.
    people = connection.execute("SELECT speaker_no FROM turn_sets ORDER BY turn_id").fetchnumpy()[
        "speaker_no"
    ]
    kinds, owners = {}, {}
    for kind, table in SET_TABLES.items():
        found = connection.execute(
            f"SELECT set_id, turn_id FROM {table} ORDER BY set_id, position"
        ).fetchnumpy()
        members = (found[c].astype(np.int64) for c in ("set_id", "turn_id"))
        kinds[kind] = similarity_in_shards(stage.scratch / "vectors.npy", *members)
        owners[kind] = people[kinds[kind].set_id]
    rows = [
        {"corpus": corpus, "kind": kind, "encoder": encoder.signature, **asdict(summary)}
        for kind, summary in summarise(kinds, owners).items()
    ]
    stage.create_from_rows("set_similarity", rows)


def similarity_in_shards(vectors: Path, set_id: Integers, rows: Integers) -> SetMeans:
    """`set_similarity` of the vectors in a file, bucket by bucket of whole sets, each the turns of one speaker."""
    edges = bucket_edges(set_id, MEMBERS)
    if not distributed() or len(edges) <= 2:
        return set_similarity(np.load(vectors, mmap_mode="r"), set_id, rows)
    with room_for_shards(vectors.parent) as folder:
        shards = []
        for number, (first, last) in enumerate(pairwise(edges)):
            file = folder / f"{number}.npz"
            np.savez(file, set_id=set_id[first:last], rows=rows[first:last])
            shards.append({"vectors": str(vectors), "sets": str(file)})
        found = [np.load(file) for file in map_shards(similarity_shard, shards)]
        return SetMeans(*(np.concatenate([one[name] for one in found]) for name in ("set_id", "mean", "n")))


def bucket_edges(set_id: Integers, size: int) -> list[int]:
    """Where to cut members, those of a set standing together, into buckets of `size` or a little more: 0 to all."""
    starts = np.flatnonzero(set_id[1:] != set_id[:-1]) + 1
    edges = [0]
    while edges[-1] < len(set_id):
        after = np.searchsorted(starts, edges[-1] + size)
        edges.append(int(starts[after]) if after < len(starts) else len(set_id))
    return edges


@shard_task("similarity of sets")
def similarity_shard(vectors: str, sets: str) -> str:
    """Mean similarity of a bucket of sets; returns the file of its figures."""
    given = np.load(incoming(Path(sets)))
    found = set_similarity(np.load(incoming(Path(vectors)), mmap_mode="r"), given["set_id"], given["rows"])
    means = Path(sets).with_suffix(".means.npz")
    with atomic_write(means) as aside, aside.open("wb") as stream:
        np.savez(stream, set_id=found.set_id, mean=found.mean, n=found.n)
    return str(means)


def _arrow(columns: dict[str, np.ndarray[Any, Any]]) -> Any:
    import pyarrow as pa

    return pa.table(columns)
