-- One row is an epoch and split of an evaluator in use.
SELECT l.* FROM learning_curves AS l INNER JOIN evaluators AS e USING (evaluator, version) WHERE e.promoted
ORDER BY l.evaluator DESC, l.split ASC, l.epoch ASC
