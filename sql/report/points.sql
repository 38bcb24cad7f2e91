-- One row is a response with its mean human score and the score of an evaluator in use: h where no fewer responses have
-- it than f, else f, else g. Criterion: overall, else the first.
WITH judged AS (
    SELECT
        s.evaluator, s.version, s.dataset, h.criterion, s.response_id, h.score AS human, h.raters,
        s.f, s.g, s.h, count(s.h) OVER whole >= greatest(count(s.f) OVER whole, 1) AS by_h,
        count(s.f) OVER whole > 0 AS by_f
    FROM scores AS s
    INNER JOIN evaluators AS e USING (evaluator, version)
    INNER JOIN rated_responses AS a USING (dataset, response_id)
    INNER JOIN human_scores AS h USING (dataset, response_id)
    WHERE
        e.promoted AND s.kind = 'response' AND NOT a.ground_truth AND h.aggregation = 'mean'
        AND h.criterion = (
            SELECT coalesce(max(x.criterion) FILTER (WHERE lower(x.criterion) = 'overall'), min(x.criterion))
            FROM human_scores AS x WHERE x.dataset = s.dataset
        )
    WINDOW whole AS (PARTITION BY s.evaluator, s.version, s.dataset)
)

SELECT
    evaluator, version, dataset, criterion, response_id, human, raters,
    CASE WHEN by_h THEN 'h' WHEN by_f THEN 'f' ELSE 'g' END AS part,
    CASE WHEN by_h THEN h WHEN by_f THEN f ELSE g END AS score
FROM judged ORDER BY dataset ASC, evaluator DESC, response_id::BIGINT
