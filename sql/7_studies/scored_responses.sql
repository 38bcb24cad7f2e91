-- One row is a response that people scored, with an evaluator's score and the number of its words.
-- Grain: response_id. The score is the evaluator's overall part ($part). The human score is the mean by the criterion
-- 'overall', or else by the first one.
WITH scored AS (
    SELECT
        response_id,
        CASE $part WHEN 'f' THEN f WHEN 'g' THEN g ELSE h END AS score
    FROM scores
    WHERE evaluator = $evaluator AND version = $version AND dataset = $dataset AND kind = 'response'
),

criterion AS (
    SELECT coalesce(max(criterion) FILTER (WHERE lower(criterion) = 'overall'), min(criterion)) AS name
    FROM human_scores
    WHERE dataset = $dataset
)

SELECT
    scored.score,
    people.score AS human,
    len(regexp_extract_all(rated.response, '\S+')) AS words
FROM scored
INNER JOIN rated_responses AS rated ON scored.response_id = rated.response_id AND rated.dataset = $dataset
INNER JOIN human_scores AS people
    ON scored.response_id = people.response_id AND people.dataset = $dataset AND people.aggregation = 'mean'
INNER JOIN criterion ON people.criterion = criterion.name
WHERE NOT rated.ground_truth AND scored.score IS NOT NULL
ORDER BY rated.response_id::BIGINT
