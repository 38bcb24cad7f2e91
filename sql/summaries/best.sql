-- tied for best: no significant difference, and not below a baseline; p_holm: of first over second
-- An evaluator that an untrained baseline (cosine, length) stands above is not listed, even if the difference is not
-- significant.
WITH ranked AS (
    SELECT
        r.*,
        r.evaluator IN ('cosine', 'length') AS baseline,
        min(CASE WHEN r.evaluator IN ('cosine', 'length') THEN r.place END)
            OVER (PARTITION BY r.dataset, r.criterion) AS best_baseline
    FROM rankings AS r INNER JOIN evaluators AS e USING (evaluator, version)
    WHERE e.promoted AND r.level = 'segment' AND r.place IS NOT NULL
),

compared AS (
    SELECT c.dataset, c.criterion, min(c.p_holm) AS p_holm FROM comparisons AS c INNER JOIN ranked AS r
        ON c.dataset = r.dataset AND c.criterion = r.criterion AND c.first = r.evaluator AND r.place = 1
    WHERE
        c.level = 'segment' AND c.second IN (
            SELECT x.evaluator FROM ranked AS x
            WHERE x.dataset = c.dataset AND x.criterion = c.criterion AND x.place = 2
        )
    GROUP BY ALL
)

SELECT
    dataset, criterion,
    string_agg(evaluator || ' ' || score, ', ' ORDER BY place) FILTER (
        WHERE cluster = 1 AND (baseline OR best_baseline IS NULL OR place < best_baseline)
    ) AS tied_for_best,
    max(statistic) AS spearman, count(*) AS compared, any_value(p_holm) AS p_holm, any_value(n) AS n
FROM ranked LEFT JOIN compared USING (dataset, criterion)
GROUP BY dataset, criterion HAVING count(*) > 1 ORDER BY dataset, criterion
