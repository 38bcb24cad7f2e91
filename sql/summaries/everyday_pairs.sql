-- everyday pairs: how often the better of two responses scores higher, 95% interval; chance is 50%
SELECT s.evaluator, s.value AS better, s.low, s.high, s.n
FROM studies AS s INNER JOIN evaluators AS e USING (evaluator, version)
WHERE e.promoted AND s.study = 'behaviour' AND s.dataset = 'everyday-pairs' AND s.condition = 'all pairs'
ORDER BY s.value DESC, s.evaluator ASC
