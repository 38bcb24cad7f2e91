-- share of pairs that an evaluator orders as raters prefer them, ties calibrated; 95% interval; alpha: of the raters
SELECT
    a.dataset, a.evaluator, a.score, a.statistic AS share, a.low, a.high, a.epsilon AS tie_within, a.n // 2 AS pairs,
    r.value AS alpha, a.reason
FROM agreement AS a INNER JOIN evaluators AS e USING (evaluator, version)
LEFT JOIN rater_agreement AS r
    ON
        a.dataset = r.dataset AND a.criterion = r.criterion AND r.measure = 'alpha_ordinal'
        AND r.responses = 'compared' AND r.outliers = 'kept'
WHERE
    e.promoted AND a.criterion = 'preference' AND a.aggregation = 'mean' AND a.level = 'segment'
    AND a.grouping = 'context' AND a.measure = 'accuracy'
ORDER BY a.dataset ASC, a.evaluator DESC, a.score ASC
