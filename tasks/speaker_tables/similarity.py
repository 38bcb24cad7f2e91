"""Mean similarity of the turns within the four kinds of speaker set (Bak and Oh 2020, Table 2)."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ssrem.agreement.similarity import Integers, SetMeans, set_similarity, summarise
from tasks.stage.progress import progress
from tasks.stage.shards import distributed, incoming, map_shards, room_for_shards, save_arrays

if TYPE_CHECKING:
    from ssrem.encoders import Encoder
    from ssrem.samples import Encode
    from tasks.stage.stage import Stage

CHUNK = 100_000
MEMBERS = 200_000
"""How many members of sets a shard has at least."""

SET_TABLES = {"SC": "sc", "SP": "sp", "SS": "ss", "Rand": "rand"}


def add_set_similarity(stage: Stage, corpus: str, encoder: Encoder, encode: Encode) -> None:
    """Create the staged `set_similarity`, and the scratch table `vector_norms`, by which the gate checks the vectors.

    Vectors go to a file in the scratch folder, so that memory does not grow with the number of turns.
    """
    import pyarrow as pa

    connection = stage.connection
    ((turns,),) = connection.execute("SELECT count(*) FROM turns").fetchall()
    connection.execute("CREATE TABLE vector_norms (turn_id BIGINT, norm DOUBLE)")
    # Written in order, not through a map: where the disk is full, a write fails, but a map ends the process.
    vectors = stage.scratch / "vectors.npy"
    with vectors.open("wb") as file, progress(f"encoding {corpus}", turns) as advance:
        header = {"descr": "<f2", "fortran_order": False, "shape": (turns, encoder.dimensions)}
        np.lib.format.write_array_header_1_0(file, header)
        for first in range(0, turns, CHUNK):
            texts = connection.execute(
                "SELECT text FROM turns WHERE turn_id >= ? AND turn_id < ? ORDER BY turn_id",
                [first, first + CHUNK],
            ).fetchnumpy()["text"]
            part = encode(texts.tolist())
            file.write(part.astype("<f2").tobytes())
            norms = {"turn_id": np.arange(first, first + len(part)), "norm": np.linalg.norm(part, axis=1)}
            stage.insert("vector_norms", pa.table(norms))
            advance(first + len(part))
    # A set has the id of its speaker's first turn in it, so the speaker of that turn is the set's.
    # What is no person has no sets; its 0 only keeps the place.
    people = connection.execute(
        "SELECT coalesce(s.speaker_no, 0) AS speaker_no FROM turns AS t LEFT JOIN turn_sets AS s USING (turn_id) "
        "ORDER BY turn_id"
    ).fetchnumpy()
    kinds, owners = {}, {}
    for kind, table in SET_TABLES.items():
        columns = connection.execute(
            f"SELECT set_id, turn_id FROM {table} ORDER BY set_id, position"
        ).fetchnumpy()
        members = (columns[name].astype(np.int64) for name in ("set_id", "turn_id"))
        kinds[kind] = similarity_in_shards(vectors, *members)
        owners[kind] = people["speaker_no"][kinds[kind].set_id]
    rows = [
        {"corpus": corpus, "kind": kind, "encoder": encoder.signature, **asdict(summary)}
        for kind, summary in summarise(kinds, owners).items()
    ]
    stage.create_from_rows("set_similarity", rows)


def similarity_in_shards(vectors: Path, set_id: Integers, rows: Integers) -> SetMeans:
    """`set_similarity` of the vectors in a file; on workers, in buckets of whole sets, each of one speaker."""
    edges = bucket_edges(set_id, MEMBERS)
    if not distributed() or len(edges) <= 2:
        return set_similarity(np.load(vectors, mmap_mode="r"), set_id, rows)
    with room_for_shards(vectors.parent) as folder:
        shards = []
        for number, (first, last) in enumerate(pairwise(edges)):
            file = folder / f"{number}.npz"
            np.savez(file, set_id=set_id[first:last], rows=rows[first:last])
            shards.append({"vectors": str(vectors), "sets": str(file)})
        means = [np.load(file) for file in map_shards(similarity_shard, shards)]
        return SetMeans(*(np.concatenate([part[name] for part in means]) for name in ("set_id", "mean", "n")))


def bucket_edges(set_id: Integers, size: int) -> list[int]:
    """Positions from 0 to n that cut the members into buckets of at least `size`, each of whole sets.

    set_id (n,): members of a set are adjacent.
    """
    starts = np.flatnonzero(set_id[1:] != set_id[:-1]) + 1
    edges = [0]
    while edges[-1] < len(set_id):
        after = np.searchsorted(starts, edges[-1] + size)
        edges.append(int(starts[after]) if after < len(starts) else len(set_id))
    return edges


def similarity_shard(vectors: str, sets: str) -> str:
    """Mean similarity of a bucket of sets; returns the file of its figures."""
    members = np.load(incoming(Path(sets)))
    means = set_similarity(
        np.load(incoming(Path(vectors)), mmap_mode="r"), members["set_id"], members["rows"]
    )
    return save_arrays(Path(sets).with_suffix(".means.npz"), asdict(means))
