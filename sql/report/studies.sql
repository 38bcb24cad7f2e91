-- One row is a figure of a study of an evaluator in use.
SELECT s.* FROM studies AS s INNER JOIN evaluators AS e USING (evaluator, version) WHERE e.promoted
ORDER BY s.study ASC, s.dataset ASC, s.evaluator DESC, s.position ASC
