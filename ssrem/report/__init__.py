"""The published figures as one HTML page: `render(ReportData(...))` returns its text."""

from __future__ import annotations

from ssrem.report.data import ReportData
from ssrem.report.page import render

__all__ = ["ReportData", "render"]
