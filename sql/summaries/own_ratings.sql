-- agreement with ratings of whole conversations, which do not judge single responses; untouched sliders are left out
SELECT c.dataset, c.criterion, c.evaluator, c.score, c.spearman, c.spearman_p AS p, c.pearson, c.n, c.excluded
FROM correlations AS c INNER JOIN evaluators AS e USING (evaluator, version)
WHERE e.promoted AND c.level = 'conversation'
ORDER BY c.dataset ASC, c.criterion ASC, c.evaluator DESC, c.score ASC
