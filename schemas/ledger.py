"""`runs`, `check_results`: the runs that published, and the results of their gates."""

from ssrem.schemas.contract import Table, columns

RUNS = Table(
    name="runs",
    grain="One row is a run of a stage that published.",
    key=("run_id",),
    columns=columns(
        run_id="VARCHAR: time of its start, to the microsecond, and a random suffix; sorts by time",
        stage="VARCHAR: name of the stage, such as ingest or correlate",
        key="VARCHAR: hash of stage, parameters, inputs and version: equal keys run once",
        parameters="VARCHAR: JSON object: parameters of the stage",
        inputs="VARCHAR: JSON object: content hashes of its inputs",
        outputs="VARCHAR: JSON list: table and key of each partition that it published",
        started="TIMESTAMP: start, UTC",
        ended="TIMESTAMP: end, UTC",
        ssrem_version="VARCHAR: version of the software",
    ),
)

CHECK_RESULTS = Table(
    name="check_results",
    grain="One row is the outcome of one expectation on one table in one run.",
    key=("run_id", "table_name", "expectation"),
    columns=columns(
        run_id="VARCHAR: run to whose gate it belongs",
        stage="VARCHAR: stage of that run",
        table_name="VARCHAR: table that was checked",
        expectation="VARCHAR: name of the expectation",
        passed="BOOLEAN: whether it held",
        rows_checked="BIGINT?: rows of the table",
        unexpected="BIGINT: rows that violate it",
    ),
)
