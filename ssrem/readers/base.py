"""The raw schema, the base of every reader, and the builder that turns rows into batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from ssrem.errors import DumpError

RAW_SCHEMA = pa.schema(
    [
        ("record", pa.string()),  # 'message' | 'conversation'; a row with a problem is always a 'message'
        ("file", pa.string()),
        ("line", pa.int64()),  # 1-based; the ordinal where the format has no lines
        ("conversation_id", pa.string()),
        ("utterance_id", pa.string()),
        ("speaker", pa.string()),
        ("addressee", pa.string()),
        ("reply_to", pa.string()),
        ("text", pa.string()),
        ("time", pa.timestamp("us")),  # naive, UTC
        ("metadata", pa.string()),  # JSON object, see ssrem.readers.metadata
        ("problem", pa.string()),  # 'broken_json' | 'undecodable' | 'malformed_row'; null = readable
        ("raw", pa.binary()),  # the source row, only where there is a problem
    ]
)


class Reader(ABC):
    """A dump → a stream of record batches of RAW_SCHEMA, in the dump's order.

    Memory does not grow with the dump. A row that cannot be read is a row with a `problem`; DumpError is
    raised only where the dump as a whole cannot be read on. A reader may be iterated more than once.

    path: file or folder. mapping: field of `--map` → columns. batch_rows: most rows of a batch.
    """

    format: ClassVar[str]
    describes: ClassVar[str]
    takes_mapping: ClassVar[bool] = False

    def __init__(
        self,
        path: Path,
        *,
        mapping: Mapping[str, tuple[str, ...]] | None = None,
        batch_rows: int = 65_536,
    ) -> None:
        if mapping and not self.takes_mapping:
            raise DumpError(f"--map does not apply to {self.format}, whose fields are known; leave it out")
        self.path = path
        self.mapping = dict(mapping or {})
        self.batch_rows = batch_rows
        #: Bytes of the dump read so far, as stored (compressed bytes where it is compressed).
        self.bytes_read = 0

    @classmethod
    @abstractmethod
    def sniff(cls, path: Path) -> bool:
        """Whether the content at `path` looks like this format; names and suffixes of files do not count."""

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]: ...

    def check(self) -> None:  # noqa: B027 - a format without a mapping has nothing to check
        """Raise DumpError if the start of the dump shows that it cannot be read, as with this mapping."""

    def files(self) -> list[Path]:
        """Every file that is part of the dump, sorted: what a hash of its content covers."""
        return [self.path]

    @property
    def total_bytes(self) -> int:
        """What `bytes_read` reaches at the end."""
        return sum(file.stat().st_size for file in self.files())


BATCH_BYTES = 32 << 20
"""A batch is full at so many bytes of text, however few its rows."""


class RowBuilder:
    """Collects rows one at a time and hands them out as batches; the exact path, for whatever is unusual."""

    def __init__(self, batch_rows: int) -> None:
        self._batch_rows = batch_rows
        self._bytes = 0
        self._rows: list[Mapping[str, object]] = []
        self._places: list[tuple[str, str, int]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, record: str, file: str, line: int, values: Mapping[str, object]) -> None:
        """One readable row; `values` holds the other columns, those that are not there are null."""
        self._places.append((record, file, line))
        self._rows.append(values)
        self._bytes += sum(len(value) for value in values.values() if isinstance(value, str | bytes))

    def add_problem(
        self, problem: str, file: str, line: int, raw: bytes, values: Mapping[str, object] | None = None
    ) -> None:
        """One row that cannot be read: its reason code and its exact bytes."""
        self.add("message", file, line, {**(values or {}), "problem": problem, "raw": raw})

    def full_batches(self) -> Iterator[pa.RecordBatch]:
        """The batch that is full, if one is."""
        if len(self) >= self._batch_rows or self._bytes >= BATCH_BYTES:
            yield from self.batches()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows collected since the last call, at most `batch_rows` a batch."""
        if not len(self):
            return
        places = zip(*self._places, strict=True)
        arrays = [pa.array(list(place), field.type) for place, field in zip(places, RAW_SCHEMA, strict=False)]
        for field in list(RAW_SCHEMA)[len(arrays) :]:
            arrays.append(pa.array([row.get(field.name) for row in self._rows], field.type))
        self._rows, self._places, self._bytes = [], [], 0
        yield from sliced(pa.RecordBatch.from_arrays(arrays, schema=RAW_SCHEMA), self._batch_rows)


def sliced(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """`batch` in pieces of at most `rows` rows, without a copy."""
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
