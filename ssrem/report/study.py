"""A study on one page: two sentences an evaluator, the figures, and a plot of them."""

from __future__ import annotations

import io

from ssrem.report.data import Row, Rows
from ssrem.report.tables import markdown_text
from ssrem.studies import study_called
from ssrem.studies.study import Finding

_MARKS = ("o", "s", "D", "^", "v", "P", "X", "*")
_HEIGHT = 0.32  # inches a condition


def said(rows: Rows) -> dict[str, tuple[str, str]]:
    """Evaluator to what its study says, in two sentences. rows: of one study on one dataset, as in `studies`."""
    return {
        name: study_called(rows[0]["study"]).sentences(_findings(rows, name)) for name in evaluators(rows)
    }


def markdown(rows: Rows) -> str:
    """The sentences, and a table with a row a condition and a column an evaluator; ValueError without rows."""
    study, dataset = rows[0]["study"], rows[0]["dataset"]
    names = evaluators(rows)
    lines = [f"# {study}: {markdown_text(dataset)}", ""]
    for name, (first, second) in said(rows).items():
        lines += [f"**{markdown_text(name)}.** {first} {second}", ""]
    lines += [f"| | {' | '.join(map(markdown_text, names))} | n |", f"|---|{'---:|' * (len(names) + 1)}"]
    for label, by_name in conditions(rows).items():
        cells = [_cell(by_name.get(name)) for name in names]
        n = max(row["n"] for row in by_name.values())
        lines.append(f"| {markdown_text(label)} | {' | '.join(cells)} | {n:,} |")
    return "\n".join(lines) + "\n"


def figure(rows: Rows) -> str:
    """The figures as SVG: a line a condition, a mark an evaluator."""
    from matplotlib import rc_context, rcdefaults
    from matplotlib.figure import Figure

    by_condition = conditions(rows)
    with rc_context():
        rcdefaults()
        # Names of people's systems and sets are text, not formulas, and the same figure is the same file.
        with rc_context(
            {"text.parse_math": False, "svg.hashsalt": "ssrem", "svg.fonttype": "none", "font.size": 9}
        ):
            drawn = Figure(figsize=(7, 1.1 + _HEIGHT * len(by_condition)), layout="constrained")
            axes = drawn.add_subplot()
            for number, name in enumerate(evaluators(rows)):
                places = [
                    (by_name[name]["value"], at)
                    for at, by_name in enumerate(by_condition.values())
                    if name in by_name and by_name[name]["value"] is not None
                ]
                axes.plot(
                    [value for value, _ in places],
                    [at for _, at in places],
                    _MARKS[number % len(_MARKS)],
                    label=name,
                    alpha=0.85,
                )
            axes.set_yticks(range(len(by_condition)), list(by_condition))
            axes.invert_yaxis()
            axes.grid(axis="x", color="#ddd")
            axes.set_xlabel(study_called(rows[0]["study"]).axis)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=4, frameon=False)
            with io.StringIO() as stream:
                drawn.savefig(stream, format="svg", metadata={"Date": None})
                return stream.getvalue()


def _findings(rows: Rows, evaluator: str) -> list[Finding]:
    columns = ("condition", "measure", "value", "n", "outcome")
    return [Finding(*(row[name] for name in columns)) for row in rows if row["evaluator"] == evaluator]


def evaluators(rows: Rows) -> list[str]:
    """Names of the evaluators, in the order of the rows."""
    return list(dict.fromkeys(row["evaluator"] for row in rows))


def conditions(rows: Rows) -> dict[str, dict[str, Row]]:
    """Condition, with the measure where there are several, to evaluator to its row, in the order of the rows."""
    several = len({row["measure"] for row in rows}) > 1
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        label = f"{row['condition']}, {row['measure']}" if several else row["condition"]
        found.setdefault(label, {})[row["evaluator"]] = row
    return found


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    return row["outcome"].replace("_", " ") if row["value"] is None else f"{row['value']:.2f}"
