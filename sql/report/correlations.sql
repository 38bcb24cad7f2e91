-- One row is a score of an evaluator in use against one human score, with the noise ceiling and its cluster.
SELECT
    c.*,
    c.level <> 'conversation' AND c.spearman_low IS NOT NULL AS resampled, r.value AS ceiling, k.cluster
FROM correlations AS c INNER JOIN evaluators AS e USING (evaluator, version)
LEFT JOIN rater_agreement AS r
    ON
        c.dataset = r.dataset AND c.criterion = r.criterion
        AND r.measure = 'one_rater' AND c.level = 'segment'
LEFT JOIN rankings AS k
    ON
        c.evaluator = k.evaluator AND c.version = k.version AND c.dataset = k.dataset
        AND c.criterion = k.criterion AND c.aggregation = k.aggregation AND c.level = k.level
        AND c.score = k.score
WHERE e.promoted
ORDER BY c.level ASC, c.dataset ASC, c.criterion ASC, c.aggregation ASC, c.evaluator DESC, c.score ASC
