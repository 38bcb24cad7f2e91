"""Names that changed on purpose since the results were kept, and differences that do not count."""

from __future__ import annotations

import json
import re
from pathlib import Path

RENAMES: dict[str, dict[str, str]] = {
    # Old name to new name; each is applied only where the new name exists, so that a half-done move compares, too.
    "tables": {
        "annotated": "rated_responses",
        "annotations": "ratings",
        "quality_results": "check_results",
    },
    "columns": {},  # "table.old" (the table's old name) to the column's new name
    "keys": {"annotated": "rated_responses"},  # of JSON objects
    "words": {},  # whole words in the texts of the ledger, such as names of stages
    "verbs": {
        "agree": "correlate",
        "collect": "home prune",
        "backup": "home backup",
        "restore": "home restore",
        "evaluators": "evaluators list",
        "export": "evaluators export",
        "import": "evaluators import",
        "promote": "evaluators promote",
        "rollback": "evaluators rollback",
        "retrain": "evaluators retrain",
        "annotations list": "ratings list",
        "annotate export": "ratings collect",
        "annotate import": "ratings import",
    },
    "options": {"--annotations": "--ratings"},
    # Pattern of a difference's place (see `compare`) to the reason why it does not count; it is printed as a note.
    "allowed": {
        "*/tables/correlations has the new *": "a view of agreement, which may hold more",
        "*/tables/correlations lacks the column *": "a view of agreement",
        "*/tables/agreement has the new rows": "agreement holds every figure",
        "*/tables/agreement has the new column *": "options are columns",
        "*/tables/correlations.*_low*": "intervals are those of agreement (BCa over contexts), no longer Fisher's",
        "*/tables/correlations.*_high*": "intervals are those of agreement (BCa over contexts), no longer Fisher's",
        "*/files.correlations.csv*_low*": "intervals are those of agreement",
        "*/files.correlations.csv*_high*": "intervals are those of agreement",
        "*/tables/check_results *": "agree and measure are one stage, correlate, with one gate",
        "*/tables/runs *": "agree and measure are one stage, correlate, whose options are named otherwise",
        "*/report.header.numbers*": "the number of gates",
        "*/report.gates.numbers*": "the gates of one stage instead of two",
        "*/report.agreement.numbers*": "the intervals of agreement; the figures are compared as tables",
        "*/report.*.text": "prose; the numbers in it are compared",
    },
}


def add(file: Path) -> None:
    """Add the names of a JSON object of the form of RENAMES."""
    for kind, names in json.loads(file.read_text()).items():
        RENAMES[kind].update(names)


def worded(text: str) -> str:
    """The text with the new names of tables and other words."""
    for old, new in (RENAMES["tables"] | RENAMES["words"]).items():
        text = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, text)
    return text
