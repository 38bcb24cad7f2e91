-- agreement with human scores, mean of raters; 95% interval; ceiling: agreement of one rater with the others
SELECT
    c.dataset, c.criterion, c.evaluator, c.score, c.spearman, c.spearman_low AS low, c.spearman_high AS high,
    r.value AS ceiling, c.spearman_p AS p, c.pearson, c.n, c.excluded
FROM correlations AS c INNER JOIN evaluators AS e USING (evaluator, version)
LEFT JOIN rater_agreement AS r
    ON c.dataset = r.dataset AND c.criterion = r.criterion AND r.measure = 'one_rater'
WHERE e.promoted AND c.level = 'segment' AND c.aggregation = 'mean'
ORDER BY c.dataset ASC, c.criterion ASC, c.evaluator DESC, c.score ASC
