"""The questions of docs/sql.md: all answer on a home that `ssrem run` made, and the answers are right by hand."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest

from ssrem.schemas import TABLES, VIEWS
from ssrem.sql import Query, queries, statement
from ssrem.tasks.query import ask
from support.small_home import Made

NOTHING_WRONG = "01_quarantine_reasons"
"""What has no rows where everything landed."""


def test_there_are_sixteen_of_one_form() -> None:
    assert len(queries("questions")) == 16
    for number, question in enumerate(queries("questions").values(), 1):
        assert question.name.startswith(f"{number:02}_")
        assert question.title.endswith("?") and question.notes.endswith((".", ":"))
        assert question.text.startswith(("SELECT", "WITH")) and ";" not in question.text


@pytest.mark.parametrize("question", queries("questions").values(), ids=lambda question: question.name)
def test_it_answers(question: Query, made: Made) -> None:
    columns, rows = ask(made.home, question.text)
    assert len(columns) == len(set(columns)) > 2
    assert rows or question.name == NOTHING_WRONG


def answer(name: str, **tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the question named so answers where the tables hold these rows; columns that a row leaves out are null."""
    (question,) = [one for one in queries("questions").values() if one.name[3:] == name]
    with duckdb.connect(":memory:") as connection:
        for table in TABLES.values():
            connection.execute(table.ddl())
        for view in VIEWS:
            connection.execute(f"CREATE VIEW {view} AS {statement(f'views/{view}')}")
        for table, rows in tables.items():
            for row in rows:
                values = ", ".join("?" * len(row))
                connection.execute(
                    f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})", list(row.values())
                )
        cursor = connection.execute(question.text)
        names = [column[0] for column in cursor.description or []]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def rows_of(columns: str, *rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(columns.split(), row, strict=True)) for row in rows]


def test_reasons_are_counted_against_what_was_read() -> None:
    rejected = [("c", 5, "d", 6, "no_text"), ("c", 2, "d", 3, "no_text"), ("c", 7, "d", 8, "broken_json")]
    rows = answer(
        "quarantine_reasons",
        corpora=[{"corpus": "c", "messages_read": 8}],
        quarantine=[
            row | {"record": "message"} for row in rows_of("corpus row_no file line reason", *rejected)
        ],
    )
    assert [
        (row["reason"], row["records"], row["share_of_messages_read"], row["first_seen"]) for row in rows
    ] == [("no_text", 2, 0.25, "d:3"), ("broken_json", 1, 0.125, "d:8")]


def test_a_decision_shows_what_it_rests_on() -> None:
    compared = rows_of(
        "dataset measure difference low margin not_worse",
        *((dataset, "spearman", 0.1, -0.25, 0.02, False) for dataset in ("c", "people")),
    )
    versions = rows_of(
        "evaluator version promoted why comparison",
        ("ssrem", 1, True, "first version", None),
        ("ssrem", 2, False, "worse", json.dumps(compared)),
    )
    rows = answer("decisions_of_promotion", evaluators=versions)
    assert [(row["version"], row["dataset"], row["low"], row["not_worse"]) for row in rows] == [
        (1, None, None, None),
        (2, "c", -0.25, False),
        (2, "people", -0.25, False),
    ]


def test_who_gets_the_worst_responses_is_a_person() -> None:
    ids, answered = range(12), ["ann", "bot"]
    scored = [("ssrem", 1, "c", str(at), kind, 0, at / 12) for at in ids for kind in ("GT", "SC")]
    rows = answer(
        "speakers_who_get_the_worst_responses",
        evaluators=rows_of("evaluator version promoted", ("ssrem", 1, True)),
        scores=rows_of("evaluator version dataset response_id kind k f", *scored),
        responses=rows_of(
            "corpus response_id speaker addressee", *(("c", at, "eve", answered[at % 2]) for at in ids)
        ),
        turns=rows_of("corpus turn_id speaker is_person", ("c", 20, "ann", True), ("c", 21, "bot", False)),
    )
    assert [(row["speaker"], row["responses"], row["above_negatives"]) for row in rows] == [("ann", 6, 0.5)]


def test_change_is_against_the_version_before() -> None:
    agreement = [
        {
            **{"evaluator": evaluator, "version": version, "dataset": "people", "criterion": "overall"},
            **{"aggregation": "mean", "level": level, "grouping": "pooled", "score": "f", "forced": False},
            **{"measure": measure, "statistic": statistic, "n": 9, "groups": 5, "outcome": "ok"},
        }
        for evaluator, version, rho, level in [
            ("ssrem", 1, 0.2, "segment"),
            ("ssrem", 2, 0.5, "segment"),
            ("rsrem", 1, 0.9, "segment"),
            ("ssrem", 2, 1.0, "system"),
        ]
        for measure, statistic in (("spearman", rho), ("pearson", -1.0))
    ]
    rows = answer("agreement_over_versions", agreement=agreement)
    assert [(row["evaluator"], row["version"], row["change"]) for row in rows] == [
        ("rsrem", 1, None),
        ("ssrem", 1, None),
        ("ssrem", 2, 0.3),
    ]


def test_a_run_differs_from_the_one_before_in_what_is_listed() -> None:
    runs = rows_of(
        "run_id stage parameters inputs",
        ("1", "train", '{"config": {"seed": 0, "epochs": 9}}', "{}"),
        ("2", "train", '{"config": {"seed": 1, "epochs": 9}}', '{"c": "h"}'),
        ("3", "tables", '{"seed": 5}', "{}"),
    )
    runs = [{**row, "started": f"2026-01-0{row['run_id']}", "ssrem_version": "1"} for row in runs]
    rows = answer("what_differs_between_two_runs", runs=runs)
    assert [(row["before"], row["run_id"], *list(row.values())[3:]) for row in rows] == [
        ("1", "2", "parameters", "$.config.seed", "0", "1"),
        ("1", "2", "inputs", "$.c", None, '"h"'),
    ]
