-- One row is a kind of candidate of a corpus under an evaluator in use.
SELECT i.* FROM identification AS i INNER JOIN evaluators AS e USING (evaluator, version) WHERE e.promoted
ORDER BY i.evaluator DESC, i.corpus ASC, list_position(['GT', 'SC', 'SP', 'SS', 'Rand', 'Context'], i.kind)
