"""The HTML report, the comparison of two runs, and the generated part of docs/sql.md."""
