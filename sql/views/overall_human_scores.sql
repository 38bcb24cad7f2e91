-- One row is the mean human score of a rated response by the criterion 'overall', in upper or lower case, or else by
-- the set's first criterion in alphabetical order. Grain: dataset, response_id.
SELECT dataset, response_id, criterion, score, raters
FROM human_scores
WHERE aggregation = 'mean'
QUALIFY
    criterion = coalesce(
        max(criterion) FILTER (WHERE lower(criterion) = 'overall') OVER (PARTITION BY dataset),
        min(criterion) OVER (PARTITION BY dataset)
    )
