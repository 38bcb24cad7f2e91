"""Exports and published corpora land: what was read has landed or lies in quarantine, and the rest is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssrem.readers import open_dump
from ssrem.tasks.ingest.land import land
from ssrem.tasks.warehouse.home import Warehouse
from support.exports import EXPORTS, write_dump
from support.reader_rows import rows_of


@pytest.mark.parametrize("format", EXPORTS)
def test_what_was_read_landed_or_is_quarantined_and_the_rest_is_counted(
    tmp_path: Path, format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    dump, home = write_dump(EXPORTS[format][0], tmp_path / "dump"), Warehouse.at(tmp_path / "home")
    expected = open_dump(dump)
    rows = [row for row in rows_of(expected) if row["record"] == "message"]
    land(str(dump), str(home.root), max_quarantine=1.0)
    said = " ".join(capsys.readouterr().err.split())
    assert all(f"{count:,} {kind}" in said for kind, count in expected.left_out.items())
    assert all(note in said for note in expected.notes)
    ((landed, quarantined),) = home.query(
        "SELECT (SELECT count(*) FROM utterances), (SELECT count(*) FROM quarantine)"
    )
    assert landed + quarantined == len(rows)
    assert quarantined == sum("problem" in row or "was deleted" in row["text"] for row in rows)
    assert home.query("SELECT format FROM corpora") == [(format,)]
