-- table: evaluators
-- Commands use the promoted version of an evaluator, so exactly one of those trained here is promoted.
SELECT evaluator, count(*) FILTER (WHERE promoted) AS promoted
FROM evaluators
GROUP BY evaluator
HAVING count(*) FILTER (WHERE promoted) <> 1
