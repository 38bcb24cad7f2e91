-- One row is a rated response that two versions scored, with its human score; ground truth is excluded.
-- Both scores are of the part (f, g or h) that `overall_scores` has for the champion. Grain: response_id.
WITH of_champion AS (
    SELECT response_id, part, score FROM overall_scores
    WHERE evaluator = $evaluator AND version = $champion AND dataset = $dataset
)

SELECT
    a.response_id,
    a.context,
    h.score AS human,
    old.score AS champion,
    CASE old.part WHEN 'f' THEN new.f WHEN 'g' THEN new.g ELSE new.h END AS challenger
FROM rated_responses AS a
INNER JOIN overall_human_scores AS h USING (dataset, response_id)
INNER JOIN of_champion AS old USING (response_id)
INNER JOIN scores AS new USING (dataset, response_id)
WHERE
    a.dataset = $dataset AND NOT a.ground_truth AND new.evaluator = $evaluator AND new.version = $challenger
    AND new.kind = 'response' AND old.score IS NOT NULL AND challenger IS NOT NULL
ORDER BY a.response_id::BIGINT
