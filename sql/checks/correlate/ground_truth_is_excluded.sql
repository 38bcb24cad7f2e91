-- table: agreement
-- Ground truth is not a response to judge: it is excluded and not among the n responses compared, unless it was kept by
-- an option; then nothing is excluded.
SELECT g.*
FROM agreement AS g
INNER JOIN (
    SELECT dataset, count(*) AS responses, count(*) FILTER (WHERE NOT ground_truth) AS judged
    FROM rated_responses GROUP BY dataset
) AS r ON g.dataset = r.dataset
WHERE
    g.n + g.missing > CASE WHEN g.ground_truth_kept THEN r.responses ELSE r.judged END
    OR (g.ground_truth_kept AND g.excluded > 0)
