"""Mean similarity of the turns within the four kinds of speaker set (Bak and Oh 2020, Table 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ssrem.agreement.inputs import Integers
from ssrem.agreement.similarity import SetMeans, set_similarity, summarise
from ssrem.tables.speaker_sets import seed_hash
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.shards import distributed, incoming, map_shards, room_for_shards, save_arrays

if TYPE_CHECKING:
    from ssrem.encoders import Encoder
    from ssrem.samples import Encode
    from ssrem.tables.speaker_sets import TableSettings
    from ssrem.tasks.stage.stage import Stage

CHUNK = 50_000
MEMBERS = 200_000
"""Fewest members of sets in a shard."""

SET_TABLES = {"SC": "sc", "SP": "sp", "SS": "ss", "Rand": "rand"}

_MEMBERS = """
SELECT set_id, turn_id FROM main.{} WHERE set_id IN (SELECT turn_id FROM main.similarity_owners)
ORDER BY set_id, position
"""

_TEXTS = """
SELECT turn_id, text FROM main.turns WHERE turn_id IN (SELECT turn_id FROM main.similarity_turns) ORDER BY turn_id
"""


def add_set_similarity(
    stage: Stage,
    corpus: str,
    speaker_scope: str,
    settings: TableSettings,
    load: Callable[[], Encoder],
    encode_with: Callable[[Encoder, Path], Encode],
) -> None:
    """Create the staged `set_similarity`, and the scratch table `vector_norms`, by which the gate checks the vectors.

    It is measured for the speakers of `settings.similarity`, and only the turns in their sets are encoded. Vectors go
    to a file in the scratch folder, so that memory does not grow with the number of turns. load: gives the encoder.
    encode_with: gives its `encode`, with a folder for the shards of workers.
    """
    connection = stage.connection
    connection.execute("CREATE TABLE vector_norms (turn_id BIGINT, norm DOUBLE)")
    if settings.similarity == "none":
        stage.create("set_similarity")
        return
    stage.create(
        "similarity_owners",
        "2_speaker_tables/similarity_owners",
        seed_hash=seed_hash(connection, settings.seed),
        speaker_scope=speaker_scope,
        speakers=None if settings.similarity == "all" else settings.similarity,
    )
    people = connection.execute("SELECT * FROM similarity_owners ORDER BY turn_id").fetchnumpy()
    of_speakers = int(people["of_speakers"][0]) if len(people["turn_id"]) else 0
    stage.create("similarity_turns", "2_speaker_tables/similarity_turns")
    turns = connection.execute("SELECT turn_id FROM similarity_turns ORDER BY turn_id").fetchnumpy()[
        "turn_id"
    ]
    encoder = load()
    vectors = _encoded(stage, corpus, len(turns), encoder, encode_with(encoder, stage.scratch))
    kinds, owners = {}, {}
    for kind, table in SET_TABLES.items():
        members = connection.execute(_MEMBERS.format(table)).fetchnumpy()
        rows = np.searchsorted(turns, members["turn_id"])
        kinds[kind] = similarity_in_shards(vectors, members["set_id"], rows)
        owners[kind] = people["speaker_no"][np.searchsorted(people["turn_id"], kinds[kind].set_id)]
    about = {"corpus": corpus, "encoder": encoder.signature, "of_speakers": of_speakers}
    summaries = summarise(kinds, owners)
    stage.create_from_rows(
        "set_similarity", [{**about, "kind": k, **asdict(s)} for k, s in summaries.items()]
    )


def _encoded(stage: Stage, corpus: str, turns: int, encoder: Encoder, encode: Encode) -> Path:
    """The file of the vectors of `similarity_turns` by id, float16 (turns, d); their norms go to `vector_norms`."""
    import pyarrow as pa

    # Written in order, not to mapped memory: on a full disk a write fails, but mapped memory kills the process.
    path = stage.scratch / "vectors.npy"
    done = 0
    with (
        path.open("wb") as file,
        progress(f"encoding {corpus}", turns) as advance,
        stage.connection.cursor() as texts,  # read while the connection writes
    ):
        header = {"descr": "<f2", "fortran_order": False, "shape": (turns, encoder.dimensions)}
        np.lib.format.write_array_header_1_0(file, header)
        for batch in texts.sql(_TEXTS).to_arrow_reader(CHUNK):
            part = encode(batch.column("text").to_pylist())
            file.write(part.astype("<f2").tobytes())
            norms = {"turn_id": batch.column("turn_id"), "norm": np.linalg.norm(part, axis=1)}
            stage.insert("vector_norms", pa.table(norms))
            done += len(part)
            advance(done)
    return path


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
