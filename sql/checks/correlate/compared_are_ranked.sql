-- table: comparisons
-- Evaluators that are compared have a place in the ranking, the better one above the other.
SELECT c.*
FROM comparisons AS c
LEFT JOIN rankings AS a
    ON
        c.dataset = a.dataset AND c.criterion = a.criterion AND c.aggregation = a.aggregation AND c.level = a.level
        AND c.first = a.evaluator AND c.first_version = a.version
LEFT JOIN rankings AS b
    ON
        c.dataset = b.dataset AND c.criterion = b.criterion AND c.aggregation = b.aggregation AND c.level = b.level
        AND c.second = b.evaluator AND c.second_version = b.version
WHERE (a.place < b.place) IS NOT TRUE
