"""`runs`, `check_results`: what ran, and what its gates saw."""

from schemas.contract import Between, Column, OneOf, Table

RUNS = Table(
    name="runs",
    grain="One row is a run of a stage that published.",
    part="run",
    key=("run_id",),
    columns=(
        Column("run_id", "VARCHAR", "time of its start and a random suffix"),
        Column("stage", "VARCHAR", "ingest, tables, train, score or agree"),
        Column("key", "VARCHAR", "hash of stage, parameters, inputs and version: the same key runs once"),
        Column("parameters", "VARCHAR", "JSON object: what the stage was asked"),
        Column("inputs", "VARCHAR", "JSON object: content hashes of what it read"),
        Column("outputs", "VARCHAR", "JSON list: tables and parts that it published"),
        Column("started", "TIMESTAMP", "UTC"),
        Column("ended", "TIMESTAMP", "UTC"),
        Column("state", "VARCHAR", "published"),
        Column("ssrem_version", "VARCHAR", "version of the software"),
    ),
    expectations=(OneOf("state", ("published",)),),
)

QUALITY_RESULTS = Table(
    name="check_results",
    grain="One row is the outcome of one expectation on one table in one run.",
    part="run",
    key=("run_id", "table_name", "expectation"),
    columns=(
        Column("run_id", "VARCHAR", "run whose gate it was"),
        Column("stage", "VARCHAR", "stage of that run"),
        Column("table_name", "VARCHAR", "table that was checked"),
        Column("expectation", "VARCHAR", "what was expected"),
        Column("passed", "BOOLEAN", "whether it held"),
        Column("rows_checked", "BIGINT", "rows of the table", nullable=True),
        Column("unexpected", "BIGINT", "rows that broke it"),
    ),
    expectations=(Between("unexpected", 0),),
)
