-- One row is a pair of evaluators in use on a criterion.
SELECT
    c.dataset, c.criterion, c.level, c.test, c.first, c.first_version, c.second, c.second_version, c.first_statistic,
    c.second_statistic, c.p_holm
FROM comparisons AS c
INNER JOIN evaluators AS a ON c.first = a.evaluator AND c.first_version = a.version AND a.promoted
INNER JOIN evaluators AS b ON c.second = b.evaluator AND c.second_version = b.version AND b.promoted
WHERE c.level = 'segment' AND c.aggregation = 'mean'
ORDER BY c.dataset, c.criterion, c.first, c.second
