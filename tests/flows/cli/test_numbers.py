"""Numbers and JSON that no library can hold: one short line, wherever a command takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.cli.arguments import pairs_of
from flows.cli.main import main

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
