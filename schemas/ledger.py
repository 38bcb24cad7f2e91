"""`runs`, `check_results`: the runs that published, and the results of their gates."""

from schemas.contract import Between, Column, OneOf, Table

RUNS = Table(
    name="runs",
    grain="One row is a run of a stage that published.",
    part="run",
    key=("run_id",),
    columns=(
        Column("run_id", "VARCHAR", "time of its start and a random suffix"),
        Column("stage", "VARCHAR", "name of the stage, such as ingest or correlate"),
        Column("key", "VARCHAR", "hash of stage, parameters, inputs and version: equal keys run once"),
        Column("parameters", "VARCHAR", "JSON object: parameters of the stage"),
        Column("inputs", "VARCHAR", "JSON object: content hashes of its inputs"),
        Column("outputs", "VARCHAR", "JSON list: table and key of each partition that it published"),
        Column("started", "TIMESTAMP", "start, UTC"),
        Column("ended", "TIMESTAMP", "end, UTC"),
        Column("state", "VARCHAR", "published"),
        Column("ssrem_version", "VARCHAR", "version of the software"),
    ),
    expectations=(OneOf("state", ("published",)),),
)

CHECK_RESULTS = Table(
    name="check_results",
    grain="One row is the outcome of one expectation on one table in one run.",
    part="run",
    key=("run_id", "table_name", "expectation"),
    columns=(
        Column("run_id", "VARCHAR", "run to whose gate it belongs"),
        Column("stage", "VARCHAR", "stage of that run"),
        Column("table_name", "VARCHAR", "table that was checked"),
        Column("expectation", "VARCHAR", "name of the expectation"),
        Column("passed", "BOOLEAN", "whether it held"),
        Column("rows_checked", "BIGINT", "rows of the table", nullable=True),
        Column("unexpected", "BIGINT", "rows that violate it"),
    ),
    expectations=(Between("unexpected", 0),),
)
