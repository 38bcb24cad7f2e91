-- identification on the test split by the versions in use: mean f, 95% interval, how often the true response is above
SELECT
    i.evaluator, i.corpus,
    CASE
        WHEN NOT list_contains(string_split(i.learned_from, ', '), i.corpus) THEN nullif(i.learned_from, '')
    END AS learned_from,
    i.kind, i.mean AS mean_f, i.low, i.high, i.gt_above, i.n
FROM identification AS i INNER JOIN evaluators AS e USING (evaluator, version) WHERE e.promoted
ORDER BY i.evaluator DESC, i.corpus ASC, list_position(['GT', 'SC', 'SP', 'SS', 'Rand', 'Context'], i.kind)
