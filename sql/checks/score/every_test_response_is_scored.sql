-- table: identification
-- Identification covers the whole test split or a sample of known size, not just the responses that are easy to score.
SELECT i.*
FROM identification AS i
INNER JOIN evaluators AS e ON i.evaluator = e.evaluator AND i.version = e.version
INNER JOIN (
    SELECT corpus, count(*) AS responses FROM responses WHERE split = 'test' GROUP BY corpus
) AS r ON i.corpus = r.corpus
WHERE i.kind = 'GT' AND i.n <> least(r.responses, coalesce(e.test_sample, r.responses))
