-- table: identification
-- Scores and identification cover the whole test split or a sample of known size, not just the responses that are easy
-- to score.
WITH scored AS (
    SELECT evaluator, version, dataset AS corpus, count(f) FILTER (WHERE kind = 'GT') AS n
    FROM scores
    WHERE kind <> 'response'
    GROUP BY evaluator, version, dataset
),

identified AS (
    SELECT evaluator, version, corpus, max(n) FILTER (WHERE kind = 'GT') AS n
    FROM identification
    GROUP BY evaluator, version, corpus
)

SELECT evaluator, version, corpus, least(r.responses, coalesce(e.test_sample, r.responses)) AS expected, s.n AS scored
FROM scored AS s
FULL OUTER JOIN identified AS i USING (evaluator, version, corpus)
INNER JOIN evaluators AS e USING (evaluator, version)
INNER JOIN (
    SELECT corpus, count(*) AS responses FROM responses WHERE split = 'test' GROUP BY corpus
) AS r USING (corpus)
WHERE s.n IS DISTINCT FROM expected OR i.n IS DISTINCT FROM expected
