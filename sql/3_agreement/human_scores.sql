-- One row is the human score of a response. Grain: response_id, criterion, aggregation.
-- mad_mean: mean of the scores within one scaled median absolute deviation (b = 1.4826) of the median, as in Zhao et
-- al. 2020. mode: the score that most raters gave, as in Bak and Oh 2020; tied modes are averaged.
WITH rated AS (
    SELECT * FROM ratings WHERE dataset = $dataset
),

centred AS (
    SELECT *, abs(score - median(score) OVER (PARTITION BY response_id, criterion)) AS deviation
    FROM rated
),

kept AS (
    SELECT *
    FROM centred
    QUALIFY deviation <= 1.4826 * median(deviation) OVER (PARTITION BY response_id, criterion) + 1e-9
),

counted AS (
    SELECT
        response_id,
        criterion,
        score,
        count(*) AS votes
    FROM rated
    GROUP BY response_id, criterion, score
    QUALIFY votes = max(votes) OVER (PARTITION BY response_id, criterion)
),

aggregated AS (
    SELECT response_id, criterion, 'mean' AS aggregation, avg(score) AS score, count(*) AS raters
    FROM rated GROUP BY response_id, criterion
    UNION ALL
    SELECT response_id, criterion, 'median' AS aggregation, median(score) AS score, count(*) AS raters
    FROM rated GROUP BY response_id, criterion
    UNION ALL
    SELECT response_id, criterion, 'mode' AS aggregation, avg(score) AS score, sum(votes)::BIGINT AS raters
    FROM counted GROUP BY response_id, criterion
    UNION ALL
    SELECT response_id, criterion, 'mad_mean' AS aggregation, avg(score) AS score, count(*) AS raters
    FROM kept GROUP BY response_id, criterion
)

SELECT
    $dataset AS dataset,
    response_id,
    criterion,
    aggregation,
    score,
    raters
FROM aggregated
