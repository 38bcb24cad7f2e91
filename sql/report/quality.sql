-- One row is an expectation in a run; of runs with the same stage and parameters only the latest is shown.
SELECT
    q.run_id, q.stage, q.table_name AS table, q.expectation, q.passed, q.rows_checked AS observed,
    q.unexpected
FROM check_results AS q INNER JOIN runs AS r USING (run_id)
QUALIFY dense_rank() OVER (PARTITION BY r.stage, r.parameters ORDER BY r.started DESC) = 1
ORDER BY r.started, q.table_name, q.expectation
