-- One row is a response with its mean human score and the score of an evaluator in use, without ground truth unless it
-- is compared.
SELECT s.evaluator, s.version, s.dataset, h.criterion, s.response_id, h.score AS human, h.raters, s.part, s.score
FROM overall_scores AS s
INNER JOIN evaluators AS e USING (evaluator, version)
INNER JOIN rated_responses AS a USING (dataset, response_id)
INNER JOIN overall_human_scores AS h USING (dataset, response_id)
WHERE
    e.promoted
    AND (
        NOT a.ground_truth
        OR EXISTS (
            SELECT 1 FROM agreement AS g
            WHERE
                g.ground_truth_kept AND g.dataset = s.dataset AND g.evaluator = s.evaluator AND g.version = s.version
        )
    )
ORDER BY s.dataset ASC, s.evaluator DESC, s.response_id::BIGINT ASC
