-- One row is a response with its mean human score and the score of an evaluator in use: h where every response has
-- one, else f, else g. Criterion: overall, else the first.
WITH judged AS (
    SELECT
        s.evaluator, s.version, s.dataset, h.criterion, s.response_id, h.score AS human, h.raters,
        s.f, s.g, s.h, count(s.h) OVER whole = count(*) OVER whole AS all_h,
        count(s.f) OVER whole = count(*) OVER whole AS all_f
    FROM scores AS s
    INNER JOIN evaluators AS e USING (evaluator, version)
    INNER JOIN rated_responses AS a USING (dataset, response_id)
    INNER JOIN human_scores AS h USING (dataset, response_id)
    WHERE
        e.promoted AND s.kind = 'response' AND NOT a.ground_truth AND h.aggregation = 'mean'
        AND h.criterion = (
            SELECT coalesce(max(x.criterion) FILTER (WHERE x.criterion = 'overall'), min(x.criterion))
            FROM human_scores AS x WHERE x.dataset = s.dataset
        )
    WINDOW whole AS (PARTITION BY s.evaluator, s.version, s.dataset)
)

SELECT
    evaluator, version, dataset, criterion, response_id, human, raters,
    CASE WHEN all_h THEN 'h' WHEN all_f THEN 'f' ELSE 'g' END AS part,
    CASE WHEN all_h THEN h WHEN all_f THEN f ELSE g END AS score
FROM judged ORDER BY dataset ASC, evaluator DESC, response_id::BIGINT
