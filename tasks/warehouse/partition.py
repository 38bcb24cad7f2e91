"""Partitions: the Parquet files that make up the published tables, and the keys that identify them within a table."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ssrem.files import sha256
from ssrem.tasks.warehouse.files import sync_path


@dataclass(frozen=True)
class PartitionKey:
    """The values that all rows of a partition share; a field is None where the table is not divided by it.

    corpus: the landed corpus that the rows are of; dataset: the annotated set, or what a study is of; evaluator and
    version: what trained, scored or was measured; generator and split: of negatives; study: the study's name. The
    tables `runs` and `check_results` have one partition, whose key has no field.
    """

    corpus: str | None = None
    dataset: str | None = None
    evaluator: str | None = None
    version: int | None = None
    generator: str | None = None
    split: str | None = None
    study: str | None = None

    def values(self) -> dict[str, str | int]:
        """The fields that are not None, by name: the form in which a key is stored."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.values().items()) or "all rows"


KEY_FIELDS = tuple(field.name for field in fields(PartitionKey))

Address = tuple[str, PartitionKey]
"""A table and the key of one of its partitions; a snapshot has at most one file for each."""

REPLICATED = (
    *("corpora", "evaluators", "learning_curves", "identification"),
    *("agreement", "comparisons", "rankings", "rater_agreement"),
    *("rated_responses", "ratings", "human_scores", "judgments", "runs", "check_results"),
)
"""Small tables that cannot be recomputed; each of their files has a replica beside it."""


@dataclass(frozen=True)
class Partition:
    """A published Parquet file with the rows of `table` under `key`.

    path: relative to the home folder. rows: their number. bytes, sha256: of the file as it was published.
    """

    table: str
    key: PartitionKey
    path: str
    rows: int
    bytes: int
    sha256: str

    @classmethod
    def of_file(cls, address: Address, path: str, rows: int, file: Path) -> Partition:
        """The partition that will be at `path`, with size and digest of its draft `file`."""
        return cls(*address, path, rows, file.stat().st_size, sha256(file))

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Partition:
        """The inverse of `to_json`; KeyError or TypeError for anything else."""
        return cls(**{**content, "key": PartitionKey(**content["key"])})

    def to_json(self) -> dict[str, Any]:
        """The partition as a JSON object."""
        return {**asdict(self), "key": self.key.values()}

    @property
    def address(self) -> Address:
        """The table and the key."""
        return self.table, self.key

    @property
    def folder(self) -> str:
        """The folder in the lake: `run=ID`, or `run=ID.ledger` for the tables `runs` and `check_results`."""
        return self.path.split("/")[1]

    @property
    def run(self) -> str:
        """Id of the run that wrote it."""
        return self.folder.removeprefix("run=").split(".")[0]

    def __str__(self) -> str:
        return f"{self.path} (table {self.table}, {self.key})"


def write_replica(table: str, path: Path) -> None:
    """Copy the file of a partition beside it, if its table is one of REPLICATED."""
    if table in REPLICATED:
        sync_path(Path(shutil.copyfile(path, replica_path(path))))


def replica_path(path: Path) -> Path:
    """The path of the replica of a partition's file, if its table is one of REPLICATED."""
    return path.with_name(f"{path.name}.copy")
