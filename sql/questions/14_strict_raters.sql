-- Who rates strictly?
-- Each rating is compared with the mean of the other ratings of the response: strictness is how far a rater lies
-- below them on average, agreement is the correlation with them. A rater without a name is a position in a
-- response's list of scores, and is the same person throughout only if the annotated set keeps its raters in order.
WITH totals AS (
    SELECT
        *,
        sum(score) OVER (PARTITION BY dataset, response_id, criterion) AS total,
        count(*) OVER (PARTITION BY dataset, response_id, criterion) AS raters
    FROM ratings
),

against_others AS (
    SELECT dataset, criterion, rater, score, (total - score) / (raters - 1) AS others
    FROM totals
    WHERE raters > 1
)

SELECT
    dataset,
    criterion,
    rater,
    count(*) AS ratings,
    round(avg(score), 2) AS mean_score,
    round(avg(others - score), 2) AS strictness,
    CASE WHEN stddev(score) > 0 AND stddev(others) > 0 THEN round(corr(score, others), 2) END AS agreement
FROM against_others
GROUP BY dataset, criterion, rater
ORDER BY dataset ASC, criterion ASC, strictness DESC
