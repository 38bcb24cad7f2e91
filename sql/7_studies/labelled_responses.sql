-- One row is a response that people scored, as an evaluator learns from it. Grain: response_id.
-- The human score is the mean by the criterion 'overall', or else by the first one; lowest and highest are those
-- that a rater gave by it anywhere in the set. Ground truth is left out.
WITH criterion AS (
    SELECT coalesce(max(criterion) FILTER (WHERE lower(criterion) = 'overall'), min(criterion)) AS name
    FROM human_scores
    WHERE dataset = $dataset
),

scale AS (
    SELECT
        min(score) AS lowest,
        max(score) AS highest
    FROM ratings
    WHERE dataset = $dataset AND criterion = (SELECT name FROM criterion)
)

SELECT
    rated_responses.context,
    rated_responses.response,
    rated_responses.reference,
    rated_responses.system,
    people.score AS human,
    scale.lowest,
    scale.highest
FROM rated_responses
INNER JOIN human_scores AS people
    ON rated_responses.response_id = people.response_id AND people.dataset = $dataset AND people.aggregation = 'mean'
INNER JOIN criterion ON people.criterion = criterion.name
CROSS JOIN scale
WHERE rated_responses.dataset = $dataset AND NOT rated_responses.ground_truth
ORDER BY rated_responses.response_id::BIGINT
