-- tied for best: not significantly below the first, and not below a baseline; p_holm: of first over second
-- An evaluator that ranks below an untrained baseline (cosine, length) is not listed, even if the difference is not
-- significant.
WITH ranked AS (
    SELECT
        r.*,
        min(r.place) FILTER (WHERE r.evaluator IN ('cosine', 'length'))
            OVER (PARTITION BY r.dataset, r.criterion) AS best_baseline
    FROM rankings AS r INNER JOIN evaluators AS e USING (evaluator, version)
    WHERE e.promoted AND r.level = 'segment' AND r.place IS NOT NULL
),

against_first AS (
    SELECT c.dataset, c.criterion, c.second AS evaluator, min(c.p_holm) AS p_holm
    FROM comparisons AS c INNER JOIN ranked AS r
        ON c.dataset = r.dataset AND c.criterion = r.criterion AND c.first = r.evaluator AND r.place = 1
    WHERE c.level = 'segment'
    GROUP BY ALL
)

SELECT
    dataset, criterion,
    string_agg(evaluator || ' ' || score, ', ' ORDER BY place) FILTER (
        WHERE coalesce(p_holm, 1) >= 0.05 AND (best_baseline IS NULL OR place <= best_baseline)
    ) AS tied_for_best,
    max(statistic) AS spearman, count(*) AS compared, min(p_holm) FILTER (WHERE place = 2) AS p_holm,
    any_value(n) AS n
FROM ranked LEFT JOIN against_first USING (dataset, criterion, evaluator)
GROUP BY dataset, criterion HAVING count(*) > 1 ORDER BY dataset, criterion
