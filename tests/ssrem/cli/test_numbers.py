"""Numbers and JSON that no library can hold: one short line, wherever a command takes them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from ssrem.cli.arguments import pairs_of
from ssrem.cli.main import main
from ssrem.cli.options import memory

HUGE = str(10**400)


@pytest.mark.parametrize("value", [HUGE, "9" * 5_000, "2147483648", "1e3", "NaN"])
@pytest.mark.parametrize("option", ["--seed", "--context-turns", "--threads", "--similarity"])
def test_a_number_that_no_library_can_hold_is_refused(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["tables", option, value, "--home", str(tmp_path)])
    line = capsys.readouterr().err
    assert ended.value.code == 2
    assert "is not a whole number from" in line or "invalid" in line
    assert line.count("\n") == 1 and len(line) < 2_200


@pytest.mark.parametrize("value", ["9999999999TB", "0GB", "1KB", f"{HUGE}MB", "9" * 5_000 + "KB"])
def test_an_amount_of_memory_that_duckdb_cannot_have_is_refused(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["tables", "--memory-limit", value, "--home", str(tmp_path)])
    line = capsys.readouterr().err
    assert ended.value.code == 2
    assert "is not from 1MB to 1000TB" in line and line.count("\n") == 1


@pytest.mark.parametrize("value", ["1MB", "1.5 gib", "1000TB"])
def test_duckdb_takes_an_amount_of_memory_that_is_not_refused(value: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory(value)}'")


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a":' * 100_000, "9" * 5_000])
def test_a_setting_that_is_no_json_is_text(value: str) -> None:
    assert pairs_of([f"epochs={value}"], "--set", "epochs=10") == {"epochs": value}


@pytest.mark.parametrize("value", [HUGE, "4294967296", "-1"])
def test_a_seed_that_no_library_can_hold_is_refused(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "ssrem", "--set", f"seed={value}", "--dry-run", "--home", str(tmp_path)]) == 1
    assert "expected " in (line := capsys.readouterr().err) and line.startswith("ssrem: seed is ")
    assert line.count("\n") == 1
