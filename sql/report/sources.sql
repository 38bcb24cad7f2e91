-- One row is a source of responses under an evaluator in use, or under people (evaluator 'people'), with quantiles of
-- the scores. Responses that are their own reference are left out unless the score is f, which reads no reference.
-- Sources are the systems of an annotated set, or the kinds of candidates of a test split.
WITH scored AS (
    SELECT s.evaluator, s.version, s.dataset, NULL AS criterion, a.system AS source, s.score
    FROM overall_scores AS s
    INNER JOIN evaluators AS e USING (evaluator, version)
    INNER JOIN rated_responses AS a USING (dataset, response_id)
    WHERE e.promoted AND a.system IS NOT NULL AND NOT coalesce(s.part <> 'f' AND a.response = a.reference, FALSE)
    UNION ALL
    SELECT s.evaluator, s.version, s.dataset, NULL AS criterion, s.kind AS source, s.f AS score
    FROM scores AS s INNER JOIN evaluators AS e USING (evaluator, version)
    WHERE e.promoted AND s.kind <> 'response'
    UNION ALL
    SELECT 'people' AS evaluator, 0 AS version, h.dataset, h.criterion, a.system AS source, h.score
    FROM overall_human_scores AS h INNER JOIN rated_responses AS a USING (dataset, response_id)
    WHERE a.system IS NOT NULL
)

SELECT
    evaluator, version, dataset, any_value(criterion) AS criterion, source, quantile_cont(score, 0.05) AS q05,
    quantile_cont(score, 0.25) AS q25, quantile_cont(score, 0.5) AS median, quantile_cont(score, 0.75) AS q75,
    quantile_cont(score, 0.95) AS q95, avg(score) AS mean, stddev_samp(score) AS sd, count(score) AS n
FROM scored WHERE score IS NOT NULL
GROUP BY evaluator, version, dataset, source
ORDER BY dataset ASC, evaluator = 'people' DESC, evaluator DESC, version ASC, source ASC
