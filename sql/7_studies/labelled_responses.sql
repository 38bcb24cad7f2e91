-- One row is a response that people scored, as an evaluator learns from it. Grain: response_id.
-- The human score is the mean by the criterion 'overall', or by the first there is; lowest and highest are what a
-- rater gave by it anywhere in the set. Ground truth is left out.
WITH criterion AS (
    SELECT coalesce(max(criterion) FILTER (WHERE criterion = 'overall'), min(criterion)) AS name
    FROM human_scores
    WHERE dataset = $dataset
),

scale AS (
    SELECT
        min(score) AS lowest,
        max(score) AS highest
    FROM annotations
    WHERE dataset = $dataset AND criterion = (SELECT name FROM criterion)
)

SELECT
    annotated.context,
    annotated.response,
    annotated.reference,
    annotated.system,
    people.score AS human,
    scale.lowest,
    scale.highest
FROM annotated
INNER JOIN human_scores AS people
    ON annotated.response_id = people.response_id AND people.dataset = $dataset AND people.aggregation = 'mean'
INNER JOIN criterion ON people.criterion = criterion.name
CROSS JOIN scale
WHERE annotated.dataset = $dataset AND NOT annotated.ground_truth
ORDER BY annotated.response_id::BIGINT
