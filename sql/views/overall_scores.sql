-- One row is an evaluator's score of a rated response. Grain: evaluator, version, dataset, response_id.
-- The score is h if no fewer responses of the set have it than f, else f if any has, else g; ground truth not counted.
WITH counted AS (
    SELECT
        s.*,
        count(s.f) FILTER (WHERE NOT a.ground_truth) OVER whole AS with_f,
        count(s.h) FILTER (WHERE NOT a.ground_truth) OVER whole AS with_h
    FROM scores AS s
    INNER JOIN rated_responses AS a ON s.dataset = a.dataset AND s.response_id = a.response_id
    WHERE s.kind = 'response'
    WINDOW whole AS (PARTITION BY s.evaluator, s.version, s.dataset)
)

SELECT
    evaluator,
    version,
    dataset,
    response_id,
    CASE WHEN with_h >= greatest(with_f, 1) THEN 'h' WHEN with_f > 0 THEN 'f' ELSE 'g' END AS part,
    CASE part WHEN 'h' THEN h WHEN 'f' THEN f ELSE g END AS score
FROM counted
