-- One row is a source of responses under an evaluator in use, or under people (evaluator 'people'): quantiles of the
-- scores. Responses that are their own reference are left out where the score is h. Sources: systems of an annotated
-- set, by its criterion overall or else its first; kinds of candidates of a test split.
WITH of_set AS (
    SELECT
        s.evaluator, s.version, s.dataset, a.system AS source, s.f, s.g, s.h, a.response = a.reference AS same,
        count(s.h) OVER whole >= greatest(count(s.f) OVER whole, 1) AS by_h, count(s.f) OVER whole > 0 AS by_f
    FROM scores AS s
    INNER JOIN evaluators AS e USING (evaluator, version)
    INNER JOIN rated_responses AS a USING (dataset, response_id)
    WHERE e.promoted AND s.kind = 'response' AND a.system IS NOT NULL
    WINDOW whole AS (PARTITION BY s.evaluator, s.version, s.dataset)
),

scored AS (
    SELECT
        evaluator, version, dataset, NULL AS criterion, source,
        CASE WHEN by_h THEN h WHEN by_f THEN f ELSE g END AS score
    FROM of_set WHERE NOT coalesce(by_h AND same, FALSE)
    UNION ALL
    SELECT s.evaluator, s.version, s.dataset, NULL AS criterion, s.kind AS source, s.f AS score
    FROM scores AS s INNER JOIN evaluators AS e USING (evaluator, version)
    WHERE e.promoted AND s.kind <> 'response'
    UNION ALL
    SELECT 'people' AS evaluator, 0 AS version, h.dataset, h.criterion, a.system AS source, h.score
    FROM human_scores AS h INNER JOIN rated_responses AS a USING (dataset, response_id)
    WHERE
        a.system IS NOT NULL AND h.aggregation = 'mean'
        AND h.criterion = (
            SELECT coalesce(max(x.criterion) FILTER (WHERE lower(x.criterion) = 'overall'), min(x.criterion))
            FROM human_scores AS x WHERE x.dataset = h.dataset
        )
)

SELECT
    evaluator, version, dataset, any_value(criterion) AS criterion, source, quantile_cont(score, 0.05) AS q05,
    quantile_cont(score, 0.25) AS q25, quantile_cont(score, 0.5) AS median, quantile_cont(score, 0.75) AS q75,
    quantile_cont(score, 0.95) AS q95, avg(score) AS mean, stddev_samp(score) AS sd, count(score) AS n
FROM scored WHERE score IS NOT NULL
GROUP BY evaluator, version, dataset, source
ORDER BY dataset ASC, evaluator = 'people' DESC, evaluator DESC, version ASC, source ASC
