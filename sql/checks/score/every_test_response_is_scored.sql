-- table: identification
-- Identification speaks of the whole test split, or of a sample of stated size, not of the part that was easy to score.
SELECT i.*
FROM identification AS i
INNER JOIN evaluators AS e ON i.evaluator = e.evaluator AND i.version = e.version
INNER JOIN (
    SELECT corpus, count(*) AS responses FROM responses WHERE split = 'test' GROUP BY corpus
) AS r ON i.corpus = r.corpus
WHERE i.kind = 'GT' AND i.n <> least(r.responses, coalesce(e.test_sample, r.responses))
