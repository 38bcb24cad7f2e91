-- One row is a response that people scored, with an evaluator's score, if it has one, and the number of its words;
-- ground truth is left out. Grain: response_id.
SELECT s.score, h.score AS human, len(regexp_extract_all(a.response, '\S+')) AS words
FROM overall_scores AS s
INNER JOIN rated_responses AS a USING (dataset, response_id)
INNER JOIN overall_human_scores AS h USING (dataset, response_id)
WHERE
    s.evaluator = $evaluator AND s.version = $version AND s.dataset = $dataset AND NOT a.ground_truth
ORDER BY s.response_id::BIGINT
