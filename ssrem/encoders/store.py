"""Stores vectors on disk by the hash of their text, so that no encoder encodes a text twice."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder, Vectors
from ssrem.errors import HomeError

_ENCODE_CHUNK = 10_000
"""Texts per file. A killed run loses at most one file: 8 minutes of work of a core with an encoder of base size."""
_ABANDONED_AFTER = 3600.0

Hashes = NDArray[np.uint64]


def text_hashes(texts: Sequence[str]) -> Hashes:
    """A 64-bit BLAKE2b hash of each text, uint64 (n,)."""
    digests = b"".join(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts
    )
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


class VectorStore:
    """Stores vectors in files `folder`/ENCODER-SIGNATURE/*.parquet.

    Columns: text_hash, uint64, and vector, a fixed-size list of float16. Files are written under a temporary name, then
    renamed, and have page checksums; a file that cannot be read is deleted and its texts are encoded again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def encode(self, encoder: Encoder, texts: Sequence[str]) -> Vectors:
        """The vectors of the texts, float32 (n, d), equal to `encoder.compute(texts)`; new vectors are stored.

        Memory beyond the result: one file of vectors, and about 150 bytes per text.
        """
        result = np.zeros((len(texts), encoder.dimensions), dtype=np.float32)
        if not len(texts):
            return result
        folder = self.folder / encoder.signature
        hashes, first, inverse = np.unique(text_hashes(texts), return_index=True, return_inverse=True)
        missing = np.ones(len(hashes), dtype=bool)

        def place(distinct: NDArray[np.int64], vectors: NDArray[Any]) -> None:
            """Copy the vectors (p, d) of the hashes at positions `distinct` (p,) into the rows of their texts."""
            at = np.full(len(hashes), -1)
            at[distinct] = np.arange(len(distinct))
            rows = np.flatnonzero(at[inverse] >= 0)
            result[rows] = vectors[at[inverse[rows]]]
            missing[distinct] = False

        for path in sorted(folder.glob("*.parquet")):
            if (part := _read(path, encoder.dimensions, hashes)) is not None:
                stored, vectors = part
                at = np.minimum(np.searchsorted(hashes, stored), len(hashes) - 1)
                known = (hashes[at] == stored) & missing[at]
                place(at[known], vectors[known])
        absent = np.flatnonzero(missing)
        for start in range(0, len(absent), _ENCODE_CHUNK):
            distinct = absent[start : start + _ENCODE_CHUNK]
            encoded = encoder.compute([texts[row] for row in first[distinct]])
            _write(folder, hashes[distinct], encoded)
            place(distinct, encoded)
        return result


def _read(path: Path, dimensions: int, wanted: Hashes) -> tuple[Hashes, NDArray[np.float16]] | None:
    """Hashes (k,) and vectors (k, d) of a file; None if it has none of the wanted hashes. A damaged file, or
    one whose vectors do not have these dimensions, is deleted. None is returned for that, and for one that cannot be
    read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            column = file.read(["text_hash"]).column("text_hash")
            hashes = np.asarray(column.to_numpy(), dtype=np.uint64)
            if not np.isin(hashes, wanted).any():
                return None
            column = file.read(["vector"]).column("vector")
        size = column.type.list_size
        values = np.concatenate([chunk.flatten().to_numpy() for chunk in column.chunks])
        vectors = values.astype(np.float16).reshape(len(hashes), size)
        if size != dimensions or not np.isfinite(vectors).all():
            raise ValueError
    except OSError as error:
        if error.errno is None:  # Arrow's error for damaged content; the system's have a number, and may pass
            path.unlink(missing_ok=True)
        return None
    except (pa.ArrowException, AttributeError, KeyError, TypeError, ValueError):
        path.unlink(missing_ok=True)
        return None
    return hashes, vectors


def _write(folder: Path, hashes: Hashes, vectors: NDArray[Any]) -> None:
    """Write a file of vectors, and delete unfinished files that are more than an hour old, left by killed runs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = pa.array(vectors.astype(np.float16).ravel())
    rows = pa.FixedSizeListArray.from_arrays(values, vectors.shape[1])
    table = pa.table({"text_hash": pa.array(hashes), "vector": rows})
    name = hashlib.blake2b(hashes.tobytes(), digest_size=12).hexdigest()
    aside = folder / f"{name}.{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("*.tmp"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _ABANDONED_AFTER:
                    path.unlink()
        pq.write_table(table, aside, compression="none", use_dictionary=False, write_page_checksum=True)
        aside.replace(folder / f"{name}.parquet")
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise HomeError(f"{folder}: vectors cannot be written ({error}); free space and run again") from error
