-- How hard is each kind of negative?
-- gt_above is the share of cases in which the true response scores higher: .5 is chance, and below .5 the negatives
-- win. gap is the mean f of true responses minus that of the kind.
WITH truths AS (
    SELECT evaluator, version, corpus, mean FROM identification WHERE kind = 'GT'
)

SELECT
    i.corpus,
    i.evaluator,
    i.version,
    i.kind,
    round(i.gt_above, 3) AS gt_above,
    round(t.mean - i.mean, 3) AS gap,
    i.n
FROM identification AS i
INNER JOIN truths AS t
    ON i.evaluator = t.evaluator AND i.version = t.version AND i.corpus = t.corpus
WHERE i.kind <> 'GT'
ORDER BY i.corpus, i.evaluator, i.version, gt_above
