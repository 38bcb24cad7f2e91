-- table: judgments
-- A judge's score without an answer behind it would be invented.
SELECT s.evaluator, s.version, s.dataset, s.response_id
FROM scores AS s
SEMI JOIN judgments AS version USING (evaluator, version, dataset)
ANTI JOIN judgments AS j
    ON
        s.evaluator = j.evaluator AND s.version = j.version AND s.dataset = j.dataset
        AND s.response_id = j.response_id AND j.score IS NOT NULL
WHERE s.f IS NOT NULL OR s.g IS NOT NULL
