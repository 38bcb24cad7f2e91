"""The published figures as one HTML page: `render(ReportData(...))` of ssrem.report.page returns its text."""
