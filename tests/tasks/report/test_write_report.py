"""The report of a home folder: which snapshot the page on the disk shows."""

from __future__ import annotations

from pathlib import Path

from ssrem.tasks.report import write_report
from ssrem.tasks.warehouse.home import Warehouse
from support.stages import publish


def test_a_report_of_the_same_snapshot_is_written_once(home: Warehouse) -> None:
    publish(home.root, 1)
    page = Path(write_report(str(home.root), anew=False))
    text = page.read_text(encoding="utf-8")
    before = page.stat().st_ino
    assert write_report(str(home.root), anew=False) == str(page)
    assert page.stat().st_ino == before
    page.write_text(text[:-9], encoding="utf-8")  # damaged
    write_report(str(home.root), anew=False)
    assert page.read_text(encoding="utf-8")[-9:] == text[-9:]
    written = page.stat().st_ino
    publish(home.root, 2)
    write_report(str(home.root), anew=False)
    assert page.stat().st_ino != written
