"""Several files or folders of one format as one dump."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path

import pyarrow as pa

from ssrem.readers.base import Reader, Record
from ssrem.readers.files.sources import labels


class SeveralReader(Reader):
    """The records of each reader in order; `source` and `file` say where each is from.

    Ids are those of the files; where they repeat across files, the landing scopes them. Whether the day or the month is
    first in dates is decided by all files.
    """

    def __init__(self, readers: Sequence[Reader]) -> None:
        first = readers[0]
        # Not ClassVars as in other readers: those of the format that is read.
        self.format, self.describes, self.takes_mapping = first.format, first.describes, first.takes_mapping  # type: ignore[misc]
        self.not_people = first.not_people  # type: ignore[misc]
        super().__init__(first.path, mapping=first.mapping, batch_rows=first.batch_rows)
        self.conversations = first.conversations
        self._readers = readers
        self._labels = labels([reader.path.absolute() for reader in readers])
        for reader in readers:
            reader.notes = self.notes

    def check(self) -> None:
        for reader in self._readers:
            reader.check()
        self.persons = any(reader.persons for reader in self._readers)

    def weigh(self) -> None:
        first, *others = self._readers
        first.weigh()
        self.columns = first.columns
        for reader in others:  # a column is one field in all files
            reader.layout.pass_over(first.layout.passed_over)

    def files(self) -> list[Path]:
        return sorted({file for reader in self._readers for file in reader.files()})

    @property
    def ids_may_repeat(self) -> bool:
        return True

    @property
    def total_bytes(self) -> int:
        return sum(reader.total_bytes for reader in self._readers)

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        done = 0
        for one, label in zip(self._readers, self._labels, strict=True):
            reader = copy(one)  # counts and decisions are those of the whole dump
            reader.left_out, reader.notes, reader.layout = self.left_out, self.notes, copy(one.layout)
            reader.layout.times, reader.bytes_read = self.layout.times, 0
            for record in reader.records():
                self.bytes_read = done + reader.bytes_read
                yield _placed(record, label, reader.path.is_dir())
            done += reader.total_bytes
            self.bytes_read = done


def _placed(record: Record | pa.RecordBatch, label: str, is_folder: bool) -> Record | pa.RecordBatch:
    if isinstance(record, Mapping):
        return {**record, "source": label, "file": f"{label}/{record['file']}" if is_folder else label}
    columns = dict(zip(record.schema.names, record.columns, strict=True))
    columns["source"] = pa.repeat(label, len(record))
    if not is_folder:
        columns["file"] = columns["source"]
    else:
        columns["file"] = pa.array([f"{label}/{name}" for name in columns["file"].to_pylist()], pa.string())
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=record.schema)
