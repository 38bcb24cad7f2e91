-- One row is a judge in use on a set and criterion: its answers, tokens and seconds for 1,000 responses, and agreement.
WITH spent AS (
    SELECT
        evaluator, version, dataset, 1000 / count(DISTINCT response_id) AS scale,
        count(*) AS answers, count(*) - count(score) AS without_score,
        sum(prompt_tokens + completion_tokens) AS tokens, sum(seconds) AS seconds
    FROM judgments GROUP BY ALL
)

SELECT
    s.evaluator, s.version, s.dataset, c.criterion, c.spearman, s.answers, s.without_score,
    s.scale * s.tokens AS tokens, s.scale * s.seconds AS seconds
FROM spent AS s
INNER JOIN evaluators AS e ON s.evaluator = e.evaluator AND s.version = e.version AND e.promoted
LEFT JOIN correlations AS c
    ON
        s.evaluator = c.evaluator AND s.version = c.version AND s.dataset = c.dataset
        AND c.level = 'segment' AND c.aggregation = 'mean'
ORDER BY s.evaluator DESC, s.dataset ASC, c.criterion ASC
