-- why there is no correlation with human scores, mean of raters
WITH lacking AS (
    SELECT a.dataset, a.criterion, a.evaluator, a.score, a.reason
    FROM agreement AS a INNER JOIN evaluators AS e USING (evaluator, version)
    WHERE
        e.promoted AND a.level = 'segment' AND a.grouping = 'pooled' AND a.aggregation = 'mean'
        AND a.measure = 'spearman' AND a.statistic IS NULL AND a.n > 0
    UNION ALL
    SELECT
        s.dataset, h.criterion, s.evaluator, NULL AS score,
        'no response has a score' || CASE WHEN count(a.reference) = 0 THEN ', and none has a reference' ELSE '' END
            AS reason
    FROM overall_scores AS s
    INNER JOIN evaluators AS e USING (evaluator, version)
    INNER JOIN rated_responses AS a USING (dataset, response_id)
    INNER JOIN overall_human_scores AS h USING (dataset, response_id)
    WHERE e.promoted AND NOT a.ground_truth
    GROUP BY s.dataset, h.criterion, s.evaluator, s.version HAVING count(s.score) = 0
)

SELECT
    dataset,
    criterion,
    string_agg(concat_ws(' ', evaluator, score), ', ' ORDER BY evaluator, score) AS scores,
    reason
FROM lacking
GROUP BY dataset, criterion, reason
ORDER BY dataset ASC, criterion ASC, reason ASC
