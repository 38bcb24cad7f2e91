-- One row is a response that people scored, as an evaluator learns from it. Grain: response_id.
-- lowest, highest: of all scores that raters gave by the criterion in the set. Ground truth is left out.
WITH scale AS (
    SELECT dataset, criterion, min(score) AS lowest, max(score) AS highest FROM ratings GROUP BY dataset, criterion
)

SELECT a.context, a.response, a.reference, a.system, h.score AS human, scale.lowest, scale.highest
FROM rated_responses AS a
INNER JOIN overall_human_scores AS h USING (dataset, response_id)
INNER JOIN scale USING (dataset, criterion)
WHERE a.dataset = $dataset AND NOT a.ground_truth
ORDER BY a.response_id::BIGINT
