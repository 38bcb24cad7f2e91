"""Stores vectors on disk by the hash of their text, so that no encoder encodes a text twice."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder, Vectors
from ssrem.errors import HomeError

_ENCODE_CHUNK = 50_000
_READ_CHUNK = 65_536
_ABANDONED_AFTER = 3600.0

Hashes = NDArray[np.uint64]


def text_hashes(texts: Sequence[str]) -> Hashes:
    """64 bits of BLAKE2b of each text, uint64 (n,)."""
    digests = b"".join(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts
    )
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


class _Rows:
    """The vectors of texts, zero at first, and which of the texts' distinct hashes have their vector.

    result: float32 (n, d). hashes (u,), sorted; first (u,): a text of each; inverse (n,): each text's hash;
    known, bool (u,): whether the vector was placed.
    """

    def __init__(self, texts: Sequence[str], dimensions: int) -> None:
        self.result: Vectors = np.zeros((len(texts), dimensions), dtype=np.float32)
        self.hashes, self.first, self.inverse = np.unique(
            text_hashes(texts), return_index=True, return_inverse=True
        )
        # The rows of hash u are members[edges[u]:edges[u + 1]].
        self._members = np.argsort(self.inverse, kind="stable")
        counts = np.bincount(self.inverse, minlength=len(self.hashes))
        self._edges = np.concatenate([[0], np.cumsum(counts)])
        self.known = np.zeros(len(self.hashes), dtype=bool)

    def place(self, positions: NDArray[np.int64], vectors: NDArray[Any]) -> None:
        """Write the vectors (p, d) of the hashes at `positions` into the rows of their texts."""
        counts = self._edges[positions + 1] - self._edges[positions]
        ends = np.cumsum(counts)
        offsets = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        rows = self._members[np.repeat(self._edges[positions], counts) + offsets]
        self.result[rows] = np.repeat(vectors, counts, axis=0)
        self.known[positions] = True


class VectorStore:
    """`folder`/ENCODER-SIGNATURE/*.parquet: text_hash uint64 and vector, a fixed-size list of float16.

    Files are written aside, then renamed, and carry page checksums; a file that cannot be read back is deleted
    and its texts are encoded again. into: another folder for what is new, which `adopt` takes over later.
    """

    def __init__(self, folder: Path, *, into: Path | None = None) -> None:
        self.folder = folder
        self.into = into or folder

    def encode(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        *,
        compute: Callable[[Sequence[str]], Vectors] | None = None,
    ) -> Vectors:
        """float32 (n, d), equal to `encoder.encode(texts)`; new vectors are stored.

        Memory beyond the result: one chunk, and 8 bytes a text. compute: replaces the encoder's `encode`.
        """
        rows = self._look_up(encoder, texts)
        missing = np.flatnonzero(~rows.known)
        for start in range(0, len(missing), _ENCODE_CHUNK):
            positions = missing[start : start + _ENCODE_CHUNK]
            vectors = (compute or encoder.encode)([texts[row] for row in rows.first[positions]])
            self._write(self.into / encoder.signature, rows.hashes[positions], vectors)
            rows.place(positions, vectors)
        return rows.result

    def stored(self, encoder: Encoder, texts: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """Vectors float32 (n, d), zero for a text that is not stored, and whether each is stored, bool (n,)."""
        rows = self._look_up(encoder, texts)
        return rows.result, rows.known[rows.inverse]

    def adopt(self, folder: Path) -> None:
        """Move in the files that a store wrote into `folder`."""
        for part in sorted(folder.glob("*/*.parquet")):
            target = self.folder / part.parent.name / part.name
            target.parent.mkdir(parents=True, exist_ok=True)
            part.replace(target)

    def _look_up(self, encoder: Encoder, texts: Sequence[str]) -> _Rows:
        rows = _Rows(texts, encoder.dimensions)
        if len(texts) == 0:
            return rows
        for hashes, vectors in self._stored(self.folder / encoder.signature, encoder.dimensions):
            at = np.minimum(np.searchsorted(rows.hashes, hashes), len(rows.hashes) - 1)
            wanted = (rows.hashes[at] == hashes) & ~rows.known[at]
            if wanted.any():
                rows.place(at[wanted], vectors[wanted])
        return rows

    def retain(self, hashes: Hashes) -> int:
        """Delete the vectors of all texts except those with these hashes, for every encoder; returns how many."""
        import pyarrow.parquet as pq

        deleted = 0
        for path in sorted(self.folder.glob("*/*.parquet")):
            try:
                table = pq.read_table(path)
                stored = _column(table, "text_hash")
            except (OSError, ValueError, KeyError, TypeError):  # unreadable, so of no use
                path.unlink()
                continue
            retained = np.isin(stored, hashes)
            if retained.all():
                continue
            deleted += int((~retained).sum())
            if retained.any():
                (rest,) = table.filter(retained).combine_chunks().to_batches()
                vectors = _matrix(rest, rest.schema.field("vector").type.list_size)
                self._write(path.parent, stored[retained], vectors.astype(np.float32))
            path.unlink()
        for path in self.folder.glob("*/*.tmp"):
            path.unlink(missing_ok=True)
        return deleted

    def _stored(self, parts: Path, dimensions: int) -> Iterator[tuple[Hashes, NDArray[np.float16]]]:
        """Hashes (k,) and vectors (k, d), chunk by chunk, of every file that can be read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for path in sorted(parts.glob("*.parquet")):
            try:
                # All chunks first: a file that is damaged in the middle must not be used in part.
                with pq.ParquetFile(path, page_checksum_verification=True) as part:
                    chunks = [
                        (_column(batch, "text_hash"), _matrix(batch, dimensions))
                        for batch in part.iter_batches(_READ_CHUNK)
                    ]
            except (OSError, pa.ArrowException, KeyError, ValueError, TypeError):
                path.unlink(missing_ok=True)
                continue
            yield from chunks

    def _write(self, parts: Path, hashes: Hashes, vectors: Vectors) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        values = pa.array(vectors.astype(np.float16).ravel())
        table = pa.table(
            {
                "text_hash": pa.array(hashes),
                "vector": pa.FixedSizeListArray.from_arrays(values, vectors.shape[1]),
            }
        )
        name = hashlib.blake2b(hashes.tobytes(), digest_size=12).hexdigest()
        aside = parts / f"{name}.{os.getpid()}.tmp"
        try:
            parts.mkdir(parents=True, exist_ok=True)
            _sweep(parts)
            pq.write_table(table, aside, compression="zstd", use_dictionary=False, write_page_checksum=True)
            aside.replace(parts / f"{name}.parquet")
        except OSError as error:
            aside.unlink(missing_ok=True)
            raise HomeError(
                f"{parts}: vectors cannot be written ({error}); free space and run again"
            ) from error


def _column(batch: Any, name: str) -> Hashes:
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.uint64)


def _matrix(batch: Any, dimensions: int) -> NDArray[np.float16]:
    column = batch.column("vector")
    if column.type.list_size != dimensions or column.null_count:
        raise ValueError(f"vectors of {column.type.list_size} dimensions, expected {dimensions}")
    values = np.asarray(column.flatten().to_numpy(zero_copy_only=False), dtype=np.float16)
    if not np.isfinite(values).all():
        raise ValueError("vectors that are not finite")
    return values.reshape(-1, dimensions)


def _sweep(parts: Path) -> None:
    """Delete files that a killed run left unfinished."""
    for path in parts.glob("*.tmp"):
        try:
            if time.time() - path.stat().st_mtime > _ABANDONED_AFTER:
                path.unlink()
        except FileNotFoundError:
            continue
