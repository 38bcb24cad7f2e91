-- agreement with human scores, mean of raters; 95% interval; ceiling: agreement of one rater with the others
SELECT
    c.dataset, c.criterion, c.evaluator, c.score, c.spearman, a.low, a.high, r.value AS ceiling,
    c.spearman_p AS p, c.pearson, c.n, c.excluded
FROM correlations AS c INNER JOIN evaluators AS e USING (evaluator, version)
LEFT JOIN agreement AS a
    ON
        c.evaluator = a.evaluator AND c.version = a.version AND c.dataset = a.dataset
        AND c.criterion = a.criterion AND c.aggregation = a.aggregation AND c.level = a.level
        AND c.score = a.score AND a.grouping = 'pooled' AND a.measure = 'spearman'
LEFT JOIN rater_agreement AS r
    ON c.dataset = r.dataset AND c.criterion = r.criterion AND r.measure = 'one_rater'
WHERE e.promoted AND c.level = 'segment' AND c.aggregation = 'mean'
ORDER BY c.dataset ASC, c.criterion ASC, c.evaluator DESC, c.score ASC
