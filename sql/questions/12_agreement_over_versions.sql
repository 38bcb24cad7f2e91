-- How did agreement with people change over versions?
-- Agreement is that of single responses with the mean of their raters. change is the difference to the previous
-- version; if it is small beside the interval, the versions hardly differ.
SELECT
    evaluator,
    dataset,
    criterion,
    score,
    version,
    n,
    round(spearman, 3) AS spearman,
    round(spearman_low, 3) AS low,
    round(spearman_high, 3) AS high,
    round(
        spearman - lag(spearman) OVER (PARTITION BY evaluator, dataset, criterion, score ORDER BY version), 3
    ) AS change
FROM correlations
WHERE level = 'segment' AND aggregation = 'mean' AND outcome = 'ok'
ORDER BY evaluator, dataset, criterion, score, version
