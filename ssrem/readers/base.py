"""The raw schema, the base class of readers, and the builder of batches from single rows."""

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
        ("line", pa.int64()),  # 1-based; an ordinal if the format has no lines
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
    """Reads a dump as a stream of record batches of RAW_SCHEMA, in the dump's order.

    Memory does not grow with the dump. An unreadable row becomes a row with a `problem`; DumpError is raised only if
    the rest of the dump cannot be read. A reader may be iterated more than once.

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
        """Whether the content at `path` looks like this format; file names are ignored."""

    @classmethod
    def packaged(cls) -> Path | None:
        """The corpus of this format that an installed package ships; None if no package does."""
        return None

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]: ...

    def check(self) -> None:  # noqa: B027 - a format without a mapping has nothing to check
        """Raise DumpError if the start of the dump shows that it cannot be read, or not with this mapping."""

    def files(self) -> list[Path]:
        """Every file of the dump, sorted; the hash of its content covers them."""
        return [self.path]

    @property
    def total_bytes(self) -> int:
        """The value of `bytes_read` at the end."""
        return sum(file.stat().st_size for file in self.files())

    def _advance(self, stored: int) -> None:
        self.bytes_read = stored


BATCH_BYTES = 32 << 20
"""A batch with this many bytes of text is full, however few rows it has."""


class RowBuilder:
    """Collects single rows into batches; slower than whole columns, but exact for unusual rows."""

    def __init__(self, batch_rows: int) -> None:
        self._batch_rows = batch_rows
        self._bytes = 0
        self._rows: list[Mapping[str, object]] = []
        self._places: list[tuple[str, str, int]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, record: str, file: str, line: int, values: Mapping[str, object]) -> None:
        """Add a readable row; values: its other columns, null if absent."""
        self._places.append((record, file, line))
        self._rows.append(values)
        self._bytes += sum(len(value) for value in values.values() if isinstance(value, str | bytes))

    def add_problem(
        self, problem: str, file: str, line: int, raw: bytes, values: Mapping[str, object] | None = None
    ) -> None:
        """Add an unreadable row with its reason code and exact bytes."""
        self.add("message", file, line, {**(values or {}), "problem": problem, "raw": raw})

    def full_batches(self) -> Iterator[pa.RecordBatch]:
        """The collected rows, if they fill a batch."""
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
    """`batch` in slices of at most `rows` rows, without copying."""
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
