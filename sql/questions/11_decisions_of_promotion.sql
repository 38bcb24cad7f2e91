-- Which version is in use, and why?
-- One row is a comparison on which the decision about a version rests; a version that was compared with none has one
-- row. difference is challenger minus champion, and low is the 5% quantile of its bootstrap: a challenger is not
-- worse if low is above -margin.
WITH compared AS (
    SELECT
        evaluator,
        version,
        unnest(from_json(
            comparison,
            '[{"dataset": "VARCHAR", "measure": "VARCHAR", "champion": "DOUBLE", "challenger": "DOUBLE",
               "difference": "DOUBLE", "low": "DOUBLE", "margin": "DOUBLE", "n": "BIGINT", "not_worse": "BOOLEAN",
               "outcome": "VARCHAR"}]'
        )) AS one
    FROM evaluators
)

SELECT
    e.evaluator,
    e.version,
    e.promoted,
    e.why,
    e.decided_at,
    e.compared_with,
    c.one.dataset AS dataset,
    c.one.measure AS measure,
    round(c.one.difference, 4) AS difference,
    round(c.one.low, 4) AS low,
    c.one.margin AS margin,
    c.one.not_worse AS not_worse,
    c.one.outcome AS outcome
FROM evaluators AS e
LEFT JOIN compared AS c ON e.evaluator = c.evaluator AND e.version = c.version
ORDER BY e.evaluator, e.version, dataset
