-- studies: confounders, what else the scores depend on
SELECT s.study, s.dataset, s.evaluator, s.condition, s.measure, s.value, s.low, s.high, s.n, s.outcome
FROM studies AS s INNER JOIN evaluators AS e USING (evaluator, version) WHERE e.promoted
ORDER BY s.study ASC, s.dataset ASC, s.evaluator DESC, s.position ASC
