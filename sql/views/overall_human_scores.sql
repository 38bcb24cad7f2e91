-- One row is the mean human score of a rated response by the criterion 'overall', in any case, or else the set's first.
-- Grain: dataset, response_id.
SELECT dataset, response_id, criterion, score, raters
FROM human_scores
WHERE aggregation = 'mean'
QUALIFY
    criterion = coalesce(
        max(criterion) FILTER (WHERE lower(criterion) = 'overall') OVER (PARTITION BY dataset),
        min(criterion) OVER (PARTITION BY dataset)
    )
