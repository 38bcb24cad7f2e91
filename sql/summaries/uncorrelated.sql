-- why there is no correlation with human scores, mean of raters
SELECT
    a.dataset, a.criterion, string_agg(a.evaluator || ' ' || a.score, ', ' ORDER BY a.evaluator, a.score) AS scores,
    a.reason
FROM agreement AS a INNER JOIN evaluators AS e USING (evaluator, version)
WHERE
    e.promoted AND a.level = 'segment' AND a.grouping = 'pooled' AND a.aggregation = 'mean'
    AND a.measure = 'spearman' AND a.statistic IS NULL AND a.n > 0
GROUP BY a.dataset, a.criterion, a.reason
ORDER BY a.dataset ASC, a.criterion ASC, a.reason ASC
