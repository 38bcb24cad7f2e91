-- One row is a rated response that two versions scored, with its human score by the criterion `overall` or, without
-- one, the first by name; ground truth is excluded. Grain: response_id.
-- The score is the part that is the evaluator's own ($part).
WITH one_score AS (
    SELECT
        response_id,
        version,
        CASE $part WHEN 'f' THEN f WHEN 'g' THEN g ELSE h END AS score
    FROM scores
    WHERE
        evaluator = $evaluator
        AND dataset = $dataset
        AND version IN ($champion, $challenger)
        AND kind = 'response'
),

chosen AS (
    SELECT coalesce(max(criterion) FILTER (WHERE lower(criterion) = 'overall'), min(criterion)) AS criterion
    FROM human_scores
    WHERE dataset = $dataset
)

SELECT
    a.response_id,
    array_to_string(a.context, chr(31)) AS context,
    h.score AS human,
    old.score AS champion,
    new.score AS challenger
FROM (SELECT * FROM rated_responses WHERE dataset = $dataset AND NOT ground_truth) AS a
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
