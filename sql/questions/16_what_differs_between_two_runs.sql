-- What differs between two runs?
-- Each run is compared with the previous run of the same stage: parameters, content hashes of inputs, and version of
-- ssrem; null means that only the other run has the value. To compare two other runs, replace the query `pairs` by
-- SELECT 'RUN' AS run_id, 'OTHER' AS before. How figures change over versions is question 12.
WITH pairs AS (
    SELECT run_id, lag(run_id) OVER (PARTITION BY stage ORDER BY started) AS before
    FROM runs
),

said AS (
    SELECT run_id, 'parameters' AS part, t.fullkey AS name, t.atom AS value
    FROM runs
    CROSS JOIN json_tree(parameters) AS t
    UNION ALL
    SELECT run_id, 'inputs' AS part, t.fullkey AS name, t.atom AS value
    FROM runs
    CROSS JOIN json_tree(inputs) AS t
    UNION ALL
    SELECT run_id, 'version' AS part, 'ssrem' AS name, to_json(ssrem_version) AS value
    FROM runs
),

sides AS (
    SELECT pairs.*, said.part, said.name, said.value AS value_before, NULL AS value
    FROM pairs
    INNER JOIN said ON pairs.before = said.run_id
    UNION ALL
    SELECT pairs.*, said.part, said.name, NULL AS value_before, said.value
    FROM pairs
    INNER JOIN said ON pairs.run_id = said.run_id
    WHERE pairs.before IS NOT NULL
)

SELECT
    runs.stage,
    sides.before,
    sides.run_id,
    sides.part,
    sides.name,
    max(sides.value_before) AS value_before,
    max(sides.value) AS value
FROM sides
INNER JOIN runs ON sides.run_id = runs.run_id
GROUP BY runs.stage, sides.before, sides.run_id, sides.part, sides.name
HAVING max(sides.value_before) IS DISTINCT FROM max(sides.value)
ORDER BY sides.run_id DESC, sides.part DESC, sides.name ASC
