-- table: evaluators
-- Commands use the promoted version of an evaluator, so of those trained here exactly one is.
SELECT evaluator, count(*) FILTER (WHERE promoted) AS promoted
FROM evaluators
GROUP BY evaluator
HAVING count(*) FILTER (WHERE promoted) <> 1
