-- table: identification
-- Identification speaks of the whole test split, not of the part that was easy to score.
SELECT i.*
FROM identification AS i
INNER JOIN (
    SELECT corpus, count(*) AS responses FROM responses WHERE split = 'test' GROUP BY corpus
) AS r ON i.corpus = r.corpus
WHERE i.kind = 'GT' AND i.n <> r.responses
