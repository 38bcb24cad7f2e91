"""What a repair does where it cannot rerun the stage that published a damaged partition."""

from __future__ import annotations

import pytest

from ssrem.tasks.maintenance.rebuild import rebuild
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.integrity import Damage


def lost_turns(home: Warehouse) -> Damage:
    """Delete the table of turns."""
    (turns,) = (partition for partition in home.partitions() if partition.table == "turns")
    (home.root / turns.path).unlink()
    return Damage(turns, "is missing")


def test_what_was_published_with_other_settings_is_unpublished(
    copy: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_settings(*, seed: int) -> None:
        """Lacks the other settings of the ledger."""

    monkeypatch.setattr("ssrem.tasks.maintenance.rebuild.TableSettings", other_settings)
    (line,) = rebuild(copy, [lost_turns(copy)])
    assert "it was unpublished" in line
    assert "turns" not in {partition.table for partition in copy.partitions()}


def test_an_error_of_the_stage_is_not_taken_for_other_settings(
    copy: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise TypeError("a defect of the stage")

    damage, before = lost_turns(copy), copy.partitions()
    monkeypatch.setattr("ssrem.tasks.maintenance.rebuild.build", fails)
    with pytest.raises(TypeError, match="a defect of the stage"):
        list(rebuild(copy, [damage]))
    assert copy.partitions() == before
