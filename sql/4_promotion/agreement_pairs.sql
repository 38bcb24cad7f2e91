-- One row is a rated response that two versions scored, with its human score by the criterion `overall` or, without
-- one, the first by name; ground truth is excluded. Grain: response_id.
-- The score is h where every response has one, else f, else g, as `ssrem score` prints it.
WITH scored AS (
    SELECT response_id, version, f, g, h
    FROM scores
    WHERE
        evaluator = $evaluator
        AND dataset = $dataset
        AND version IN ($champion, $challenger)
        AND kind = 'response'
),

column_counts AS (
    SELECT count(*) AS responses, count(h) AS with_h, count(f) AS with_f
    FROM scored
),

one_score AS (
    SELECT
        s.response_id,
        s.version,
        CASE WHEN c.with_h = c.responses THEN s.h WHEN c.with_f = c.responses THEN s.f ELSE s.g END AS score
    FROM scored AS s
    CROSS JOIN column_counts AS c
),

chosen AS (
    SELECT coalesce(max(criterion) FILTER (WHERE criterion = 'overall'), min(criterion)) AS criterion
    FROM human_scores
    WHERE dataset = $dataset
)

SELECT
    a.response_id,
    array_to_string(a.context, chr(31)) AS context,
    h.score AS human,
    old.score AS champion,
    new.score AS challenger
FROM (SELECT * FROM annotated WHERE dataset = $dataset AND NOT ground_truth) AS a
INNER JOIN (
    SELECT response_id, score
    FROM human_scores
    WHERE dataset = $dataset AND aggregation = 'mean' AND criterion = (SELECT criterion FROM chosen)
) AS h ON a.response_id = h.response_id
INNER JOIN (SELECT response_id, score FROM one_score WHERE version = $champion) AS old
    ON a.response_id = old.response_id
INNER JOIN (SELECT response_id, score FROM one_score WHERE version = $challenger) AS new
    ON a.response_id = new.response_id
WHERE old.score IS NOT NULL AND new.score IS NOT NULL
ORDER BY a.response_id::BIGINT
